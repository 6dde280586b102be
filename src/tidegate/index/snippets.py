"""A piece of a hit's text around what was asked for, and where in it the marks go. Pure.

The piece is plain text: blanks collapsed, control and direction characters blank, `…` where it was cut. Marks are
(start, end) in it, in order, never overlapping. Whoever shows it escapes it and draws the marks.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate.index import terms

Marks = tuple[tuple[int, int], ...]

WIDTH: Final = 160

_MOST_MATCHES: Final = 200  # of one needle
_MOST_IN_ALL: Final = 2_000
_CLUSTER_WIDTH: Final = 120  # the rest of the width is context
_LEAD: Final = 16  # how far a cut looks for the edge of a word
_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2061-\u2069]")
_BLANKS = re.compile("  +")
_PIECE = re.compile(r"(?s).{1,400}(?=[\s\u3400-\u9fff]|\Z)|.{1,400}")
# What may become one character, or none, when folded: hangul letters; anything with what composes or is left out.
_JOINING: Final = (
    "\u0300-\u036f\u0653-\u0655\u093c\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0c56\u0cc2\u0cd5\u0cd6\u0d3e\u0d57"
    "\u0dca\u0dcf\u0ddf\u102e\u1b35\u3099\u309a\uff9e\uff9f"
)
_CLUSTER = re.compile(rf"(?s)[\u1100-\u11ff]+|.[{_JOINING}{terms.INVISIBLE}]*")


@dataclass(frozen=True, slots=True)
class Snippet:
    """The piece and its marks."""

    text: str
    marks: Marks


@dataclass(frozen=True, slots=True)
class _Match:
    start: int
    end: int
    needle: int


def cut(portions: Iterable[str], needles: Sequence[terms.Needle]) -> Snippet:
    """The piece of the first portion in which a needle is found, around the densest cluster; else the beginning.
    Asks for no more portions than it needs."""
    beginning = None
    for portion in portions:
        beginning = portion if beginning is None else beginning
        text = _Text(portion)
        if matches := text.find(needles):
            return text.piece_around(matches)
    return _tidied((beginning or "")[:WIDTH], (), ("", "…" if len(beginning or "") > WIDTH else ""))


class _Text:
    """A portion and its fold; places in the fold are led back to places in the portion."""

    def __init__(self, raw: str) -> None:
        self._raw = raw
        self._folded, self._is_in_place = terms.fold_in_place(raw)
        self._pieces: list[tuple[int, int]] = []

    def find(self, needles: Sequence[terms.Needle]) -> list[_Match]:
        found = (
            _Match(start, end, which)
            for which, needle in enumerate(needles)
            for start, end in itertools.islice(_places(self._folded, needle), _MOST_MATCHES)
        )
        return sorted(itertools.islice(found, _MOST_IN_ALL), key=lambda match: (match.start, -match.end))

    def piece_around(self, matches: Sequence[_Match]) -> Snippet:
        cluster = _densest(matches)
        spare = max(0, WIDTH - (cluster[-1].end - cluster[0].start)) // 2
        start = self._edge(max(0, cluster[0].start - spare), cluster[0].start)
        end = min(len(self._folded), start + min(max(WIDTH, cluster[-1].end - start), 2 * WIDTH))
        marks = [(self._place(match.start), self._place(match.end)) for match in matches if start <= match.start < end]
        first, last = self._place(start), self._place(end)
        ends = ("…" if first > 0 else "", "…" if last < len(self._raw) else "")
        return _tidied(self._raw[first:last], [(a - first, min(b, last) - first) for a, b in marks], ends)

    def _edge(self, start: int, latest: int) -> int:
        """A start that cuts no word in two, if there is one near."""
        if start == 0:
            return 0
        blank = _BLANK.search(self._folded, start, min(start + _LEAD, latest))
        return blank.end() if blank else start

    def _place(self, folded: int) -> int:
        if self._is_in_place:
            return folded
        self._pieces = self._pieces or list(_pieces(self._raw))
        folded_at, raw_at = self._pieces[bisect.bisect_right(self._pieces, folded, key=lambda piece: piece[0]) - 1]
        piece = _PIECE.match(self._raw, raw_at)
        for cluster in _CLUSTER.finditer(piece[0]) if piece else ():
            if folded_at >= folded:
                return raw_at + cluster.start()
            folded_at += len(terms.fold(cluster[0]))
        return raw_at + (len(piece[0]) if piece else 0)


def _pieces(raw: str) -> Iterator[tuple[int, int]]:
    """Where pieces begin: in the fold, and in the text itself."""
    folded_at = 0
    for piece in _PIECE.finditer(raw):
        yield folded_at, piece.start()
        folded_at += len(terms.fold(piece[0]))
    yield folded_at, len(raw)


def _places(folded: str, needle: terms.Needle) -> Iterator[tuple[int, int]]:
    literal = _literal(needle)
    is_word, at = not needle.runs[0].is_paired, folded.find(literal)
    while at >= 0:
        begins = not is_word or at == 0 or not terms.is_word_character(folded[at - 1])
        end = _end(folded, at, needle) if begins else None
        if end is not None:
            yield at, end
        at = folded.find(literal, end if end is not None else at + 1)


def _literal(needle: terms.Needle) -> str:
    """What every place that the needle finds begins with."""
    first = needle.runs[0].text
    if not needle.stem:
        return first
    root = "".join(
        a for a, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, needle.stem, strict=False))
    )
    return (root[:-1] if len(root) > 2 and root[-1] in "eiy" else root) or first


def _end(folded: str, at: int, needle: terms.Needle) -> int | None:
    """Where the needle's place at `at` ends, None where it is not one."""
    if len(needle.runs) == 1 and needle.runs[0].is_paired:
        return at + len(needle.runs[0].text)  # pairs may begin and end inside a run: to stand here is enough
    run: terms.Run | None = terms.run_at(folded, at)
    for wanted in needle.runs[:-1]:
        if run is None or run.text != wanted.text:
            return None
        run = terms.next_run(folded, run.end)
    last = needle.runs[-1]
    if run is None or run.is_paired != last.is_paired:
        return None
    if last.is_paired:
        return run.start + len(last.text) if run.text.startswith(last.text) else None
    if run.text == last.text or (needle.open_end is not None and run.text.startswith(last.text)):
        return run.end
    return run.end if needle.stem and terms.is_english(run.text) and terms.stem(run.text) == needle.stem else None


