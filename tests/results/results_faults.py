"""A harness that lets an act fail at its first file operation, its second, its third …, until a run passes.

Both `tests/results` and `tests/pool` hold their acts to it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.pool import disk


class Crash(BaseException):
    """The process dies here: nothing that comes after is run by anyone, so nothing may be caught or cleaned up."""


FAULTS: dict[str, Callable[[], BaseException]] = {
    "crash": Crash,
    "EIO": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "ENOSPC": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "EMFILE": lambda: OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
}


@dataclass
class Fault:
    """Raises at operation `at` (from 1); a crash stays one: every later operation raises too."""

    name: str
    at: int
    seen: list[str] = field(default_factory=list)

    def __call__(self, operation: str, _target: object) -> int | None:
        self.seen.append(operation)
        if len(self.seen) == self.at or (self.name == "crash" and len(self.seen) > self.at):
            raise FAULTS[self.name]()
        return None

    @property
    def has_struck(self) -> bool:
        return len(self.seen) >= self.at


def at_every_operation(fault: str, act: Callable[[int], None], check: Callable[[int, bool], None]) -> int:
    """Run `act(1)` failing at operation 1, `act(2)` at operation 2 …, until one passes untouched; after each,
    `check(run, was_acknowledged)`. How many operations there were. An act that swallows the fault is a mistake,
    unless the fault struck after what matters (`check` decides)."""
    for at in range(1, 1000):
        strike = Fault(fault, at)
        try:
            with disk.watch_operations(strike):
                act(at)
            acknowledged = True
        except Crash:
            acknowledged = False
        except Exception:  # noqa: BLE001
            acknowledged = False
        check(at, acknowledged)
        if not strike.has_struck:
            assert acknowledged, "an untouched run failed"
            return at - 1
    raise AssertionError("the act never ends")


def one_byte_at_a_time(operation: str, _target: object) -> int | None:
    """Every read and write is short: one byte."""
    return 1 if operation in ("read", "write") else None
