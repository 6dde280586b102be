"""Stamp: what `stat` said of a file. Equal stamps mean unchanged (the quick check)."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a directory entry is."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symlink"
    SPECIAL = "special"


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size in bytes, times in nanoseconds since 1970, inode number."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """The stamp in what `stat` returned."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, signed(status.st_ino))

    def has_same_content_as(self, other: Stamp) -> bool:
        """Whether size and mtime agree: a change of ctime or inode alone (chmod, restore) is no change of content."""
        return self.size == other.size and self.mtime_ns == other.mtime_ns


def signed(number: int) -> int:
    """An unsigned 64-bit number (some file systems use all bits of an inode) as SQL's signed one."""
    return number - (1 << 64) if number >= 1 << 63 else number


def kind_of(mode: int) -> Kind:
    """What an entry of this `st_mode` is."""
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.FOLDER
    return Kind.SYMLINK if stat.S_ISLNK(mode) else Kind.SPECIAL
