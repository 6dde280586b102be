"""The box a child runs in: it dies with its supervisor, cannot grow without end, and sees no file but what it is given.

Limits: address space, no core dump, small files only, few descriptors. Landlock, where the kernel has it: reading is
left for the interpreter and its libraries, nothing may be written, no TCP connection made or accepted. All of it is
irrevocable. What is missing is said by the answer, never passed over in silence.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NO_NEW_PRIVS: Final = 38
_LANDLOCK_CREATE: Final = 444
_LANDLOCK_ADD: Final = 445
_LANDLOCK_RESTRICT: Final = 446
_LANDLOCK_VERSION: Final = 1
_LANDLOCK_PATH_BENEATH: Final = 1

_EXECUTE: Final = 1 << 0
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_FS_RIGHTS_BY_ABI: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
_TCP_RIGHTS: Final = 0b11
_SCOPED: Final = 0b11  # abstract Unix sockets and signals, from ABI 6 on

_SYSTEM: Final = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix", "/etc/ld.so.cache", "/etc/localtime", "/dev/null")
_RANDOM: Final = ("/dev/urandom", "/dev/random", "/proc/self", "/sys/devices/system/cpu")

_libc = ctypes.CDLL(None, use_errno=True)


class _RulesetAttributes(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def die_with_parent(parent: int) -> None:
    """End this process when the thread that started it ends; at once where `parent` is gone already."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def limit(memory: int) -> None:
    """Cap the address space at `memory` bytes, what is written at 1 MB, descriptors at 128; no core dumps."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


def landlock_abi() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    return max(0, int(_libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)))


def lock_down() -> bool:
    """Confine this process with Landlock for good; whether the kernel could."""
    abi = landlock_abi()
    if abi == 0:
        return False
    attributes = _RulesetAttributes(
        _FS_RIGHTS_BY_ABI.get(abi, _FS_RIGHTS_BY_ABI[5]), _TCP_RIGHTS if abi >= 4 else 0, _SCOPED if abi >= 6 else 0
    )
    size = 8 if abi < 4 else 16 if abi < 6 else ctypes.sizeof(attributes)
    ruleset = int(_libc.syscall(_LANDLOCK_CREATE, ctypes.byref(attributes), size, 0))
    if ruleset < 0:
        return False
    try:
        for path in {*_SYSTEM, *_RANDOM, sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(None, sys.path)}:
            _allow_reading(ruleset, path)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return int(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0)) == 0
    finally:
        os.close(ruleset)


def _allow_reading(ruleset: int, path: str) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    rule = _PathBeneath(_READ_FILE | _EXECUTE | (_READ_DIR if is_folder else 0), descriptor)
    _libc.syscall(_LANDLOCK_ADD, ruleset, _LANDLOCK_PATH_BENEATH, ctypes.byref(rule), 0)
    os.close(descriptor)
