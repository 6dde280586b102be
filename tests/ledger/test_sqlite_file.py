"""The file `ledger.db`: made, refused, put aside, rebuilt; restart of the host; disk full; plans of hot statements."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ledger_samples import OWNER, HandClock, World

from tidegate.errors import LedgerCorrupt, LedgerNewer, StateError
from tidegate.ledger import End, Recovered, SqliteLedger, State, Terms
from tidegate.ledger.sqlite_store import APPLICATION, FILE, SQL, SUSPECT, VERSION, prepare
from tidegate.pool import PoolPath

DISK_FULL = Path(__file__).with_name("ledger_disk_full.py")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def opened(state: Path, time: HandClock) -> World:
    ledger, _ = SqliteLedger.open(state, Terms(), time.clock)
    return World(ledger, time, Terms())


def pragma(state: Path, name: str) -> object:
    with closing(sqlite3.connect(state / FILE)) as db:
        return db.execute(f"PRAGMA {name}").fetchone()[0]


# --- made and refused ------------------------------------------------------------------------------------------------


def test_ledger_is_made_from_nothing_and_says_whose_and_which_it_is(state: Path, time: HandClock) -> None:
    assert prepare(state, time.clock) is None
    assert pragma(state, "user_version") == VERSION
    assert pragma(state, "application_id") == APPLICATION
    assert pragma(state, "journal_mode") == "wal"


def test_opening_again_changes_nothing(state: Path, time: HandClock) -> None:
    world = opened(state, time)
    world.ready(b"x")
    world.ledger.close()
    again = opened(state, time)
    assert again.state(b"x") is State.READY
    again.ledger.close()


def test_commits_wait_for_the_disk(state: Path, time: HandClock) -> None:
    world = opened(state, time)
    with world.ledger._store.writing() as db:  # type: ignore[attr-defined]
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    world.ledger.close()


def refused(state: Path, time: HandClock, error: type[StateError]) -> None:
    before = (state / FILE).read_bytes()
    with pytest.raises(error) as caught:
        prepare(state, time.clock)
    assert caught.value.hint
    assert (state / FILE).read_bytes() == before
    assert [path.name for path in state.iterdir() if "damaged" in path.name] == []


def test_newer_format_is_refused_and_left_alone(state: Path, time: HandClock) -> None:
    prepare(state, time.clock)
    with closing(sqlite3.connect(state / FILE)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    refused(state, time, LedgerNewer)


@pytest.mark.parametrize("application", [0, 0x12345678])
def test_file_of_another_program_is_refused_and_left_alone(state: Path, time: HandClock, application: int) -> None:
    state.mkdir()
    with closing(sqlite3.connect(state / FILE)) as db:
        db.execute(f"PRAGMA application_id = {application}")
        db.execute("CREATE TABLE theirs (x)")
    refused(state, time, StateError)


# --- damaged ---------------------------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no ledger at all" * 500)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def truncated(path: Path) -> None:
    os.truncate(path, 3000)


@pytest.mark.fault("F55")
@pytest.mark.parametrize("damage", [garbage, empty, truncated])
def test_damaged_file_is_put_aside_and_a_new_ledger_works(
    state: Path, time: HandClock, damage: Callable[[Path], None]
) -> None:
    world = opened(state, time)
    world.ready(b"x")
    world.ledger.close()
    damage(state / FILE)
    damaged = (state / FILE).read_bytes()
    ledger, aside = SqliteLedger.open(state, Terms(), time.clock)
    assert aside is not None
    assert aside.read_bytes() == damaged
    again = World(ledger, time, Terms())
    assert ledger.find_file(PoolPath(b"x")) is None
    assert again.finish(again.held(b"x"), End.DONE)
    ledger.close()


def read_everything(world: World) -> None:
    for number in range(3000):
        world.ledger.find_file(PoolPath(b"%05d" % number))


@pytest.mark.fault("F55")
def test_page_that_turns_out_corrupt_stops_this_run_and_is_put_aside_by_the_next(state: Path, time: HandClock) -> None:
    world = opened(state, time)
    world.ready(*(b"%05d" % number for number in range(3000)))
    world.ledger.close()
    with (state / FILE).open("r+b") as file:
        pages = (state / FILE).stat().st_size // 4096
        for page in range(5, pages):
            file.seek(page * 4096)
            file.write(b"\xa5" * 512)
    world = opened(state, time)
    with pytest.raises(LedgerCorrupt):
        read_everything(world)
    world.ledger.close()
    assert (state / SUSPECT).exists()
    ledger, aside = SqliteLedger.open(state, Terms(), time.clock)
    assert aside is not None
    assert aside.exists()
    assert not (state / SUSPECT).exists()
    again = World(ledger, time, Terms())
    assert again.finish(again.held(b"x"), End.DONE)
    ledger.close()


def test_false_alarm_keeps_the_ledger_and_is_forgotten(state: Path, time: HandClock) -> None:
    world = opened(state, time)
    world.ready(b"x")
    world.ledger.close()
    (state / SUSPECT).touch()
    again = opened(state, time)
    assert again.state(b"x") is State.READY
    assert not (state / SUSPECT).exists()
    again.ledger.close()


def test_lost_wal_leaves_an_older_ledger_that_works(state: Path, tmp_path: Path, time: HandClock) -> None:
    world = opened(state, time)
    world.ready(b"x")
    world.ledger.close()
    world = opened(state, time)
    world.ready(b"y/lost")
    (tmp_path / "other").mkdir()
    shutil.copy(state / FILE, tmp_path / "other" / FILE)
    world.ledger.close()
    again = opened(tmp_path / "other", time)
    assert again.state(b"x") is State.READY
    again.ready(b"y/new")
    assert len(again.take()) == 2
    again.ledger.close()


# --- restart of the host ---------------------------------------------------------------------------------------------


def test_after_a_restart_of_the_host_every_claim_is_over_and_nothing_waits(state: Path, time: HandClock) -> None:
    world = opened(state, time)
    world.ready(b"held", b"failed")
    held, failed = sorted(world.take(), key=lambda claim: claim.path.raw, reverse=True)
    world.fail(failed)
    world.find(b"new/settling")
    world.ledger.close()
    time.now_ns, time.boot = 5, "boot-2"
    again = opened(state, time)
    assert {file.path.raw for file in again.ledger.unsettled(10)} == {b"new/settling"}
    assert again.ledger.unsettled(10)[0].since_s == 0.0
    assert again.ledger.recover([]) == Recovered(1, 0)
    assert {claim.path.raw for claim in again.take(with_risky=False)} == {b"failed"}
    assert not again.finish(held, End.DONE)
    again.ledger.close()


def test_opening_again_in_the_same_boot_keeps_every_claim(state: Path, time: HandClock) -> None:
    world = opened(state, time)
    claim = world.held(b"x")
    again = opened(state, time)
    assert again.ledger.recover([]) == Recovered(0, 0)
    assert again.ledger.claiming_owners() == [OWNER]
    assert again.finish(claim, End.DONE)
    world.ledger.close()
    again.ledger.close()


# --- disk full -------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F52")
def test_full_disk_is_named_loses_nothing_and_work_goes_on_once_there_is_room(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    inside = 'mount -t tmpfs -o size=2m small "$1" && exec "$2" "$3" "$1"'
    alone = ["unshare", *(["-m"] if os.geteuid() == 0 else ["-rm"])]
    command = [*alone, "sh", "-c", inside, "sh", str(mount), sys.executable, str(DISK_FULL)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert told["acknowledged"] > 100
    assert told["registered_after_full"] == told["acknowledged"]
    assert told["finished_later"] == told["registered_at_end"] == told["acknowledged"] + 50
    assert told["check"] == "ok"


# --- plans -----------------------------------------------------------------------------------------------------------

HOT = re.findall(
    r"\w+",
    """
    signature known_files directory_row last_file unsettled still_settling settle_file settle_tasks
    queue_settled has_other_content restart_tasks move_file move_tasks block_settling held finish_task
    unclaim queue_task verify_files unsettle_file find_result queue_failed wake_failed pick unqueue
    claim renew next_change unqueue_file outdate_claims unclaim_file change_file change_task
    refresh_file refresh_tasks touch_file keep_ends changes_after count_moving next_due tasks_of stuck
    recover queue_recovered drop_tasks
    """,
)
SMALL = {"c", "claim", "j", "t", "json_each"}  # claims in flight, and what a statement was given


def plan_of(db: sqlite3.Connection, name: str) -> list[str]:
    sql = SQL[name]
    named = dict.fromkeys(re.findall(r":(\w+)", sql))
    values: object = named or (1,) * sql.count("?")
    return [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    state = tmp_path_factory.mktemp("filled")
    world = opened(state, HandClock())
    world.ready(*(b"%d/%d" % (number % 10, number) for number in range(200)))
    ends = [End.DONE, End.SETTLING, End.RELEASED]
    for number, claim in enumerate(world.take(60)):
        world.finish(claim, ends[number % 3])
    world.ledger.close()
    with closing(sqlite3.connect(state / FILE)) as db:
        yield db


@pytest.mark.parametrize("name", HOT)
def test_hot_statement_scans_no_table_and_sorts_nothing(filled: sqlite3.Connection, name: str) -> None:
    steps = plan_of(filled, name)
    scans = [step.split()[1] for step in steps if step.startswith("SCAN") and " INDEX " not in step]
    assert set(scans) <= SMALL, steps
    assert not [step for step in steps if "TEMP B-TREE" in step], steps
    assert not [step for step in steps if "AUTOMATIC" in step], steps


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("unsettled", "task_settling"),
        ("queue_failed", "task_failed"),
        ("wake_failed", "task_failed"),
        ("changes_after", "task_change"),
        ("stuck", "task_stuck"),
        ("next_due", "task_settling"),
        ("count_moving", "file_moving"),
        ("pick", "PRIMARY KEY (alone<?)"),
    ],
)
def test_statement_uses_its_index(filled: sqlite3.Connection, name: str, index: str) -> None:
    assert index in "\n".join(plan_of(filled, name))
