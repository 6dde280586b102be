"""What the ledger's tests share: a clock that tests move, stores to open, and short ways to say what happens."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tidegate.errors import Failure
from tidegate.ledger import (
    NOTHING,
    Claim,
    Clock,
    End,
    FilePlan,
    FileView,
    Finish,
    FolderChange,
    Ledger,
    Look,
    Result,
    SeenFile,
    SqliteLedger,
    State,
    TaskPlan,
    Terms,
    Want,
)
from tidegate.pool import Kind, PoolPath, Stamp
from tidegate.pool.settle import Verdict
from tidegate.results.packs import TextRef

SECOND = 1_000_000_000
TEXT = TaskPlan("text", "1")
EVERYTHING = 1 << 60
OWNER, OTHER = "host:1:boot:aaaaaaaa", "host:2:boot:bbbbbbbb"


class HandClock:
    """A clock that stands until it is moved."""

    def __init__(self, boot: str = "boot-1") -> None:
        self.now_ns = 1000 * SECOND
        self.wall_ns = 1_800_000_000 * SECOND
        self.boot = boot

    def move(self, seconds: float) -> None:
        self.now_ns += int(seconds * SECOND)
        self.wall_ns += int(seconds * SECOND)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now_ns, lambda: self.wall_ns, self.boot)


class Stores(Protocol):
    """One empty store for a test; any number of ledgers may be opened on it."""

    def open(self, terms: Terms, clock: Clock, chance: random.Random) -> Ledger: ...

    def close(self) -> None: ...


class SqliteStores:
    """The embedded store in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._opened: list[SqliteLedger] = []

    def open(self, terms: Terms, clock: Clock, chance: random.Random) -> SqliteLedger:
        first, _ = SqliteLedger.open(self.state, terms, clock)
        first.close()
        self._opened.append(SqliteLedger(self.state, terms, clock, chance))
        return self._opened[-1]

    def close(self) -> None:
        for ledger in self._opened:
            ledger.close()


KINDS_OF_STORES = {"sqlite": SqliteStores}


@dataclass(frozen=True)
class Item:
    """A file to be found: what a test cares about, the rest by default."""

    path: bytes
    size: int = 100
    priority: int = 1
    urgency: int = 0
    tasks: tuple[TaskPlan, ...] = (TEXT,)
    folder: str = ""
    mtime_ns: int = 1
    ctime_ns: int = 1
    inode: int = 1
    kind: Kind = Kind.FILE

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.size, self.mtime_ns, self.ctime_ns, self.inode)

    @property
    def seen(self) -> SeenFile:
        plan = FilePlan(self.tasks, self.priority, self.urgency, self.folder)
        return SeenFile(PoolPath(self.path).name, self.kind, self.stamp, plan)


@dataclass
class World:
    """A ledger, its clock, and verbs for tests."""

    ledger: Ledger
    time: HandClock
    terms: Terms
    claims: dict[bytes, Claim] = field(default_factory=dict)

    def find(self, *items: Item | bytes) -> None:
        """A scan sees these files for the first time."""
        by_folder: dict[PoolPath, list[SeenFile]] = {}
        for item in map(as_item, items):
            by_folder.setdefault(PoolPath(item.path).folder, []).append(item.seen)
        changes = [self.change_of(folder, new=tuple(seen)) for folder, seen in by_folder.items()]
        assert self.ledger.register(changes) == len(changes)

    def change_of(self, folder: PoolPath, **parts: object) -> FolderChange:
        """A change of `folder` that starts from what the ledger knows."""
        expected = self.ledger.signature(folder)
        number = int.from_bytes(expected, "big") + 1 if expected else 1
        return FolderChange(folder, expected, number.to_bytes(16, "big"), **parts)  # type: ignore[arg-type]

    def file_id(self, path: bytes) -> int:
        return self.ledger.known_files(PoolPath(path).folder)[PoolPath(path).name].file

    def rescan(self, item: Item) -> None:
        """A scan sees that a known file has changed."""
        change = self.change_of(PoolPath(item.path).folder, changed=((self.file_id(item.path), item.seen),))
        assert self.ledger.register([change]) == 1

    def refresh(self, item: Item) -> None:
        """A scan sees that only ctime or inode of a known file changed."""
        change = self.change_of(PoolPath(item.path).folder, refreshed=((self.file_id(item.path), item.stamp),))
        assert self.ledger.register([change]) == 1

    def see_again(self, path: bytes) -> None:
        """A scan sees a file that was gone."""
        change = self.change_of(PoolPath(path).folder, returned=(self.file_id(path),))
        assert self.ledger.register([change]) == 1

    def look(self, path: bytes, verdict: Verdict, stamp: Stamp | None = None) -> None:
        """A look at one file decided this."""
        known = self.ledger.known_files(PoolPath(path).folder)[PoolPath(path).name]
        self.ledger.settle([Look(known.file, verdict, stamp or known.stamp)])

    def rest(self) -> None:
        """The settle window passes and every file rests."""
        self.time.move(self.terms.settle_ns / SECOND)
        while due := self.ledger.unsettled(1000):
            self.ledger.settle([Look(file.file, Verdict.RESTS, file.stamp) for file in due])

    def ready(self, *items: Item | bytes) -> None:
        """These files are found and rest."""
        self.find(*items)
        self.rest()

    def take(self, tasks: int = 1000, size: int = EVERYTHING, owner: str = OWNER, **more: bool) -> tuple[Claim, ...]:
        """Claim, and remember the claims by path."""
        claims = self.ledger.commit(owner, [], Want(tasks, size, **more)).claims
        self.claims |= {claim.path.raw: claim for claim in claims}
        return claims

    def held(self, path: bytes, owner: str = OWNER) -> Claim:
        """A file is found, rests and is claimed."""
        self.ready(path)
        claims = {claim.path.raw: claim for claim in self.take(owner=owner)}
        return claims[path]

    def finish(self, claim: Claim, end: End, owner: str = OWNER, **more: object) -> bool:
        """End a claim; whether that was accepted."""
        finish = Finish(claim, end, **more)  # type: ignore[arg-type]
        return not self.ledger.commit(owner, [finish], NOTHING).stale

    def fail(self, claim: Claim, failure: Failure = Failure.TRANSIENT, owner: str = OWNER) -> bool:
        return self.finish(claim, End.FAILED, owner, failure=failure, reason="as planned")

    def view(self, path: bytes) -> FileView:
        view = self.ledger.find_file(PoolPath(path))
        assert view is not None
        return view

    def state(self, path: bytes, task: int = 0) -> State:
        return self.view(path).tasks[task].state


def as_item(item: Item | bytes) -> Item:
    return Item(item) if isinstance(item, bytes) else item


def result_of(digest: bytes, plan: TaskPlan = TEXT, pack: str = "2026-12/a.jsonl.gz") -> Result:
    return Result(digest, plan, TextRef(pack, 10, 20), "pdf", "a title")


def paths(claims: Sequence[Claim]) -> list[bytes]:
    return [claim.path.raw for claim in claims]
