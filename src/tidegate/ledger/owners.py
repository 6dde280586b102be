"""Owner: who holds a claim. Name, process, boot and chance; alive as long as it holds the flock of its file.

    <state>/owners/<nonce>      empty; locked by its participant from start to end

Whoever can take that lock knows that the owner is dead and need not wait for the lease. Two participants may carry one
name for people (`TIDEGATE_PARTICIPANT`); the nonce keeps them apart.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tidegate.ledger.clock import Clock, nonce
from tidegate.pool import disk

FOLDER: Final = "owners"


class Owner:
    """This participant; `id` stands in the ledger and in receipts. Ends with `close`, or with the process.

    `name` is for people, and the host's where none is given.
    """

    def __init__(self, state: Path, clock: Clock, name: str = "") -> None:
        self.nonce = nonce()
        self.id = f"{name or socket.gethostname()}:{os.getpid()}:{clock.boot[:8]}:{self.nonce}"
        self._path = state / FOLDER / self.nonce
        disk.make_folder(self._path.parent)
        self._descriptor = _locked(self._path)

    def close(self) -> None:
        """Say that this owner is gone. Claims that it still holds are free for recovery from now on."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                disk.remove(self._path)
            finally:
                os.close(descriptor)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock of `path`. Someone who looks for dead owners may remove the file between
    opening and locking it, so the name is looked at again under the lock."""
    while True:
        descriptor = disk.open_lock(path)
        is_ours = False
        try:
            disk.lock(descriptor)
            is_ours = os.path.samestat(disk.stat_path(path), disk.stat_open(descriptor))
        except FileNotFoundError:
            continue
        finally:
            if not is_ours:
                os.close(descriptor)
        if is_ours:
            return descriptor


def living(state: Path) -> frozenset[str]:
    """The nonces of participants that run now; files of dead ones are removed."""
    return frozenset(name for name in disk.list_names(state / FOLDER) if not _is_free(state / FOLDER / name))


def dead_among(state: Path, owners: Iterable[str]) -> list[str]:
    """Those of `owners` that are provably dead on this host."""
    alive = living(state)
    return [owner for owner in owners if owner.rpartition(":")[2] not in alive]


def _is_free(path: Path) -> bool:
    try:
        descriptor = disk.open_to_read(path)
    except FileNotFoundError:
        return True
    try:
        if not disk.try_lock(descriptor, shared=True):
            return False
        disk.remove(path)
        return True
    finally:
        os.close(descriptor)
