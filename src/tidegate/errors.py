"""Every error Tidegate raises on purpose: its code, what it says, what to try next, whether time can heal it.

    TidegateError
    ├── UsageError               usage
    │   └── QueryError           query
    ├── ConfigError              config
    ├── PoolUnavailable          pool.unavailable
    ├── StateError               state
    │   ├── LedgerNewer          ledger.newer
    │   ├── LedgerCorrupt        ledger.corrupt
    │   └── IndexMissing         index.missing
    ├── HeldElsewhere            held
    ├── DiskFull                 disk.full
    └── ProcessingError          file.<failure>, one code for each Failure

An error says what happened to what (`str(error)`) and carries a `hint`. The ledger turns a failure's `retryable` into a
state; the faces alone turn codes into exit statuses. Nothing here imports anything of Tidegate.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar


class Failure(StrEnum):
    """Why one file could not be processed: the classes that `why` and `retry` speak of."""

    TRANSIENT = "transient"
    BUSY = "busy"
    ENCRYPTED = "encrypted"
    CORRUPT = "corrupt"
    EMPTY = "empty"
    GROWING = "growing"
    TOO_LARGE = "too_large"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"
    PERMISSION = "permission"
    VANISHED = "vanished"

    @property
    def is_retryable(self) -> bool:
        """Whether trying again later, with nothing changed, may help."""
        return self in _RETRYABLE


_RETRYABLE = frozenset({Failure.TRANSIENT, Failure.BUSY, Failure.TIMEOUT, Failure.MEMORY, Failure.CRASH})


class TidegateError(Exception):
    """What went wrong, on what; `hint` is the next thing to try, empty where there is none."""

    code: ClassVar[str] = "error"

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(TidegateError):
    """A command or a call was given something that it cannot use."""

    code = "usage"


class QueryError(UsageError):
    """A search query does not parse."""

    code = "query"


class ConfigError(TidegateError):
    """`tidegate.toml` or the environment says something that is unknown or impossible."""

    code = "config"


class PoolUnavailable(TidegateError):
    """The shared folder is missing, unreadable, not a folder, or not answering."""

    code = "pool.unavailable"


class StateError(TidegateError):
    """The state folder (ledger, index) cannot be used as it is."""

    code = "state"


class LedgerNewer(StateError):
    """The ledger was written by a newer Tidegate; this one leaves it alone."""

    code = "ledger.newer"


class LedgerCorrupt(StateError):
    """The ledger cannot be read; it is put aside, never run on."""

    code = "ledger.corrupt"


class IndexMissing(StateError):
    """There is no whole snapshot to search yet."""

    code = "index.missing"


class HeldElsewhere(TidegateError):
    """Another participant is doing just that, and only one may."""

    code = "held"


class DiskFull(TidegateError):
    """No room was left for Tidegate's own files; nothing acknowledged is lost, and work goes on once there is room."""

    code = "disk.full"


class ProcessingError(TidegateError):
    """One file could not be processed; others go on. `failure` is its class."""

    code = "file"

    def __init__(self, failure: Failure, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.failure = failure
