"""What people type, read into a tree. Pure: it knows no index, and refuses with the place what does not parse.

    query   = either
    either  = both {"OR" both}
    both    = single {["AND"] single}
    single  = ("NOT" | "-") single | "(" either ")" | [field ":"] (word | word"*" | "phrase")
    field   = name | type | folder

`AND`, `OR` and `NOT` are operators in capitals only. Full-width brackets, quotes, colons and stars count as the plain
ones. A minus counts only before a word. Words in which nothing can be found (`&`, `--`) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tidegate.errors import QueryError
from tidegate.index import terms

LONGEST_QUERY: Final = 10_000
DEEPEST: Final = 100
MOST_WORDS: Final = 1_000
MOST_OPEN: Final = 64

_QUOTES: Final = '"“”„‟＂'
_WORD = re.compile(rf"[^\s()（）{_QUOTES}]+")
_FIELD = re.compile("(name|type|folder)[:：]")
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Word:
    """A word, prefix or phrase, anywhere or only in the file's name."""

    needle: terms.Needle
    is_name: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """Files found to be of this kind, or whose name ends so."""

    kind: str


@dataclass(frozen=True, slots=True)
class Below:
    """Files below the folder whose path reads so."""

    folder: str


@dataclass(frozen=True, slots=True)
class Not:
    """Everything but this."""

    part: Node


@dataclass(frozen=True, slots=True)
class All:
    """What every part finds."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """What at least one part finds."""

    parts: tuple[Node, ...]


Node = Word | Kind | Below | Not | All | Either


def parse(text: str) -> Node:
    """The tree that `text` means; raises QueryError, whose message and hint name the place."""
    if len(text) > LONGEST_QUERY:
        raise QueryError(f"the query has {len(text):,} characters", f"ask with at most {LONGEST_QUERY:,} characters")
    parser = _Parser(terms.whole(text))
    tree = parser.either(0) if text.strip() else None
    if parser.at < len(parser.text):
        raise parser.error(parser.at, "a bracket is closed that was never opened", "remove it, or put it in quotes")
    if tree is None:
        raise QueryError("the query is empty: it has nothing to search for", "type a word, from character 1 on")
    return tree


def needles(tree: Node) -> Iterator[terms.Needle]:
    """What a hit's text is to be marked with: every word that is asked for, none that is ruled out."""
    match tree:
        case Word(needle, is_name=False):
            yield needle
        case All(parts) | Either(parts):
            for part in parts:
                yield from needles(part)
        case _:
            return


class _Parser:
    """Recursive descent over the text; every method reads from `at` and leaves it behind what it took."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._words = 0
        self._open = 0

    def error(self, at: int, message: str, hint: str) -> QueryError:
        place = f"at character {at + 1}"
        return QueryError(f"the query does not parse {place}: {message}", f"{place}: {hint}")

    def either(self, depth: int) -> Node | None:
        parts = [self._both(depth)]
        while self._takes("OR"):
            parts.append(self._both(depth))
        return _joined(Either, parts)

    def _both(self, depth: int) -> Node | None:
        parts = [self._single(depth)]
        while self._takes("AND") or not self._is_over():
            parts.append(self._single(depth))
        return _joined(All, parts)

    def _single(self, depth: int) -> Node | None:
        start = self._skip()
        if depth > DEEPEST:
            raise self.error(start, "it is nested too deeply", f"nest at most {DEEPEST} levels")
        if self._peek() in ("", ")", "）", "AND", "OR"):
            raise self.error(start, "a word is missing", "write a word here, or put AND, OR and NOT in quotes")
        if self._takes("NOT") or self._takes_minus():
            part = self._single(depth + 1)
            return None if part is None else Not(part)
        if self.text[start] in "(（":
            return self._group(start, depth)
        field = _FIELD.match(self.text, start)
        if field is None:
            return self._word(is_name=False)
        self.at = field.end()
        return self._field(field[1])

    def _group(self, start: int, depth: int) -> Node | None:
        self.at = start + 1
        inner = self.either(depth + 1)
        if self._peek() not in (")", "）"):
            raise self.error(start, "a bracket is opened and never closed", "close it, or put it in quotes")
        self.at += 1
        return inner

    def _field(self, field: str) -> Node | None:
        start = self.at
        if start >= len(self.text) or not (self.text[start] in _QUOTES or _WORD.match(self.text, start)):
            raise self.error(start, f"{field}: has no value", f"write {field}:word without a blank")
        if field == "name":
            return self._word(is_name=True)
        value, _ = self._value()
        if field == "type":
            return Kind(terms.fold(value).strip(".* "))
        parts = [part for part in value.rstrip("*").split("/") if part not in ("", ".")]
        if not parts or ".." in parts:
            raise self.error(start, "this is no folder of the pool", "write folder:invoices/2024, without '..'")
        return Below("/".join(parts))

    def _word(self, *, is_name: bool) -> Node | None:
        start = self.at
        value, is_phrase = self._value()
        is_prefix = not is_phrase and value.endswith(("*", "＊"))
        needle = terms.needle(value, is_prefix=is_prefix, is_exact=is_phrase)
        if needle is None:
            return None
        self._words += 1
        self._open += needle.open_end is not None
        if self._words > MOST_WORDS or self._open > MOST_OPEN:
            raise self.error(
                start, "it has too many words", f"ask for at most {MOST_WORDS:,}, {MOST_OPEN} of them open"
            )
        return Word(needle, is_name)

    def _value(self) -> tuple[str, bool]:
        """The word or phrase at `at`, and whether it is a phrase."""
        start = self.at
        if self.text[start] not in _QUOTES:
            word = self._peek()
            self.at += len(word)
            return word, False
        end = next((at for at in range(start + 1, len(self.text)) if self.text[at] in _QUOTES), None)
        if end is None:
            raise self.error(start, "a quote is opened and never closed", "close it, or remove it")
        self.at = end + 1
        return self.text[start + 1 : end], True

    def _skip(self) -> int:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        return self.at

    def _peek(self) -> str:
        """The word, bracket or quote that comes next, empty at the end."""
        start = self._skip()
        word = _WORD.match(self.text, start)
        return word[0] if word else self.text[start : start + 1]

    def _takes(self, operator: str) -> bool:
        if self._peek() != operator:
            return False
        self.at += len(operator)
        return True

    def _takes_minus(self) -> bool:
        after = self.text[self.at + 1 : self.at + 2]
        if self.text[self.at] != "-" or not after or after.isspace() or after in "-)）":
            return False
        self.at += 1
        return True

    def _is_over(self) -> bool:
        return self._peek() in ("", ")", "）", "OR")


def _joined(kind: type[All] | type[Either], parts: list[Node | None]) -> Node | None:
    kept = tuple(part for part in parts if part is not None)
    return kind(kept) if len(kept) > 1 else kept[0] if kept else None
