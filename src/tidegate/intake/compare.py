"""Comparing a folder with what the ledger knows of it: its signature first, file by file only where that differs.

A signature is a 16-byte BLAKE2b, keyed by the rules in force, over the folder's sorted names and stamps; so new rules
open every folder once. Pure functions.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidegate.ledger import FilePlan, FolderChange, KnownFile, Presence, SeenFile
from tidegate.pool import Kind, PoolPath, Stamp
from tidegate.pool.stamps import kind_of, signed
from tidegate.pool.walk import Entry

PlanFor = Callable[[PoolPath, Kind, Stamp], FilePlan]


@dataclass(frozen=True, slots=True)
class Differences:
    """A folder's change for the ledger, and how many of its files are as before or were not seen."""

    change: FolderChange
    unchanged: int
    unseen: int


def signature_of(entries: Sequence[Entry], rules: bytes) -> bytes:
    """The signature of a folder's entries, which are sorted by name."""
    numbers = [
        number
        for _, status in entries
        for number in (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    ]
    try:
        packed = struct.pack(f"={len(numbers)}q", *numbers)
    except struct.error:
        packed = struct.pack(f"={len(numbers)}q", *map(signed, numbers))
    digest = hashlib.blake2b(b"\0".join([name for name, _ in entries]), digest_size=16, key=rules)
    digest.update(packed)
    return digest.digest()


@dataclass(frozen=True, slots=True)
class Look:
    """One folder as a scan found it: `expected` is the signature that the ledger had."""

    folder: PoolPath
    entries: Sequence[Entry]
    expected: bytes | None
    signature: bytes


def compare(look: Look, known: Mapping[bytes, KnownFile], plan_for: PlanFor) -> Differences:
    """What differs between a folder's entries and the files known in it."""
    new, changed, refreshed, returned = [], [], [], []
    unchanged = 0
    for name, status in look.entries:
        stamp, kind = Stamp.of(status), kind_of(status.st_mode)
        seen = SeenFile(name, kind, stamp, plan_for(look.folder / name, kind, stamp))
        before = known.get(name)
        if before is None:
            new.append(seen)
        elif is_changed(before, seen):
            changed.append((before.file, seen))
        else:
            unchanged += 1
            if before.stamp != stamp:
                refreshed.append((before.file, stamp))
            if before.presence is not Presence.PRESENT:
                returned.append(before.file)
    parts = (tuple(new), tuple(changed), tuple(refreshed), tuple(returned))
    change = FolderChange(look.folder, look.expected, look.signature, *parts)
    return Differences(change, unchanged, unseen=len(known) - len(changed) - unchanged)


def is_changed(before: KnownFile, seen: SeenFile) -> bool:
    """The quick check: another kind, size, mtime or plan. A change of ctime or inode alone is none."""
    is_same = before.kind is seen.kind and before.stamp.has_same_content_as(seen.stamp)
    return not is_same or before.plan_key != seen.plan.key
