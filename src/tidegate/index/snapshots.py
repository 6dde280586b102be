"""Snapshots on disk: which is current, who holds one, which may go.

    <root>/<n>/                 a snapshot, placed whole by one rename; the highest whole one is current
        snapshot.json           what this module reads: number, change, documents, published_ns, the versions of schema,
                                tokeniser and tantivy, of every other file its size and CRC-32, and which ledger the
                                change is a number of
        reader.lock             flock, shared by every reader while it is open
        meta.json, <id>.idx …   tantivy's; segments are hard links to the same files of the snapshot before
    <root>/build-<random>/      a snapshot in the making; without a living publisher it is rubbish
    <root>/dropped-<random>/    a snapshot on its way out
    <root>/damaged-<n>/         a snapshot that could not be read, kept for a look, never used
    <root>/publish.lock         flock of the one publisher

A snapshot of a newer format is refused in words, one of an older format counts as none and is built anew. Nothing here
changes a snapshot once it is placed.
"""

from __future__ import annotations

import contextlib
import enum
import re
import uuid
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from tantivy.tantivy import __version__

from tidegate.errors import HeldElsewhere, StateError
from tidegate.index.layout import SCHEMA
from tidegate.index.terms import TOKENISER
from tidegate.pool import disk

MANIFEST: Final = "snapshot.json"
READER_LOCK: Final = "reader.lock"
TANTIVY: Final = __version__  # "tantivy v0.27.0, index_format v7"
PUBLISH_LOCK: Final = "publish.lock"

_NUMBERED = re.compile(r"(?:damaged-)?([0-9]{1,18})(?:-[0-9a-f]+)?")
_MOST_TRIES: Final = 100
_CHUNK: Final = 1 << 20


class Manifest(msgspec.Struct, frozen=True):
    """`snapshot.json`."""

    number: int
    change: int
    documents: int
    published_ns: int
    schema: int
    tokeniser: int
    tantivy: str
    files: dict[str, tuple[int, int]]
    ledger: str = ""


class _Foreign(msgspec.Struct, frozen=True):
    """The one thing that `snapshot.json` of any version says."""

    schema: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One complete published index: everything up to the ledger's `change`."""

    number: int
    change: int
    documents: int
    published_ns: int
    path: Path


@dataclass(frozen=True, slots=True)
class Held:
    """A snapshot that stays on disk until it is released."""

    snapshot: Snapshot
    manifest: Manifest
    descriptor: int

    def release(self) -> None:
        """Let the snapshot go."""
        disk.close(self.descriptor)


class _Age(enum.StrEnum):
    OLDER = "older"
    SAME = "same"
    NEWER = "newer"


# --- looking ---------------------------------------------------------------------------------------------------------


def current(root: Path) -> Snapshot | None:
    """The newest whole snapshot, None where there is none of this format. Raises StateError where a newer Tidegate
    wrote it."""
    found = _newest(root)
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Since:
    """Where `publish` goes on: after which change, and of which ledger the change is a number."""

    change: int
    ledger: str = ""


def start_change(root: Path, ledger: str = "") -> int:
    """The change up to which the index is complete: what `publish` wants is everything after it, and everything where
    it is 0, as it is when the snapshot follows another ledger. A damaged snapshot is moved aside first."""
    held = hold_current(root)
    if held is None:
        return 0
    held.release()
    return held.snapshot.change if held.manifest.ledger == ledger else 0


def hold_current(root: Path) -> Held | None:
    """The newest whole snapshot, held; damaged ones are moved aside on the way to it."""
    for _ in range(_MOST_TRIES):
        _move_unreadable_aside(root)
        found = _newest(root)
        if found is None:
            return None
        descriptor = _hold(found[0].path)
        if descriptor is None:
            continue  # it was dropped between the look and the lock: there is a newer one
        held = Held(*found, descriptor)
        if not _lacks(held):
            return held
        held.release()
        set_aside(root, held.snapshot.number)
    raise StateError(f"the snapshots in {root} change faster than they can be opened", "try again")


def is_damaged(held: Held) -> bool:
    """Whether a file of the snapshot is not what was published, by reading every byte."""
    try:
        return any(
            sum_up(held.snapshot.path / name, is_synced=False) != published
            for name, published in held.manifest.files.items()
        )
    except FileNotFoundError:
        return True


def next_number(root: Path) -> int:
    """A number that no snapshot has, or had before it was moved aside."""
    taken = (match[1] for match in map(_NUMBERED.fullmatch, disk.list_names(root)) if match)
    return max(map(int, taken), default=0) + 1


def sum_up(path: Path, *, is_synced: bool) -> tuple[int, int]:
    """Size and CRC-32 of a file, which is synced first where asked."""
    descriptor = disk.open_to_read(path)
    try:
        if is_synced:
            disk.sync(descriptor)
        size, crc = 0, 0
        while chunk := disk.read_at(descriptor, _CHUNK, size):
            size, crc = size + len(chunk), zlib.crc32(chunk, crc)
        return size, crc
    finally:
        disk.close(descriptor)


