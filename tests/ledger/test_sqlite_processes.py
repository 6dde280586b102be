"""Real processes on one SQLite ledger: the ticket, owners and their locks, SIGKILL at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ledger_processes import TERMS
from ledger_samples import HandClock, Item, World

from tidegate.ledger import Clock, Owner, Recovered, SqliteLedger, State, dead_among, living
from tidegate.ledger.owners import FOLDER
from tidegate.ledger.sqlite_store import FILE
from tidegate.pool import disk

SCRIPT = Path(__file__).with_name("ledger_processes.py")
ROUNDS = 12
Process = subprocess.Popen[str]


@pytest.fixture
def started() -> Iterator[list[Process]]:
    """Processes of the test; none outlives it."""
    processes: list[Process] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[Process], *arguments: object) -> Process:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    return started[-1]


def heard(process: Process) -> object:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def go_on(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def filled(state: Path, files: int) -> World:
    """A ledger on the host's clock with that many ready files."""
    ledger, _ = SqliteLedger.open(state, TERMS, Clock.of_host())
    world = World(ledger, HandClock(), TERMS)
    world.find(*(Item(b"%02d/%d" % (number % 20, number), size=number % 97) for number in range(files)))
    world.rest()
    assert ledger.backlog().ready == files
    return world


# --- the ticket ------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F12")
def test_eight_processes_finish_every_task_once_and_each_gets_its_share(tmp_path: Path, started: list[Process]) -> None:
    files, workers = 4000, 8
    world = filled(tmp_path, files)
    for _ in range(workers):
        start(started, "work", tmp_path, 4)
    assert [heard(process) for process in started] == ["ready"] * workers
    for process in started:
        go_on(process)
    finished = [heard(process) for process in started]
    assert [process.wait(60) for process in started] == [0] * workers
    tasks = [task for one in finished for task in one]  # type: ignore[attr-defined]
    assert len(tasks) == len(set(tasks)) == files
    assert world.ledger.counts().states[State.DONE].files == files
    shares = [len(one) for one in finished]  # type: ignore[arg-type]
    assert min(shares) >= files / workers / 3, shares
    world.ledger.close()


@pytest.mark.fault("F54")
def test_writer_waits_for_another_that_holds_the_database(tmp_path: Path, started: list[Process]) -> None:
    world = filled(tmp_path, 1)
    holder = start(started, "hold", tmp_path)
    assert heard(holder) == "held"
    timer = threading.Timer(0.2, go_on, [holder])
    timer.start()
    assert len(world.take()) == 1
    timer.join()
    assert holder.wait(10) == 0
    world.ledger.close()


# --- owners ----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F11")
def test_living_owner_is_alive_and_a_closed_one_is_dead(tmp_path: Path) -> None:
    clock = HandClock().clock
    first, second = Owner(tmp_path, clock), Owner(tmp_path, clock)
    assert first.id != second.id
    assert living(tmp_path) == {first.nonce, second.nonce}
    assert dead_among(tmp_path, [first.id, second.id, "host:9:boot:gone"]) == ["host:9:boot:gone"]
    first.close()
    assert dead_among(tmp_path, [first.id, second.id]) == [first.id]
    second.close()
    second.close()
    assert living(tmp_path) == frozenset()


def test_file_of_a_dead_owner_is_cleared_away_by_whoever_looks(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "deadbeef").touch()
    assert living(tmp_path) == frozenset()
    assert list((tmp_path / FOLDER).iterdir()) == []


def test_owner_whose_file_was_cleared_away_while_it_was_made_is_alive(tmp_path: Path) -> None:
    looks = []

    def clear_before_the_lock(operation: str, target: object) -> None:
        if operation == "lock" and not looks:
            looks.append(target)
            for path in (tmp_path / FOLDER).iterdir():
                path.unlink()

    with disk.watch_operations(clear_before_the_lock):
        owner = Owner(tmp_path, HandClock().clock)
    assert looks
    assert living(tmp_path) == {owner.nonce}
    owner.close()


def test_killed_process_is_dead_at_once(tmp_path: Path, started: list[Process]) -> None:
    process = start(started, "own", tmp_path)
    owner = str(heard(process))
    assert dead_among(tmp_path, [owner]) == []
    process.kill()
    process.wait()
    assert dead_among(tmp_path, [owner]) == [owner]


def test_claims_of_a_killed_process_are_free_at_once(tmp_path: Path, started: list[Process]) -> None:
    world = filled(tmp_path, 500)
    process = start(started, "claim", tmp_path)
    assert heard(process) == []
    heard(process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    ledger = world.ledger
    dead = dead_among(tmp_path, ledger.claiming_owners())
    assert ledger.recover(dead) == Recovered(ready=len(dead), blocked=0)
    assert ledger.backlog().claimed == 0
    ledger.close()


# --- SIGKILL at random moments ---------------------------------------------------------------------------------------


@pytest.mark.fault("F1")
def test_process_killed_at_any_moment_loses_nothing_acknowledged(tmp_path: Path, started: list[Process]) -> None:
    files = 3000
    world = filled(tmp_path, files)
    chance = random.Random(7)
    acknowledged: set[int] = set()
    for _ in range(ROUNDS):
        process = start(started, "claim", tmp_path)
        assert heard(process) == []
        timer = threading.Timer(chance.uniform(0, 0.03), process.kill)
        timer.start()
        text, _ = process.communicate()
        timer.join()
        acknowledged |= {task for line in text.splitlines() if line.endswith("]") for task in json.loads(line)}
        done = world.ledger.counts().states[State.DONE].files
        assert len(acknowledged) <= done <= len(acknowledged) + ROUNDS
        dead = dead_among(tmp_path, world.ledger.claiming_owners())
        assert world.ledger.recover(dead).ready == len(dead) <= 1
    assert acknowledged
    with closing(sqlite3.connect(tmp_path / FILE)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert acknowledged <= {task for (task,) in db.execute("SELECT id FROM task WHERE state = 'done'")}
        half = "SELECT count(*) FROM task WHERE state = 'done' AND (digest IS NULL OR change = 0)"
        assert db.execute(half).fetchone() == (0,)
        in_queue = "SELECT id FROM task WHERE state = 'ready' EXCEPT SELECT task FROM queue"
        assert db.execute(in_queue).fetchall() == []
    assert sum(tally.files for tally in world.ledger.counts().states.values()) == files
    world.ledger.close()
