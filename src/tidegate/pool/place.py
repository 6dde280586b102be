"""Placing a file whole: a reader finds the complete file under its name, or no such name.

Write under a temporary name in the same folder, fsync, rename onto a name that must not exist, fsync the folder. What a
crash leaves is a `*.part` file, which `clear_parts` removes. After an error the temporary file is discarded, never
synced again: the kernel may have dropped its pages.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tidegate.errors import DiskFull
from tidegate.pool import disk

PART = ".part"


def place_file(target: Path, content: Iterable[bytes | memoryview], nonce: str) -> None:
    """Write `content` whole and durable under `target`, whose folder exists.

    Raises FileExistsError where the name is taken, DiskFull where no room is left, OSError otherwise; then nothing
    stands under the name. `nonce` makes the temporary name unique among all writers.
    """
    part = target.with_name(f".{target.name}.{nonce}{PART}")
    try:
        with full_disk_named(target):
            _write(part, content)
            disk.rename_new(part, target)
            disk.sync_folder(target.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            disk.remove(part)
        raise


def _write(part: Path, content: Iterable[bytes | memoryview]) -> None:
    descriptor = disk.create_new(part)
    try:
        for piece in content:
            disk.write_all(descriptor, piece)
        disk.sync(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    disk.close(descriptor)


def make_durable_folder(path: Path) -> None:
    """Make the folder and its parents, and make the new names survive a power cut. Raises DiskFull or OSError."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    with full_disk_named(path):
        disk.make_folder(path)
        for folder in reversed(missing):
            disk.sync_folder(folder.parent)


def clear_parts(folder: Path, *, is_alive: frozenset[str] = frozenset()) -> int:
    """Remove temporary files that a dead writer left in `folder`; those with a nonce in `is_alive` stay. How many."""
    removed = 0
    for name in disk.list_names(folder):
        if name.startswith(".") and name.endswith(PART) and name[: -len(PART)].rpartition(".")[2] not in is_alive:
            disk.remove(folder / name)
            removed += 1
    return removed


@contextlib.contextmanager
def full_disk_named(path: Path) -> Iterator[None]:
    """Turn ENOSPC and EDQUOT into DiskFull, naming `path`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(f"no room left for {path}", "free some space; work goes on by itself") from error
        raise