def _newest(root: Path) -> tuple[Snapshot, Manifest] | None:
    for number in _numbers(root):
        path = root / str(number)
        manifest = _read_manifest(path)
        if manifest is None:
            continue
        age = _age(manifest)
        if age is _Age.NEWER:
            raise _newer(path, f"tokeniser {manifest.tokeniser}, {manifest.tantivy}")
        if age is _Age.SAME:
            return Snapshot(number, manifest.change, manifest.documents, manifest.published_ns, path), manifest
    return None


def _newer(path: Path, version: str) -> StateError:
    return StateError(
        f"{path} was written by a newer Tidegate ({version})",
        "use that version, or remove the index folder to have it built anew by this one",
    )


def _numbers(root: Path) -> list[int]:
    return sorted((int(name) for name in disk.list_names(root) if name.isascii() and name.isdigit()), reverse=True)


def _read_manifest(path: Path) -> Manifest | None:
    try:
        descriptor = disk.open_to_read(path / MANIFEST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        text = disk.read_at(descriptor, disk.stat_open(descriptor).st_size, 0)
    finally:
        disk.close(descriptor)
    try:
        if (schema := msgspec.json.decode(text, type=_Foreign).schema) > SCHEMA:
            raise _newer(path, f"schema {schema}")
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _age(manifest: Manifest) -> _Age:
    theirs = (manifest.schema, manifest.tokeniser, _format(manifest.tantivy))
    ours = (SCHEMA, TOKENISER, _format(TANTIVY))
    if any(their > our for their, our in zip(theirs, ours, strict=True)):
        return _Age.NEWER
    return _Age.SAME if theirs == ours else _Age.OLDER


def _format(version: str) -> int:
    """The version of the files that this tantivy writes."""
    found = re.search(r"index_format v(\d+)", version)
    return int(found[1]) if found else 0


def _lacks(held: Held) -> bool:
    """Whether a file is missing or has another size; cheap enough for every opening."""
    for name, (size, _) in held.manifest.files.items():
        try:
            if disk.stat_path(held.snapshot.path / name).st_size != size:
                return True
        except FileNotFoundError:
            return True
    return False


# --- locks -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def publisher(root: Path) -> Iterator[None]:
    """Be the one publisher while the block runs; raises HeldElsewhere where there is another."""
    disk.make_folder(root)
    descriptor = disk.open_lock(root / PUBLISH_LOCK)
    try:
        if not disk.try_lock(descriptor):
            raise HeldElsewhere(f"another process is publishing into {root}", "wait for it, or let it do the work")
        try:
            yield
        finally:
            disk.unlock(descriptor)
    finally:
        disk.close(descriptor)


def _hold(path: Path) -> int | None:
    """A descriptor that holds the snapshot, None where it is gone or going."""
    lock = path / READER_LOCK
    try:
        descriptor = disk.open_lock(lock)
    except FileNotFoundError:
        return None
    is_held = False
    try:
        # A lock on a file that was renamed away meanwhile holds nothing.
        is_held = disk.try_lock(descriptor, shared=True) and _is_same(descriptor, lock)
    finally:
        if not is_held:
            disk.close(descriptor)
    return descriptor if is_held else None


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        there = disk.stat_path(path)
    except FileNotFoundError:
        return False
    here = disk.stat_open(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


# --- moving and removing ---------------------------------------------------------------------------------------------


def _move_unreadable_aside(root: Path) -> None:
    for number in _numbers(root):
        if _read_manifest(root / str(number)) is not None:
            return
        set_aside(root, number)


def set_aside(root: Path, number: int) -> None:
    """Put a damaged snapshot where nobody takes it for one; whoever has it open keeps it."""
    target = root / f"damaged-{number}"
    try:
        disk.rename_new(root / str(number), target)
    except FileExistsError:
        disk.rename_new(root / str(number), target.with_name(f"{target.name}-{uuid.uuid4().hex[:8]}"))
    except FileNotFoundError:
        return  # somebody else came first
    disk.sync_folder(root)


def collect(root: Path, keep: int = 2) -> int:
    """How many old snapshots were removed: all but the newest `keep` and those that a reader holds; the current one
    always stays. What dead publishers and collectors left goes too. Dying half way leaves more to collect, no less."""
    newest = current(root)
    old = [number for number in _numbers(root) if newest and number < newest.number][max(keep, 1) - 1 :]
    removed = sum(_drop(root, number) for number in old)
    with contextlib.suppress(HeldElsewhere), publisher(root):
        sweep(root)
    return removed


def sweep(root: Path) -> None:
    """Remove what dead publishers and collectors left; only the publisher may."""
    for name in disk.list_names(root):
        if name.startswith(("build-", "dropped-")):
            disk.remove_tree(root / name)


def _drop(root: Path, number: int) -> bool:
    """Whether the snapshot was free and is gone. Its name goes first, so that no reader finds half of it."""
    path, away = root / str(number), root / f"dropped-{uuid.uuid4().hex[:8]}"
    try:
        descriptor = disk.open_lock(path / READER_LOCK)
    except FileNotFoundError:
        return False
    try:
        if not disk.try_lock(descriptor):
            return False
        disk.rename_new(path, away)
    except FileNotFoundError:
        return False
    finally:
        disk.close(descriptor)
    disk.remove_tree(away)
    return True
