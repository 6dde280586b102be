"""Text to terms, the same for what is indexed and for what is asked.

A term is one of two things: a run of letters and digits (at most 64 of them; a longer run becomes several terms), or,
in a run of Chinese, Japanese or Korean characters, two neighbours. Such a run becomes its overlapping pairs and then
its last character alone: `合同书` gives `合同 同书 书`. Terms stand in the order of the text, so that a phrase is a row
of neighbouring terms, and a search for any piece of a run is exact, without a dictionary.
Everything is folded first: full-width letters and digits, half-width kana and Kangxi radicals to their usual forms,
invisible characters (soft hyphens, joiners) away, case folded, NFC. Raise `TOKENISER` with every change of the terms.
"""

from __future__ import annotations

import operator
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import tantivy

TOKENISER: Final = 1

_LONGEST_TERM: Final = 64
_SLICE: Final = 1 << 16  # terms are made slice by slice: a text of 20 MB is never a list of 20 million strings
_LONGEST_SLICE: Final = 1 << 20

# Han with its extensions, kana, bopomofo, hangul; the second and third plane hold Han and nothing else.
_PAIRED: Final = (
    "\u1100-\u11ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97c\uac00-\ud7fb"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_VARIANT: Final = "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\u2f00-\u2fdf"
INVISIBLE: Final = "\u00ad\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
_SPECIAL = re.compile(f"[{_VARIANT}{INVISIBLE}]")
_SPECIAL_TO: Final = {
    code: unicodedata.normalize("NFKC", chr(code)) if _SPECIAL.match(chr(code)) else chr(code)
    for block in (range(0x2F00, 0x2FE0), range(0xFF10, 0xFFA0))
    for code in block
} | dict.fromkeys((0xAD, 0x200B, 0x200C, 0x200D, 0x2060, *range(0xFE00, 0xFE10), 0xFEFF, *range(0xE0100, 0xE01F0)))


def _word_class() -> str:
    """Every letter, digit and combining mark outside the paired scripts, as the inside of a character class."""
    plane = "".join(map(chr, range(0x10000)))
    ranges = re.findall(rf"[^\W_{_PAIRED}]+", plane)
    others = re.findall(r"[^\w\x00-\u02ff\u2000-\u2fff\u3400-\ua66e\uac00-\ufb1d]", plane)
    ranges += [other for other in others if unicodedata.category(other) in ("Mn", "Mc") and not _SPECIAL.match(other)]
    return "".join(f"{run[0]}-{run[-1]}" for run in ranges) + "\U00010000-\U0001efff"


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A run, and how a paired one starts. Made at the first use: it takes long, and most commands need none."""
    run = re.compile(f"[{_PAIRED}]+|[{_word_class()}]{{1,{_LONGEST_TERM}}}")
    return run, re.compile(f"[{_PAIRED}]")


_GAP = re.compile(r"[\s,.;:、。，；：]")
_BREAKS_OF_NAMES = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_HUMPS_OF_NAMES = re.compile(r"(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-ZÀ-ÖØ-Þ])(?=[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ])")

_STEMMER = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.stemmer("english")).build()


@dataclass(frozen=True, slots=True)
class Run:
    """A run of neighbouring characters of one sort, at its place in a folded text."""

    text: str
    start: int
    is_paired: bool

    @property
    def end(self) -> int:
        """Where the run ends."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Needle:
    """What one word or phrase looks for: terms at their places and, where only its beginning is known, a last one.
    `stem` is the word's English stem where other forms of it serve as well, else empty."""

    runs: tuple[Run, ...]
    terms: tuple[tuple[int, str], ...]
    open_end: tuple[int, str] | None = None
    stem: str = ""


def whole(text: str) -> str:
    """`text` with lone surrogates, which UTF-8 cannot hold, as question marks."""
    return text.encode("utf-8", "replace").decode()


def fold(text: str) -> str:
    """`text` in the one form that is compared; it may be shorter or longer."""
    return fold_in_place(text)[0]


def fold_in_place(text: str) -> tuple[str, bool]:
    """`fold`, and whether every character of it stands where it stands in `text`."""
    if text.isascii():
        return text.lower(), True
    is_special = _SPECIAL.search(text) is not None
    cased = (text.translate(_SPECIAL_TO) if is_special else text).casefold()
    folded = unicodedata.normalize("NFC", cased)
    return folded, not is_special and len(text) == len(cased) == len(folded)


def runs(folded: str, start: int = 0) -> Iterator[Run]:
    """The runs of a folded text from `start` on, in order."""
    for match in _patterns()[0].finditer(folded, start):
        yield Run(match[0], match.start(), _is_paired(match[0]))


def split(text: str) -> list[str]:
    """The terms of a text, in order."""
    return _terms(fold(text), 0, len(text) * 4)


def slices(text: str) -> Iterator[list[str]]:
    """The terms of a text of any length, in order, a slice at a time."""
    folded, start = fold(text), 0
    while len(folded) - start > _SLICE:
        gap = _GAP.search(folded, start + _SLICE, start + _LONGEST_SLICE)
        end = gap.start() if gap else start + _LONGEST_SLICE
        yield _terms(folded, start, end)
        start = end
    yield _terms(folded, start, len(folded))


def name_rows(name: str) -> list[list[str]]:
    """The terms of a file name, read in up to three ways: as it stands, broken between letters and digits, and broken
    at the humps of CamelCase too. A reading that adds nothing is left out."""
    composed = unicodedata.normalize("NFC", name)
    broken = _BREAKS_OF_NAMES.sub(" ", composed)
    rows: list[list[str]] = []
    for reading in (composed, broken, _HUMPS_OF_NAMES.sub(" ", broken)):
        row = split(reading)
        if row not in rows:
            rows.append(row)
    return rows


def needle(text: str, *, is_prefix: bool = False, is_exact: bool = False) -> Needle | None:
    """What to look for when `text` is asked, None where nothing in it can be found. `is_prefix`: its last word may go
    on where the text ends with it, but for stars; `is_exact`: other forms of an English word do not serve."""
    folded = fold(text.rstrip("*＊") if is_prefix else text)
    found = tuple(runs(folded))
    if not found:
        return None
    *before, last = found
    terms = [term for run in before for term in _terms_of(run)]
    ending = _terms_of(last)
    if last.is_paired and len(ending) > 1:
        # The run may go on in the document, where its last character then does not stand alone.
        return Needle(found, tuple(enumerate(terms + ending[:-1])))
    if last.is_paired or (is_prefix and last.end == len(folded)):
        return Needle(found, tuple(enumerate(terms)), (len(terms), last.text))
    is_word = not before and not is_exact and is_english(last.text)
    return Needle(found, tuple(enumerate(terms + ending)), stem=stem(last.text) if is_word else "")


def run_at(folded: str, at: int) -> Run | None:
    """The rest of the run that `at` lies in, None between runs."""
    match = _patterns()[0].match(folded, at)
    return Run(match[0], at, _is_paired(match[0])) if match else None


def next_run(folded: str, at: int) -> Run | None:
    """The first run that begins at `at` or later."""
    return next(runs(folded, at), None)


def is_word_character(character: str) -> bool:
    """Whether the character belongs to words, not to pairs and not between."""
    run = run_at(character, 0)
    return run is not None and not run.is_paired


def english(found: Iterable[str]) -> set[str]:
    """Those of the terms that have an English stem, each once."""
    # `is_english` written out: it is asked of every term of a document, and most are pairs.
    return {term for term in set(found) if len(term) > 2 and term.isascii() and term.isalpha()}


def is_english(word: str) -> bool:
    """Whether a term has an English stem."""
    return len(word) > 2 and word.isascii() and word.isalpha()


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The English stem of a folded word."""
    stems: list[str] = _STEMMER.analyze(word)
    return stems[0] if stems else word


def _terms(folded: str, start: int, end: int) -> list[str]:
    terms: list[str] = []
    append, extend, join = terms.append, terms.extend, operator.add
    for run in _patterns()[0].findall(folded, start, end):
        if run < "\u1100" or not _is_paired(run):
            append(run)
        else:
            extend(map(join, run, run[1:]))
            append(run[-1])
    return terms


def _terms_of(run: Run) -> list[str]:
    return [*map(operator.add, run.text, run.text[1:]), run.text[-1]] if run.is_paired else [run.text]


def _is_paired(run: str) -> bool:
    return "\u3400" <= run < "\ua000" or _patterns()[1].match(run) is not None
