"""A whole small round in this process, every file operation of which can be made to fail: the child is a thread (one
at a time, for a real one has its buffer to itself).

`play` runs a round with one fault at the n-th operation, then a clean round, and judges what is there. In `crash` the
process counts as dead from that operation on: every later one fails as well.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import socket
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate import rounds
from tidegate.config import Config, PoolConfig, WorkConfig
from tidegate.errors import Failure, TidegateError
from tidegate.gate import Gate
from tidegate.index import Searcher, current
from tidegate.ledger import Clock, SqliteLedger, Terms
from tidegate.pool import PoolPath, Stamp, disk
from tidegate.processing import child as child_program
from tidegate.processing import supervisor
from tidegate.processing.children import Child, ChildTerms
from tidegate.processing.messages import Hello, send

ERRORS = {"EIO": errno.EIO, "ENOSPC": errno.ENOSPC, "EMFILE": errno.EMFILE}
FAULTS = ("crash", *ERRORS, "short")
FASTER = 200  # times that the ledger's clock outruns the host's, so that backoffs are short
ACCEPTED = """
CREATE TABLE proof_accepted (task INTEGER, fence INTEGER);
CREATE TRIGGER proof_accept AFTER UPDATE OF state ON task
WHEN NEW.state IN ('done', 'skipped') AND OLD.state <> NEW.state
BEGIN INSERT INTO proof_accepted VALUES (NEW.id, NEW.fence); END;
"""


class Crash(BaseException):
    """The process ends here."""


@dataclass(slots=True)
class ThreadChild(Child):
    """A child whose program runs in a thread of this process, so that its reading can fail as well."""

    thread: threading.Thread = field(default_factory=threading.Thread)

    @classmethod
    def start(cls, terms: ChildTerms) -> ThreadChild:
        ours, theirs = socket.socketpair()

        def live() -> None:
            with theirs, contextlib.suppress(OSError, Crash, SystemExit):
                send(theirs, Hello(False))
                child_program.Child(theirs).run()

        thread = threading.Thread(target=live, daemon=True)
        thread.start()
        return cls(None, ours, -1, terms, deque(), thread=thread)  # type: ignore[arg-type]

    def end(self, *, is_late: bool = False) -> tuple[Failure, str]:
        self.channel.close()
        self.thread.join()
        return Failure.CRASH, "the child ended"


class Fault:
    """Fails the n-th operation, counted over all threads, once; `has_struck` says whether it came to that."""

    def __init__(self, kind: str, at: int) -> None:
        self.kind, self.at, self.count, self.has_struck = kind, at, 0, False
        self.operation = ""
        self._lock = threading.Lock()

    def __call__(self, operation: str, target: object) -> int | None:
        with self._lock:
            if self.kind == "short" and operation not in ("read", "write"):
                return None
            self.count += 1
            is_struck = self.has_struck
            if self.count == self.at:
                self.has_struck, self.operation = True, f"{operation} {target!r}"
        if self.kind == "crash" and (is_struck or self.has_struck):
            raise Crash
        if self.count != self.at:
            return None
        if self.kind == "short":
            return 1
        raise OSError(ERRORS[self.kind], os.strerror(ERRORS[self.kind]), "planted")


class Small:
    """A pool of few files of every kind, and rounds on it."""

    def __init__(self, folder: Path) -> None:
        self.pool, self.state = folder / "pool", folder / "state"
        for name, text in {
            "a.txt": "first words of 合同",
            "b/b.txt": "second words",
            "b/same.txt": "second words",
            "c.mp4": "no text",
        }.items():
            (self.pool / name).parent.mkdir(parents=True, exist_ok=True)
            (self.pool / name).write_text(text)
        (self.pool / "link").symlink_to("a.txt")
        host = Clock.of_host()
        began = host.now_ns()
        self.clock = Clock(lambda: began + (host.now_ns() - began) * FASTER, host.wall_ns, host.boot)
        SqliteLedger.open(self.state, Terms(), self.clock)[0].close()
        with contextlib.closing(sqlite3.connect(self.state / "ledger.db")) as db:
            db.executescript(ACCEPTED)
        self.before = self.picture()

    def picture(self) -> dict[str, tuple[bytes, int]]:
        return {
            str(path.relative_to(self.pool)): (path.read_bytes(), path.lstat().st_mtime_ns)
            for path in self.pool.rglob("*")
            if path.is_file()
        }

    def run(self) -> None:
        """One round."""
        pool = PoolConfig(self.pool, "pool", self.state, 0.0)
        work = WorkConfig(workers=1, claim_for_s=100_000.0, attempts=9)
        with Gate(Config(pool, work=work), self.clock) as gate:
            gate.run()

    def snapshot(self) -> int:
        found = current(self.state / "index")
        return found.number if found else 0

    def violations(self, number_before: int) -> list[str]:
        """What is not as it must be after a clean round."""
        wrong: list[str] = []

        def expect(what: str, actual: object, wanted: object) -> None:
            if actual != wanted:
                wrong.append(f"{what}: {actual!r}, not {wanted!r}")

        expect("I1 sources", self.picture() == self.before, True)
        with contextlib.closing(sqlite3.connect(self.state / "ledger.db")) as db:
            ask: Callable[[str], list[Any]] = lambda sql: db.execute(sql).fetchall()  # noqa: E731
            often = ask("SELECT task, count(*) FROM proof_accepted GROUP BY task HAVING count(*) > 1")
            expect("I3 accepted twice", often, [])
            expect("I3 accepted", ask("SELECT count(*) FROM proof_accepted"), [(5,)])
            states = ask("SELECT state, count(*) FROM task GROUP BY state ORDER BY state")
            expect("I5 states", states, [("done", 4), ("skipped", 1)])
            expect("I5 files", ask("SELECT count(*) FROM file"), [(5,)])
            expect("claims", ask("SELECT count(*) FROM claim"), [(0,)])
            rows = ask(
                "SELECT d.path, f.name, f.size, f.mtime_ns, f.ctime_ns, f.inode, t.digest FROM file f "
                "JOIN task t ON t.file = f.id JOIN directory d ON d.id = f.directory WHERE t.processor <> 'register'"
            )
        for folder, name, *stamp, digest in rows:
            path = self.pool / os.fsdecode((PoolPath(folder) / name).raw)
            expect(f"I7 stamp of {path.name}", Stamp(*stamp), Stamp.of(path.lstat()))
            expect(f"I7 digest of {path.name}", digest, hashlib.sha256(path.read_bytes()).digest())
        self._judge_index(expect, number_before)
        left = [str(path.relative_to(self.state)) for path in self.state.rglob("*") if is_temporary(path)]
        expect("left over", left, [])
        return wrong

    def _judge_index(self, expect: Callable[[str, object, object], None], number_before: int) -> None:
        try:
            with Searcher(self.state / "index") as searcher:
                expect("I6 number", searcher.snapshot.number >= number_before, True)
                expect("I6 documents", searcher.snapshot.documents, 5)
                expect("I6 合同", {hit.path for hit in searcher.search("合同").hits}, {"a.txt"})
                wanted = {"b/b.txt", "b/same.txt"}
                expect("I6 second", {hit.path for hit in searcher.search("second").hits}, wanted)
        except TidegateError as error:
            expect("I6 index", str(error), "readable")


def is_temporary(path: Path) -> bool:
    """Whether a path is one that only a running participant has."""
    return (
        path.name.endswith(".part")
        or path.name.startswith(("build-", "dropped-", "damaged-"))
        or path.parent.name == "owners"
    )


@contextlib.contextmanager
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Rounds without waiting, and children in threads."""
    with monkeypatch.context() as patch:
        patch.setattr(supervisor, "Child", ThreadChild)
        patch.setattr(rounds, "TICK_S", 0.002)
        patch.setattr(rounds, "SETTLE_EVERY_S", 0.002)
        brief = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: time.sleep(min(seconds, 0.002)))
        patch.setattr(rounds, "time", brief)
        yield


def let_go(state: Path) -> None:
    """What the end of a process does to the locks that it held."""
    for link in list(Path("/proc/self/fd").iterdir()):
        with contextlib.suppress(OSError):
            name = link.readlink()
            is_lock = name.parent.name == "owners" or name.name.split(" ")[0] in ("publish.lock", "reader.lock")
            if is_lock and name.is_relative_to(state):
                os.close(int(link.name))


def play(folder: Path, kind: str, at: int) -> tuple[bool, list[str]]:
    """A round with the fault, then a clean one: whether the fault struck, and what was wrong."""
    small, fault = Small(folder), Fault(kind, at)
    wrong: list[str] = []
    try:
        with disk.watch_operations(fault):
            small.run()
    except (Crash, OSError, TidegateError):
        pass
    except BaseException as error:  # noqa: BLE001 - any other end of a round is a finding
        wrong.append(f"the round raised {type(error).__name__}: {error}")
    let_go(small.state)
    number = small.snapshot()
    try:
        small.run()
        wrong += small.violations(number)
    except (OSError, TidegateError) as error:
        wrong.append(f"the clean round raised {type(error).__name__}: {error}")
    return fault.has_struck, [f"{kind} at {at}, {fault.operation}: {one}" for one in wrong]
