"""Settling: when a file may be read. One gate for every way in.

A file is ready when two looks at least the settle window apart saw the same stamp. Looks are batched, so ten thousand
files settle in one window. The decision is a plain function; `look` only asks `lstat`.
"""

from __future__ import annotations

import errno
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


def look(root: int, path: PoolPath) -> Stamp | OSError | None:
    """The file's stamp now, None where it is gone, the error where the share did not answer."""
    try:
        return Stamp.of(disk.stat_beneath(root, path.raw))
    except OSError as error:
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
