"""The clocks of one host. Claims live on CLOCK_BOOTTIME, which no administrator moves and which counts suspend.

A boot time is only comparable within one boot; the boot id says which. Wall time is for people and file names only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown-boot"


@dataclass(frozen=True, slots=True)
class Clock:
    """`now_ns` counts since boot, `wall_ns` since 1970; tests move both."""

    now_ns: Callable[[], int]
    wall_ns: Callable[[], int]
    boot: str

    @classmethod
    def of_host(cls) -> Clock:
        """The clocks of the machine this runs on."""
        return cls(lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns, _boot_id())


def nonce() -> str:
    """Eight hex digits of chance, to tell one participant from every other."""
    return os.urandom(4).hex()
