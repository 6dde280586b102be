"""Publishing: the current snapshot and what changed since become the next one, whole or not at all.

The next one is built beside: hard links to the segments, which never change, copies of tantivy's lists of them, then
the changes. It is synced, and one rename that replaces nothing makes it visible. Dying anywhere leaves the old one
current and a build folder that the next publisher removes. It reads no ledger: the changes are handed in.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import tantivy

from tidegate.errors import DiskFull, HeldElsewhere, StateError, TidegateError
from tidegate.index import snapshots
from tidegate.index.layout import SCHEMA, Change, Document, build_schema, to_stored
from tidegate.index.snapshots import Held, Manifest, Since, Snapshot
from tidegate.index.terms import TOKENISER
from tidegate.pool import disk

MEMORY_BYTES: Final = 128_000_000

_LEAST_MEMORY: Final = 15_000_000  # tantivy refuses less
_DOCUMENTS_BETWEEN_LOOKS: Final = 16
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_FULL_IN_WORDS = re.compile(r"no space left|os error 28\b|os error 122\b|storagefull|quotaexceeded", re.IGNORECASE)
_ROOM: Final = 1 << 20  # with less than this free, a writer that died without a word died of it


def _never() -> bool:
    return False


def publish(
    root: Path,
    changes: Iterable[Change],
    *,
    now_ns: int,
    should_stop: Callable[[], bool] = _never,
    memory_bytes: int = MEMORY_BYTES,
    since: Since | None = None,
) -> Snapshot | None:
    """The next snapshot, None where there was nothing to apply.

    `changes` ascend by their number. `should_stop` is asked every few documents, between two numbers: what was applied
    until then is published. `since` holds what `start_change` answered; where that is no longer true (a snapshot
    was found damaged, another publisher came first), nothing is published. A snapshot of another ledger is not
    built upon.
    Raises HeldElsewhere beside another publisher, DiskFull, and StateError where the index cannot be built upon; the
    old snapshot then stays.
    """
    with _full_disk_named(root), snapshots.publisher(root):
        snapshots.sweep(root)
        held = snapshots.hold_current(root)
        ledger = since.ledger if since else ""
        base = held if held is not None and held.manifest.ledger == ledger else None
        try:
            _check_start(base, since)
            first = None if should_stop() else next(rest := iter(changes), None)
            if first is None:
                return None
            return _Build(root, base, memory_bytes, ledger).publish(
                itertools.chain((first,), rest), now_ns, should_stop
            )
        finally:
            if held is not None:
                held.release()


def _check_start(base: Held | None, since: Since | None) -> None:
    actual = base.snapshot.change if base is not None else 0
    if since is not None and since.change != actual:
        raise StateError(
            f"the index is complete up to change {actual}, not {since.change}",
            "ask where to start again, and publish from there",
        )


@dataclass(frozen=True, slots=True)
class _Build:
    """One snapshot in the making."""

    root: Path
    base: Held | None
    memory_bytes: int
    ledger: str

    def publish(self, changes: Iterable[Change], now_ns: int, should_stop: Callable[[], bool]) -> Snapshot:
        folder = self.root / f"build-{uuid.uuid4().hex[:12]}"
        try:
            disk.make_folder(folder)
            self._link(folder)
            change, documents = self._apply(folder, changes, should_stop)
            return self._place(folder, change, documents, now_ns)
        finally:
            # Free of effect once the folder has its number.
            disk.remove_tree(folder)

    def _link(self, folder: Path) -> None:
        if self.base is None:
            return
        for name in self.base.manifest.files:
            source = self.base.snapshot.path / name
            if name.endswith(".json"):
                _copy(source, folder / name)
            else:
                disk.link(source, folder / name)

    def _apply(self, folder: Path, changes: Iterable[Change], should_stop: Callable[[], bool]) -> tuple[int, int]:
        """Apply changes up to a stop: the number reached, and how many documents there are now."""
        writer = _Writer(self.root, folder, self.base, self.memory_bytes)
        try:
            reached = writer.apply(_until_stopped(changes, should_stop))
            return max(reached, self.base.snapshot.change if self.base else 0), writer.finish()
        finally:
            writer.end()

    def _place(self, folder: Path, change: int, documents: int, now_ns: int) -> Snapshot:
        number = snapshots.next_number(self.root)
        files = self._synced(folder)
        manifest = Manifest(number, change, documents, now_ns, SCHEMA, TOKENISER, snapshots.TANTIVY, files, self.ledger)
        _write(folder / snapshots.READER_LOCK, b"")
        _write(folder / snapshots.MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
        disk.sync_folder(folder)
        target = self.root / str(number)
        try:
            disk.rename_new(folder, target)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            raise HeldElsewhere(f"another publisher placed {target} first", "try again from its change on") from error
        disk.sync_folder(self.root)
        return Snapshot(number, change, documents, now_ns, target)

    def _synced(self, folder: Path) -> dict[str, tuple[int, int]]:
        """Sum up every file for the manifest; those that the base has are synced and summed up already."""
        known = self.base.manifest.files if self.base else {}
        return {
            name: known[name]
            if name in known and not name.endswith(".json")
            else snapshots.sum_up(folder / name, is_synced=True)
            for name in disk.list_names(folder)
            if not name.endswith(".lock")
        }


class _Writer:
    """tantivy's writer, whose errors are led back to what they mean."""

    def __init__(self, root: Path, folder: Path, base: Held | None, memory_bytes: int) -> None:
        self._root, self._base = root, base
        try:
            self._index = tantivy.Index.open(str(folder)) if base else tantivy.Index(build_schema(), str(folder))
            self._index.config_reader("manual")
            self._writer = self._index.writer(max(memory_bytes, _LEAST_MEMORY), 1)
        except ValueError as error:
            raise self._meaning(error) from error

    def apply(self, changes: Iterable[Change]) -> int:
        """Apply all, and say the last number. A document takes the place of an earlier one of the same file."""
        add, remove, reached = self._writer.add_document, self._writer.delete_documents_by_term, 0
        for number, change in changes:
            made = to_stored(change) if isinstance(change, Document) else None
            try:
                remove("file", change.file)
                if made is not None:
                    add(made)
            except ValueError as error:
                raise self._meaning(error) from error
            reached = number
        return reached

    def finish(self) -> int:
        """Commit, wait until merging has ended, and say how many documents there are."""
        try:
            self._writer.commit()
            self.end()
            self._index.reload()
            return self._index.searcher().num_docs
        except ValueError as error:
            raise self._meaning(error) from error

    def end(self) -> None:
        """Wait for tantivy's threads: they may write into the folder until then."""
        with contextlib.suppress(ValueError, RuntimeError):  # of a writer that has ended or failed before
            self._writer.wait_merging_threads()

    def _meaning(self, error: ValueError) -> TidegateError:
        if _FULL_IN_WORDS.search(str(error)) or disk.free_bytes(self._root) < _ROOM:
            return _full(self._root)
        if self._base is not None and snapshots.is_damaged(self._base):
            number = self._base.snapshot.number
            snapshots.set_aside(self._root, number)
            return StateError(
                f"snapshot {number} in {self._root} is damaged and was moved aside",
                "ask where to start, and publish again",
            )
        return StateError(
            f"tantivy cannot build in {self._root}: {error}", "try again; remove the index folder if it stays"
        )


def _until_stopped(changes: Iterable[Change], should_stop: Callable[[], bool]) -> Iterator[Change]:
    """The changes up to a stop, which falls between two numbers only."""
    number, since_look = None, 0
    for change in changes:
        if number is not None and change[0] != number:
            if change[0] < number:
                raise ValueError(f"change {change[0]} comes after change {number}")
            if since_look >= _DOCUMENTS_BETWEEN_LOOKS:
                if should_stop():
                    return
                since_look = 0
        number, since_look = change[0], since_look + 1
        yield change


@contextlib.contextmanager
def _full_disk_named(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _full(root) from error


def _full(root: Path) -> DiskFull:
    return DiskFull(f"no room for a new snapshot in {root}; the old one stays", "free some space, then publish again")


def _copy(source: Path, target: Path) -> None:
    descriptor = disk.open_to_read(source)
    try:
        size = disk.stat_open(descriptor).st_size
        _write(target, disk.read_at(descriptor, size, 0))
    finally:
        disk.close(descriptor)


def _write(path: Path, data: bytes) -> None:
    """A new synced file."""
    descriptor = disk.create_new(path)
    try:
        disk.write_all(descriptor, data)
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)
