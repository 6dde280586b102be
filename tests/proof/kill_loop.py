"""The kill loop: a run is killed at random moments and started again, while a reader polls the index.

    python tests/proof/kill_loop.py [FILES] [KILLS] [SEED]

`violations` is the judge: an empty list means that every file has exactly one accepted result, nothing temporary is
left, and no source was touched. A trigger in the ledger counts accepted results in the transactions that write them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from index_poller import WORD

from tidegate.index import Searcher
from tidegate.ledger import Clock, SqliteLedger, Terms

HERE = Path(__file__).parent
COUNT_ACCEPTED = """
CREATE TABLE IF NOT EXISTS proof_accepted (task INTEGER, fence INTEGER, state TEXT);
CREATE TRIGGER IF NOT EXISTS proof_accept AFTER UPDATE OF state ON task
WHEN NEW.state IN ('done', 'skipped', 'blocked') AND OLD.state <> NEW.state
BEGIN INSERT INTO proof_accepted VALUES (NEW.id, NEW.fence, NEW.state); END;
"""


@dataclass
class Loop:
    """A pool of so many small files, its state, and what happened."""

    folder: Path
    files: int
    flags: tuple[str, ...] = ()
    killed: Counter[str] = field(default_factory=Counter)
    done_at_kills: list[int] = field(default_factory=list)

    @property
    def pool(self) -> Path:
        return self.folder / "pool"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def fill(self) -> None:
        """Small files, Chinese and English, each with a text of its own."""
        for number in range(self.files):
            folder = self.pool / f"{number % 50:02}"
            folder.mkdir(parents=True, exist_ok=True)
            words = f"合同编号 {number} 修复完成。" if number % 2 else f"Report number {number}, repaired and closed. "
            (folder / f"文件-{number}.txt").write_text(f"everywhere {words * (1 + number % 60)}", encoding="utf-8")

    def prepare(self) -> None:
        """The ledger, with the trigger that counts."""
        SqliteLedger.open(self.state, Terms(), Clock.of_host())[0].close()
        with contextlib.closing(sqlite3.connect(self.state / "ledger.db")) as db:
            db.executescript(COUNT_ACCEPTED)

    def start(self) -> subprocess.Popen[bytes]:
        """One more participant."""
        arguments = [sys.executable, str(HERE / "kill_runner.py"), str(self.pool), str(self.state), *self.flags]
        return subprocess.Popen(arguments, stderr=subprocess.PIPE)

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with contextlib.closing(sqlite3.connect(self.state / "ledger.db", timeout=60)) as db:
            return db.execute(sql).fetchall()

    def number(self, sql: str) -> int:
        return int(str(self.ask(sql)[0][0]))

    def picture(self) -> dict[str, tuple[bytes, int]]:
        return {
            str(path.relative_to(self.pool)): (path.read_bytes(), path.lstat().st_mtime_ns)
            for path in self.pool.rglob("*")
            if path.is_file()
        }

    def kill_at_random(self, kills: int, chance: random.Random, longest_s: float) -> None:
        """Start, wait, kill the parent or one of its children; again until so many were killed."""
        running = self.start()
        while self.killed.total() < kills:
            time.sleep(chance.uniform(0.0, longest_s))
            if running.poll() is not None:
                check_end(running)
                running = self.start()
                continue
            children = children_of(running.pid)
            if children and chance.random() < 0.7:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(chance.choice(children), signal.SIGKILL)
                    self.killed["child"] += 1
            else:
                running.kill()
                running.communicate()
                self.killed["parent"] += 1
                running = self.start()
            self.done_at_kills.append(self.number("SELECT count(*) FROM task WHERE state IN ('done', 'skipped')"))
        check_end(running)

    def kill_while_claimed(self) -> None:
        """Kill the parent while it holds claims."""
        running, end = self.start(), time.monotonic() + 30
        while self.number("SELECT count(*) FROM claim") == 0:
            assert time.monotonic() < end
            time.sleep(0.005)
        running.kill()
        running.communicate()
        self.killed["parent"] += 1

    def finish(self) -> None:
        """Rounds without a kill: what failed with a killed child is tried again within them."""
        for _ in range(2):
            check_end(self.start())


def check_end(running: subprocess.Popen[bytes]) -> None:
    """A run that was not killed ends by itself and says nothing."""
    _, said = running.communicate(timeout=600)
    if running.returncode != 0 or said:
        raise AssertionError(f"a run ended with {running.returncode}: {said.decode()}")


def children_of(pid: int) -> list[int]:
    """The children of a process, of all its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found


