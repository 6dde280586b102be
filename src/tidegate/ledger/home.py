"""The state folder: where it may lie, and whose it is.

    <state>/pool      the real path of the pool, as bytes; written once, whole, under the ledger's ticket

Refuses a folder inside the pool, one on a file system that is not known to be local, and one of another pool.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tidegate.errors import StateError
from tidegate.ledger.clock import nonce
from tidegate.ledger.sqlite_store import FILE, TICKET
from tidegate.pool import disk
from tidegate.pool.mounts import check_outside, check_state_place, filesystem_of
from tidegate.pool.place import clear_parts, full_disk_named, place_file

MARKER: Final = "pool"


def has_ledger(state: Path) -> bool:
    """Whether the pool of this state folder was ever scanned."""
    return (state / FILE).exists()


def make_home(state: Path, pool: Path, outputs: Path) -> None:
    """Make the state folder of `pool`, or find that it is that. Raises StateError, or DiskFull."""
    existing = next(folder for folder in (state, *state.parents) if folder.exists())
    check_state_place(state, pool, filesystem_of(existing))
    check_outside("outputs folder", outputs, pool)
    try:
        with full_disk_named(state):
            disk.make_folder(state)
            remember_pool(state, pool)
    except OSError as error:
        raise StateError(
            f"the state folder {state} cannot be used: {error.strerror or error}",
            "check its rights, or choose another with --state DIR",
        ) from error


def remember_pool(state: Path, pool: Path) -> None:
    """Write down whose state this is; raises StateError where it is another pool's."""
    marker, path = state / MARKER, os.fsencode(pool.resolve())
    known = _known_pool(marker) or _write_marker(state, marker, path)
    if known != path:
        raise StateError(
            f"the state folder {state} belongs to the pool {os.fsdecode(known)}",
            "choose another with --state DIR, or remove that folder if the pool has moved for good",
        )


def _known_pool(marker: Path) -> bytes:
    return marker.read_bytes() if marker.exists() else b""


def _write_marker(state: Path, marker: Path, path: bytes) -> bytes:
    """Write the marker whole, unless somebody was faster; what it says."""
    ticket = disk.open_lock(state / TICKET)
    try:
        disk.lock(ticket)
        if known := _known_pool(marker):
            return known
        clear_parts(state)
        disk.remove(marker)  # an empty one
        place_file(marker, [path], nonce())
        return path
    finally:
        os.close(ticket)
