"""States of a task, presence of a file, and what may follow what. Plain values and functions; the stores obey them.

settling → ready → claimed → done | skipped | failed → ready … → blocked        present → suspected → missing
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tidegate.errors import Failure


class State(StrEnum):
    """Where a task stands, from least to most finished; `status` counts a file by its least finished task."""

    SETTLING = "settling"
    READY = "ready"
    CLAIMED = "claimed"
    FAILED = "failed"
    BLOCKED = "blocked"
    SKIPPED = "skipped"
    DONE = "done"


class Presence(StrEnum):
    """Whether the last look saw the file."""

    PRESENT = "present"
    SUSPECTED = "suspected"
    MISSING = "missing"


RESTING: Final = frozenset({State.DONE, State.SKIPPED, State.BLOCKED})

FOLLOWS: Final[Mapping[State, frozenset[State]]] = {
    State.SETTLING: frozenset({State.READY, State.BLOCKED}),
    State.READY: frozenset({State.CLAIMED, State.SETTLING}),
    State.CLAIMED: frozenset(State),
    State.FAILED: frozenset({State.READY, State.SETTLING}),
    State.BLOCKED: frozenset({State.SETTLING}),
    State.SKIPPED: frozenset({State.SETTLING}),
    State.DONE: frozenset({State.SETTLING}),
}
"""From each state, the states that may come next; a changed file leads every one of them back to settling."""

BACKOFF_FIRST_S: Final = 2.0
BACKOFF_LONGEST_S: Final = 3600.0


def backoff_s(attempts: int, chance: float) -> float:
    """Seconds to wait after `attempts` attempts: four times longer each time, spread by `chance` in [0, 1)."""
    longest: float = min(BACKOFF_LONGEST_S, BACKOFF_FIRST_S * 4.0 ** max(0, attempts - 1))
    return longest * (0.5 + chance / 2)


def after_failure(failure: Failure, attempts: int, limit: int) -> State:
    """FAILED is tried again later by itself; BLOCKED waits until the file or a person changes something."""
    return State.FAILED if failure.is_retryable and attempts < limit else State.BLOCKED