def violations(loop: Loop, before: dict[str, tuple[bytes, int]]) -> list[str]:
    """What is not as it must be once the loop has ended."""
    wrong = []

    def expect(what: str, actual: object, wanted: object) -> None:
        if actual != wanted:
            wrong.append(f"{what}: {actual}, not {wanted}")

    states = dict(loop.ask("SELECT state, count(*) FROM task GROUP BY state"))
    expect("files", loop.number("SELECT count(*) FROM file"), loop.files)
    expect("tasks", sum(map(int, map(str, states.values()))), loop.files)
    expect("states", set(states) <= {"done", "skipped"}, True)
    expect("claims", loop.number("SELECT count(*) FROM claim"), 0)
    expect("queue", loop.number("SELECT count(*) FROM queue"), 0)
    accepted = "SELECT count(*) FROM (SELECT task FROM proof_accepted GROUP BY task HAVING count(*) {} 1)"
    expect("files with one accepted result", loop.number(accepted.format("=")), loop.files)
    expect("files with several accepted results", loop.number(accepted.format(">")), 0)
    expect("results", loop.number("SELECT count(*) FROM result"), loop.files)
    expect("results in use", loop.number("SELECT count(DISTINCT result) FROM task"), loop.files)
    expect("temporary files", leftovers(loop.state), [])
    expect("sources untouched", loop.picture() == before, True)
    with Searcher(loop.state / "index") as searcher:
        expect("documents", searcher.snapshot.documents, loop.files)
        for word in (WORD, "everywhere"):
            expect(f"documents found for {word}", searcher.search(word, limit=1).total, loop.files)
    return wrong


def leftovers(state: Path) -> list[str]:
    """Temporary files and folders."""
    return [
        str(path.relative_to(state))
        for path in state.rglob("*")
        if path.name.endswith(".part")
        or path.name.startswith(("build-", "dropped-", "damaged-"))
        or path.parent.name == "owners"
    ]


def run_loop(folder: Path, files: int, kills: int, seed: int, longest_s: float = 1.2) -> tuple[list[str], str]:
    """The whole loop: what was wrong, and a line about it."""
    loop, chance = Loop(folder, files), random.Random(seed)
    loop.fill()
    loop.prepare()
    before, began, stop = loop.picture(), time.monotonic(), folder / "stop"
    reader = [sys.executable, str(HERE / "index_poller.py"), str(loop.state / "index"), str(stop)]
    with subprocess.Popen(reader, stdout=subprocess.PIPE) as poller:
        try:
            loop.kill_at_random(kills, chance, longest_s)
            loop.finish()
        finally:
            stop.touch()
        seen = json.loads(poller.communicate(timeout=60)[0])
    wrong = violations(loop, before) + seen["wrong"]
    in_work = sum(done < files for done in loop.done_at_kills)
    line = (
        f"seed {seed}: {files} files, {dict(loop.killed)} killed, {in_work} of them before all was done; "
        f"{time.monotonic() - began:.0f} s; poller: {seen['looks']} looks at {seen['snapshots']} snapshots, "
        f"up to {seen['highest']}; wrong: {len(wrong)}"
    )
    return wrong, line


def main(files: str = "5000", kills: str = "50", seed: str = "") -> None:
    chosen = int(seed) if seed else random.SystemRandom().randrange(1 << 32)
    print(f"seed {chosen}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong, line = run_loop(Path(folder), int(files), int(kills), chosen)
    print(line)
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
