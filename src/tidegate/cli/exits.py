"""Exit codes: what a script may rely on. The only place that turns errors into them."""

from __future__ import annotations

from enum import IntEnum

from tidegate.errors import ConfigError, HeldElsewhere, PoolUnavailable, TidegateError, UsageError


class Exit(IntEnum):
    """0 all well; 1 failed; 2 usage or configuration; 3 done, but some files failed or are blocked; 10 pool
    unavailable; 11 held elsewhere; 130 interrupted."""

    WELL = 0
    FAILED = 1
    USAGE = 2
    SOME_FAILED = 3
    POOL_UNAVAILABLE = 10
    HELD = 11
    INTERRUPTED = 130


def exit_for(error: TidegateError) -> Exit:
    """The exit code of an error."""
    if isinstance(error, UsageError | ConfigError):
        return Exit.USAGE
    if isinstance(error, PoolUnavailable):
        return Exit.POOL_UNAVAILABLE
    return Exit.HELD if isinstance(error, HeldElsewhere) else Exit.FAILED
