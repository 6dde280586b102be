"""On what kind of file system a folder lies, asked of the kernel with statfs(2).

Decides two things: whether a pool is a network mount (settling waits longer there), and whether a state folder may
live where it is told to. SQLite's WAL needs shared memory and honest locks, so only known local file systems will do.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from tidegate.errors import StateError

SETTLE_LOCAL_S: Final = 2.0
SETTLE_NETWORK_S: Final = 10.0  # two stats within an attribute cache's life are one look

LOCAL: Final = {
    0xEF53: "ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0x794C7630: "overlayfs",
    0x2FC12FC1: "zfs",
    0xF2F52010: "f2fs",
    0xCA451A4E: "bcachefs",
    0x3153464A: "jfs",
    0x52654973: "reiserfs",
}
REMOTE: Final = {
    0x6969: "nfs",
    0x517B: "smb",
    0xFF534D42: "cifs",
    0xFE534D42: "smb2",
    0x65735546: "fuse",
    0x01021997: "9p",
    0x00C36400: "ceph",
    0x5346414F: "afs",
    0x47504653: "gpfs",
    0x0BD00BD0: "lustre",
}

_libc = ctypes.CDLL(None, use_errno=True)


def filesystem_of(path: Path) -> str:
    """The name of the file system that holds `path`; its number in hex where it is not known here."""
    answer = (ctypes.c_long * 64)()
    if _libc.statfs(os.fsencode(path), ctypes.byref(answer)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(path))
    number = answer[0] & 0xFFFFFFFF
    return LOCAL.get(number) or REMOTE.get(number) or hex(number)


def is_network(filesystem: str) -> bool:
    """Whether a file system of this name may lie behind a network (an unknown one counts as such)."""
    return filesystem not in LOCAL.values()


def settle_window_s(pool: Path) -> float:
    """How long a file must rest where nothing else was set; a pool that does not answer counts as remote."""
    try:
        is_remote = is_network(filesystem_of(pool))
    except OSError:
        is_remote = True
    return SETTLE_NETWORK_S if is_remote else SETTLE_LOCAL_S


def check_outside(what: str, folder: Path, pool: Path) -> None:
    """Raise StateError where `folder`, which is Tidegate's own, lies inside the pool."""
    if folder.resolve().is_relative_to(pool.resolve()):
        raise StateError(
            f"the {what} {folder} lies inside the pool {pool}",
            "nothing of Tidegate's own goes there: choose a folder outside it",
        )


def check_state_place(state: Path, pool: Path, filesystem: str) -> None:
    """Raise StateError where `state` lies inside the pool or on a `filesystem` that is not known to be local."""
    check_outside("state folder", state, pool)
    if is_network(filesystem):
        raise StateError(
            f"the state folder {state} lies on {filesystem}, where a ledger is not safe",
            "choose a folder on a local disk with --state DIR",
        )
