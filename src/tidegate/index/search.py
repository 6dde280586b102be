"""Searching: one open snapshot, held until it is closed, so that it answers whatever is published or collected.

A searcher may be used by several threads. It moves to a newer snapshot only when told, and never back.
"""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
import tantivy

from tidegate.errors import IndexMissing, StateError, UsageError
from tidegate.index import query, snapshots, snippets
from tidegate.index.layout import Record, build_schema, record_of
from tidegate.index.plan import Filters, Plan
from tidegate.index.snapshots import Held, Snapshot
from tidegate.pool import paths

_MOST_MARKED: Final = 64  # needles that are marked in a snippet
_PORTION: Final = 1 << 16
_SPARE_PORTIONS: Final = 32  # read by one search beyond the first portion of every hit: 2 MB


@dataclass(frozen=True, slots=True)
class Hit:
    """One file that was found. `snippet` is plain text and `marks` are (start, end) in it; `path` is for eyes, `raw` is
    the path."""

    path: str
    raw: bytes
    score: float
    snippet: str
    marks: snippets.Marks
    kind: str
    size: int
    mtime_ns: int
    title: str


@dataclass(frozen=True, slots=True)
class Found:
    """The hits asked for, best first, and how many there are in all."""

    snapshot: int
    total: int
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class _Open:
    held: Held
    searcher: tantivy.Searcher


@dataclass(frozen=True, slots=True)
class _Asked:
    tree: query.Node
    filters: Filters
    limit: int
    offset: int


class Searcher:
    """The current snapshot of `root`, open for searching; a context manager. Raises IndexMissing where there is none
    yet. A damaged snapshot is moved aside for the one before it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._schema = build_schema()
        self._lock = threading.Lock()  # of changes of what is open; searching needs none
        self._opened: _Open | None = _open_or_raise(root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the snapshot go; closing twice is fine."""
        with self._lock:
            opened, self._opened = self._opened, None
            if opened is not None:
                opened.held.release()

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is searched."""
        return self._open().held.snapshot

    def refresh(self) -> bool:
        """Move to a newer snapshot; whether there was one."""
        with self._lock:
            before = self._open()
            newest = snapshots.current(self._root)
            if newest is None or newest.number <= before.held.snapshot.number:
                return False
            opened = _open(self._root)
            if opened is None:
                return False
            is_newer = opened.held.snapshot.number > before.held.snapshot.number
            kept, dropped = (opened, before) if is_newer else (before, opened)
            self._opened = kept
            dropped.held.release()
            return is_newer

    def search(self, text: str, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Found:
        """What `text` finds among what the filters let through. Raises QueryError where it does not parse, UsageError
        for a negative limit or offset or a folder that is no path inside the pool."""
        if limit < 0 or offset < 0:
            raise UsageError("limit and offset of a search cannot be negative", "give 0 or more")
        asked = _Asked(query.parse(text), filters or Filters(), limit, offset)
        while True:
            opened = self._open()
            try:
                return self._answer(opened.held.snapshot.number, opened.searcher, asked)
            except BaseException as error:  # tantivy's panic over a damaged file is no Exception
                if not _is_unreadable(error):
                    raise
                self._leave(opened, error)

    def _answer(self, number: int, searcher: tantivy.Searcher, asked: _Asked) -> Found:
        result = self._run(searcher, asked)
        needles = tuple(itertools.islice(query.needles(asked.tree), _MOST_MARKED))
        spare, hits = iter(range(_SPARE_PORTIONS)), []
        for score, address in result.hits[: asked.limit]:
            record = record_of(searcher.doc(address).get_first("record") or b"")
            hits.append(_hit(record, score, snippets.cut(_affordable(record, spare), needles)))
        total: int = result.count  # type: ignore[attr-defined]  # the stub leaves it out
        return Found(number, total, tuple(hits))

    def _run(self, searcher: tantivy.Searcher, asked: _Asked) -> tantivy.SearchResult:
        # tantivy panics at a limit of 0, and makes room for limit + offset hits before it has one.
        limit, offset = (min(part, searcher.num_docs) for part in (asked.limit, asked.offset))
        plan = Plan(self._schema)
        try:
            return searcher.search(plan.of(asked.tree, asked.filters), max(limit, 1), offset=offset)
        except ValueError as error:
            if "exceeded max expansions" not in str(error):
                raise
        plan = Plan(self._schema, is_loose=True)
        return searcher.search(plan.of(asked.tree, asked.filters), max(limit, 1), offset=offset)

    def _leave(self, opened: _Open, error: BaseException) -> None:
        """Go on with the snapshot before a damaged one; raises StateError where it is not that."""
        with self._lock:
            if self._opened is not opened:
                return  # another thread did it
            snapshot = opened.held.snapshot
            if not snapshots.is_damaged(opened.held):
                raise StateError(f"{snapshot.path} cannot be searched: {error}", "try again; report it if it stays")
            snapshots.set_aside(self._root, snapshot.number)
            opened.held.release()
            self._opened = None
            self._opened = _open_or_raise(self._root)

    def _open(self) -> _Open:
        opened = self._opened
        if opened is None:
            raise StateError(f"the searcher of {self._root} is closed", "open a new one")
        return opened


def _is_unreadable(error: BaseException) -> bool:
    unreadable = isinstance(error, (ValueError, zlib.error, msgspec.DecodeError))
    return unreadable or type(error).__name__ == "PanicException"


def _open_or_raise(root: Path) -> _Open:
    opened = _open(root)
    if opened is None:
        raise IndexMissing(f"there is nothing to search in {root} yet", "run `tidegate run` first")
    return opened


def _open(root: Path) -> _Open | None:
    while (held := snapshots.hold_current(root)) is not None:
        try:
            index = tantivy.Index.open(str(held.snapshot.path))
            index.config_reader("manual")
            return _Open(held, index.searcher())
        except ValueError as error:
            if not snapshots.is_damaged(held):
                held.release()
                raise StateError(f"{held.snapshot.path} cannot be opened: {error}", "try again") from error
            held.release()
            snapshots.set_aside(root, held.snapshot.number)
    return None


def _affordable(record: Record, spare: Iterator[int]) -> Iterator[str]:
    """The record's text: its first portion, and as many more as the whole search has left."""
    portions = record.texts(_PORTION)
    yield next(portions, "")
    for _, portion in zip(spare, portions, strict=False):
        yield portion


def _hit(record: Record, score: float, snippet: snippets.Snippet) -> Hit:
    return Hit(
        path=paths.display(record.path),
        raw=record.path,
        score=score,
        snippet=snippet.text,
        marks=snippet.marks,
        kind=record.kind,
        size=record.size,
        mtime_ns=record.mtime_ns,
        title=record.title,
    )
