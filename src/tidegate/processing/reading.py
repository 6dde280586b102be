"""Reading one open file once: its SHA-256 and, where wanted, its content in memory, from the same bytes.

Reads with one reused buffer, from the start, without moving what a server keeps in its page cache. Says how far it is,
so that a supervisor can tell a slow share from a dead one. That the file did not change meanwhile is checked outside.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidegate.pool import disk

BUFFER: Final = 1 << 20
SAY_EVERY: Final = 16 << 20
WHOLE: Final = 256 << 20  # a file up to this size is kept in memory; of a larger one only the head
HEAD: Final = 32 << 20

_buffer = memoryview(bytearray(BUFFER))


@dataclass(frozen=True, slots=True)
class Content:
    """What was read: `data` is all of the file, or its head where `is_whole` is false, or nothing if unwanted."""

    digest: bytes
    data: bytes
    is_whole: bool


def read(descriptor: int, size: int, *, is_kept: bool, say: Callable[[int], None]) -> Content:
    """Read the file to its end; `size` is what it should have. Raises OSError, or MemoryError where it does not fit."""
    keep = 0 if not is_kept else size if size <= WHOLE else HEAD
    kept = bytearray()
    digest = hashlib.sha256()
    offset = said = 0
    while count := disk.read_once(descriptor, _buffer, offset):
        piece = _buffer[:count]
        digest.update(piece)
        if len(kept) < keep:
            kept += piece[: keep - len(kept)]
        offset += count
        if offset - said >= SAY_EVERY:
            said = offset
            say(offset)
    return Content(digest.digest(), bytes(kept), len(kept) == offset)