def _densest(matches: Sequence[_Match]) -> Sequence[_Match]:
    """The neighbouring matches within one width that have most needles, then most matches, then come first."""
    best, best_worth, first = matches[:1], (0, 0), 0
    for last, match in enumerate(matches):
        while match.end - matches[first].start > _CLUSTER_WIDTH and first < last:
            first += 1
        cluster = matches[first : last + 1] if last - first < WIDTH else matches[first : first + WIDTH]
        worth = (len({found.needle for found in cluster}), len(cluster))
        if worth > best_worth:
            best, best_worth = cluster, worth
    return best


def _tidied(piece: str, marks: Iterable[tuple[int, int]], ends: tuple[str, str]) -> Snippet:
    """The piece with its blanks collapsed, and the marks moved along and made one where they touch or overlap."""
    piece, at, shift = _BLANK.sub(" ", piece), 0, len(ends[0])
    parts, shifts = [ends[0]], [(0, shift)]
    for blank in _BLANKS.finditer(piece):
        parts.append(piece[at : blank.start() + 1])
        at = blank.end()
        shift -= at - blank.start() - 1
        shifts.append((at, shift))
    text = "".join((*parts, piece[at:], ends[1]))

    def moved(place: int) -> int:
        return place + shifts[bisect.bisect_right(shifts, place, key=lambda shift: shift[0]) - 1][1]

    return Snippet(text, tuple(_merged((moved(start), moved(end - 1) + 1) for start, end in marks if end > start)))


def _merged(marks: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for start, end in marks:
        if current is not None and start <= current[1]:
            current = (current[0], max(current[1], end))
            continue
        if current is not None:
            yield current
        current = (start, end)
    if current is not None:
        yield current
