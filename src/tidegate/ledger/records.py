"""The values that travel between the ledger and the rooms above it. All frozen; none knows a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tidegate.errors import Failure
from tidegate.ledger.states import Presence, State
from tidegate.pool.paths import PoolPath
from tidegate.pool.settle import Verdict
from tidegate.pool.stamps import Kind, Stamp
from tidegate.results.packs import TextRef

# --- what a scan says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Which processor, in which version, with which settings, a file wants."""

    processor: str
    version: str
    settings: str = ""

    def __str__(self) -> str:
        return f"{self.processor}@{self.version}" + (f":{self.settings}" if self.settings else "")


@dataclass(frozen=True, slots=True)
class FilePlan:
    """What is to be done with a file, and when: smaller `priority`, then smaller `urgency`, then smaller size first."""

    tasks: tuple[TaskPlan, ...]
    priority: int
    urgency: int
    folder: str = ""

    @property
    def key(self) -> str:
        """The tasks in one line; equal keys mean that nothing has to be planned anew."""
        return "+".join(str(task) for task in self.tasks)


@dataclass(frozen=True, slots=True)
class KnownFile:
    """What the ledger knows of a file, as far as a scan compares it."""

    file: int
    kind: Kind
    stamp: Stamp
    plan_key: str
    presence: Presence


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file as a scan saw it."""

    name: bytes
    kind: Kind
    stamp: Stamp
    plan: FilePlan


@dataclass(frozen=True, slots=True)
class FolderChange:
    """What differs in one folder. `expected` is the signature the comparison started from: another one by now means
    that another scanner was here first, and nothing is written."""

    path: PoolPath
    expected: bytes | None
    signature: bytes
    new: tuple[SeenFile, ...] = ()
    changed: tuple[tuple[int, SeenFile], ...] = ()
    refreshed: tuple[tuple[int, Stamp], ...] = ()
    returned: tuple[int, ...] = ()


# --- settling --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A file whose next look is due. `since_s`: how long it has not rested; `moves`: looks that saw it change."""

    file: int
    path: PoolPath
    stamp: Stamp
    since_s: float
    moves: int


@dataclass(frozen=True, slots=True)
class Look:
    """What a look decided: `stamp` is the new one where the file moves."""

    file: int
    verdict: Verdict
    stamp: Stamp


# --- work ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Want:
    """How much to claim: at most `tasks`, and not more than `size` bytes of files beyond the first. A task that may
    have killed a participant is taken only `with_risky`, which is for one that holds nothing else."""

    tasks: int
    size: int
    with_risky: bool = True


NOTHING = Want(0, 0)


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on one task now. Every later write carries `task` and `fence`."""

    task: int
    file: int
    fence: int
    path: PoolPath
    kind: Kind
    stamp: Stamp
    plan: TaskPlan
    attempts: int
    digest: bytes | None


@dataclass(frozen=True, slots=True)
class Result:
    """Where the text of one content lies, under (digest, processor, version, settings)."""

    digest: bytes
    plan: TaskPlan
    ref: TextRef
    kind: str
    title: str


class End(StrEnum):
    """How a claim ends."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    SETTLING = "settling"
    RELEASED = "released"

    @property
    def is_final(self) -> bool:
        """Whether the file was worked on to an end, good or bad."""
        return self in (End.DONE, End.SKIPPED, End.FAILED)


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of one claim. A result is written with DONE, and looked up by digest with SKIPPED."""

    claim: Claim
    end: End
    reason: str = ""
    failure: Failure | None = None
    digest: bytes | None = None
    result: Result | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """What one commit did: tasks whose finish was refused because the claim was lost, and the new claims."""

    stale: frozenset[int]
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """Claims of dead or late owners that were taken back."""

    ready: int
    blocked: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """What is left to do: tasks by state, files known to be still written, seconds until the next look or retry; and
    tasks that are blocked although their file is there."""

    settling: int
    moving: int
    ready: int
    claimed: int
    failed: int
    next_due_s: float | None
    blocked: int = 0


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexedFile:
    """A file whose searchable side changed, with the change's number."""

    change: int
    file: int
    path: PoolPath
    stamp: Stamp
    presence: Presence
    result: Result | None


@dataclass(frozen=True, slots=True)
class Tally:
    """How many files and bytes."""

    files: int
    size: int


@dataclass(frozen=True, slots=True)
class FolderTally:
    """One folder of the pool: its pattern, and files by state."""

    match: str
    states: Mapping[State, Tally]


@dataclass(frozen=True, slots=True)
class Counts:
    """The pool at a glance: every known file once, by its least finished task; and by presence."""

    states: Mapping[State, Tally]
    presence: Mapping[Presence, int]
    folders: tuple[FolderTally, ...] = ()
    failures: Mapping[Failure, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a file's history. `at_ns` is wall time."""

    at_ns: int
    processor: str
    event: str
    detail: str


@dataclass(frozen=True, slots=True)
class TaskView:
    """One task as `why` shows it."""

    plan: TaskPlan
    state: State
    attempts: int
    failure: Failure | None
    reason: str
    owner: str
    due_in_s: float | None


@dataclass(frozen=True, slots=True)
class FileView:
    """One file as `why` shows it."""

    path: PoolPath
    kind: Kind
    stamp: Stamp
    presence: Presence
    digest: bytes | None
    tasks: tuple[TaskView, ...]
    history: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which failed and blocked tasks `retry` frees: below `folder`, of a class; without either, all."""

    below: PoolPath | None = None
    failure: Failure | None = None
