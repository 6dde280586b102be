"""What the tests of processing share. A file whose content begins with `PLANT` makes its child do something."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidegate.config import Config, PoolConfig
from tidegate.errors import DiskFull
from tidegate.intake import Rules, Scanner, settle_due
from tidegate.ledger import Clock, FileView, SqliteLedger, TaskView, Terms
from tidegate.pool import PoolPath, open_pool
from tidegate.pool.settle import Patience
from tidegate.processing.children import Child, ChildTerms
from tidegate.processing.drafts import Press
from tidegate.processing.processors import VERSIONS
from tidegate.processing.supervisor import Supervisor, WorkTerms
from tidegate.results import PackEntry, all_entries, read_entry

PLANTS = """
import sys

if "tidegate.processing.child" in " ".join(sys.orig_argv):
    import ctypes, json, os, signal, subprocess, time

    import tidegate.processing.text as text

    real = text.extract

    def planted(data, name, limits, *, is_whole=True):
        words = bytes(data[:80]).split()
        if words[:1] != [b"PLANT"]:
            return real(data, name, limits, is_whole=is_whole)
        said = ""
        match words[1]:
            case b"crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            case b"exit":
                os._exit(7)
            case b"words":
                os.write(2, b"\\x1b[31mtold at the end\\n")
                os._exit(7)
            case b"sleep":
                os.write(2, b"sleeping\\n")
                time.sleep(3600)
            case b"slow":
                time.sleep(float(words[2]))
            case b"memory":
                bytearray(3 << 30)
            case b"error":
                raise ValueError("planted")
            case b"grandchild":
                if os.fork() == 0:
                    time.sleep(3600)
                    os._exit(0)
                os.write(2, b"both asleep\\n")
                time.sleep(3600)
            case b"environ":
                said = json.dumps(dict(os.environ))
            case b"descriptors":
                said = str(len(os.listdir("/proc/self/fd")))
            case b"pid":
                said = str(os.getpid())
            case b"garbage":
                os.write(int(sys.argv[1]), b"\\x00\\x00\\x00\\x02\\xc1\\xc1" * 10)
        return text.Text(said, "planted", "", 0, 0, False)

    text.extract = planted
"""

OWNER = "host:1:boot:aaaaaaaa"
LONGEST_S = 60.0


class Workshop:
    """See the module. The ledger's clock is the host's, moved on by `move`."""

    def __init__(
        self,
        folder: Path,
        *,
        workers: int = 1,
        deadline_s: float = 30.0,
        memory: int = 2 * 10**9,
        replace_after: int = 500,
        claim_for_s: float = 60.0,
        wait_for_room: Callable[[DiskFull], None] | None = None,
    ) -> None:
        self.pool, self.state = folder / "pool", folder / "state"
        self.pool.mkdir(exist_ok=True)
        self._moved_ns = 0
        host = Clock.of_host()
        self.clock = Clock(lambda: host.now_ns() + self._moved_ns, host.wall_ns, host.boot)
        self.ledger, _ = SqliteLedger.open(self.state, Terms(claim_for_s, 0.0, 3), self.clock)
        self.root = open_pool(self.pool)
        self.target = Press(self.state / "outputs", "pool", OWNER, "aaaaaaaa")
        self.terms = WorkTerms(workers, ChildTerms(deadline_s, memory, replace_after), claim_for_s)
        self.rules = Rules(Config(PoolConfig(self.pool)), VERSIONS)
        self.waited: list[DiskFull] = []
        self._wait_for_room = wait_for_room or self.waited.append
        self.supervisor = self.hire()

    def hire(self) -> Supervisor:
        """A new supervisor on the same ledger."""
        self.supervisor = Supervisor(
            self.ledger, self.root, self.target, self.terms, self.clock, lambda error: self._wait_for_room(error)
        )
        return self.supervisor

    def write(self, name: str, content: str) -> Path:
        path = self.pool / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def ready(self, **files: str) -> None:
        """Write `name=content` as `name.txt`, scan, and let everything rest."""
        for name, content in files.items():
            self.write(f"{name}.txt", content)
        self.scan()

    def scan(self) -> None:
        """Scan, and settle all that rests."""
        Scanner(self.root, self.ledger, self.rules, lambda: False).run()
        self.settle()

    def settle(self) -> None:
        self.move(0.001)
        settle_due(self.root, self.ledger, Patience(0.0, 60.0))
        self.supervisor.ask_again()

    def move(self, seconds: float) -> None:
        """The ledger's clock goes on."""
        self._moved_ns += int(seconds * 1e9)

    def work(self, until: Callable[[], object] | None = None) -> None:
        """Step until nothing is in hand, or until something is so; fails after a minute."""
        self.supervisor.ask_again()
        end = time.monotonic() + LONGEST_S
        while self.supervisor.step(0.05):
            if until is not None and until():
                return
            assert time.monotonic() < end, f"still at work: {self.supervisor._batch}"
        assert until is None or until(), "work ended before"

    def retry_all(self, times: int = 3) -> None:
        """Work, and go on after each backoff."""
        for _ in range(times):
            self.work()
            self.move(3600.0)

    def child_asleep(self) -> Child:
        """Work until a child has said that it sleeps; that child."""

        def sleeper() -> Child | None:
            return next((child for child in self.supervisor._children if child.queue and child._last_words()), None)

        self.work(until=sleeper)
        found = sleeper()
        assert found is not None
        return found

    def view(self, name: str) -> FileView:
        view = self.ledger.find_file(PoolPath(f"{name}.txt".encode()))
        assert view is not None
        return view

    def task(self, name: str) -> TaskView:
        return self.view(name).tasks[0]

    def end(self, name: str) -> tuple[str, str | None, int]:
        """State, failure and attempts of a file's task."""
        task = self.task(name)
        return str(task.state), str(task.failure) if task.failure else None, task.attempts

    def entries(self) -> list[PackEntry]:
        """Everything in the packs."""
        return [read_entry(self.target.outputs, ref) for ref, _ in all_entries(self.target.outputs)]

    def texts(self) -> dict[str, str]:
        """Texts in the packs by the path in their receipt."""
        return {entry.receipt.path: entry.text for entry in self.entries()}

    def close(self) -> None:
        self._wait_for_room = _raise
        self.supervisor.stop()
        self.ledger.close()
        os.close(self.root)


def _raise(error: DiskFull) -> None:
    raise error


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_until(what: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for something outside this process, within bounds."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.02)


def descriptors() -> int:
    """Open descriptors of this process."""
    return len(list(Path("/proc/self/fd").iterdir()))
