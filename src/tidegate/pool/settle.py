"""Settling: when a file may be read. One gate for every way in.

A file is ready when two looks at least the settle window apart saw the same stamp. Looks are batched, so ten thousand
files settle in one window. The decision is a plain function; looking only asks `lstat`.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tidegate.pool import disk
from tidegate.pool.paths import PoolPath
from tidegate.pool.stamps import Stamp

GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV})


class Verdict(StrEnum):
    """What two looks at a file say."""

    RESTS = "rests"
    MOVES = "moves"
    GROWING = "growing"
    GONE = "gone"
    UNKNOWN = "unknown"


Seen = Stamp | OSError | None


def look_at_all(root: int, paths: Sequence[PoolPath]) -> list[Seen]:
    """For each path its stamp now, None where it is gone, the error where the share did not answer.

    Files of one folder are looked at through one descriptor.
    """
    seen: dict[PoolPath, Seen] = {}
    by_folder: dict[PoolPath, list[PoolPath]] = {}
    for path in paths:
        by_folder.setdefault(path.folder, []).append(path)
    for folder, inside in by_folder.items():
        seen.update(zip(inside, _look_in(root, folder, [path.name for path in inside]), strict=True))
    return [seen[path] for path in paths]


def _look_in(root: int, folder: PoolPath, names: Sequence[bytes]) -> list[Seen]:
    try:
        descriptor = disk.open_beneath(root, folder.raw, os.O_PATH | os.O_DIRECTORY)
    except OSError as error:
        return [_gone_or(error)] * len(names)
    try:
        return [_look(descriptor, name) for name in names]
    finally:
        os.close(descriptor)


def _look(folder: int, name: bytes) -> Seen:
    try:
        return Stamp.of(disk.stat_in(folder, name))
    except OSError as error:
        return _gone_or(error)


def _gone_or(error: OSError) -> Seen:
    return None if error.errno in GONE else error


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a file must rest, and how long it may go on changing, in seconds."""

    window_s: float
    longest_s: float


def judge(before: Stamp, now: Stamp | OSError | None, unsettled_for_s: float, patience: Patience) -> Verdict:
    """What a second look, taken at least the window after the first, means for a file unsettled for that long."""
    if now is None:
        return Verdict.GONE
    if isinstance(now, OSError):
        return Verdict.UNKNOWN
    if now == before:
        return Verdict.RESTS
    return Verdict.GROWING if unsettled_for_s > patience.longest_s else Verdict.MOVES
