"""Whole rounds on real pools: to the end, again, stopped in the middle, beside each other."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tidegate import rounds
from tidegate.errors import DiskFull, HeldElsewhere, IndexMissing, PoolUnavailable, UsageError
from tidegate.gate import Gate
from tidegate.index import Searcher
from tidegate.ledger import Backlog, End, Selection
from tidegate.pool import disk
from tidegate.rounds import Hooks, Phases, is_finished


def fill(pool: Any, count: int, prefix: str = "f") -> None:
    for number in range(count):
        words = f"合同 number {number}" if number % 2 else f"report number {number}"
        pool.write(f"{prefix}{number % 7}/{number}.txt", words)


def mixed(pool: Any) -> None:
    """A pool of everything: good, bad, equal, ignored, links, films, odd names."""
    fill(pool, 20)
    pool.write("same/a.txt", "the same words")
    pool.write("same/b.txt", "the same words")
    pool.write("film.mp4", b"\0\1moving")
    pool.write("empty.txt", b"")
    pool.write("broken.pdf", b"%PDF-1.4 nonsense")
    pool.write("half.part", "unfinished")
    pool.write(b"caf\xe9.txt", "latin name")
    (pool.path / "link.txt").symlink_to("/etc/passwd")
    os.mkfifo(pool.path / "pipe")


def test_a_round_on_a_mixed_pool_leaves_every_file_in_a_final_state_with_a_reason(pool: Any) -> None:
    mixed(pool)
    before = pool.picture()
    with pool.gate() as gate:
        summary = gate.run()
        assert (summary.scan.files, summary.scan.new, summary.scan.ignored) == (27, 27, 2)
        assert (summary.failed, summary.blocked, summary.is_stopped) == (0, 2, False)
        assert summary.work.ends[End.DONE] + summary.work.ends[End.SKIPPED] == 25
        assert {view.path.display: str(view.tasks[0].failure) for view in gate.stuck(9)} == {
            "empty.txt": "empty",
            "broken.pdf": "corrupt",
        }
        assert gate.search("合同").total == 10
        assert gate.search("the same words").total == 2
    assert set(pool.states().values()) == {"done", "skipped", "blocked"}
    assert all(reason for (reason,) in pool.rows("SELECT reason FROM task"))
    assert pool.picture() == before
    assert pool.leftovers() == []


def test_a_second_round_does_nothing(pool: Any) -> None:
    mixed(pool)
    with pool.gate() as gate:
        first = gate.run()
        opened: list[object] = []

        def watch(operation: str, target: object) -> None:
            if operation == "open_beneath" and isinstance(target, bytes) and b"." in target:
                opened.append(target)

        with disk.watch_operations(watch):
            second = gate.run()
    assert (second.scan.new, second.scan.changed, second.scan.unchanged) == (0, 0, 27)
    assert second.work.ends.total() == 0
    assert opened == []
    assert first.snapshot is not None
    assert second.snapshot is None


def test_only_what_changed_is_done_again_and_published(pool: Any) -> None:
    fill(pool, 10)
    with pool.gate() as gate:
        gate.run()
        pool.write("f3/3.txt", "entirely different zebra")
        pool.write("new.txt", "a brand new zebra")
        summary = gate.run()
        assert (summary.scan.new, summary.scan.changed, summary.work.ends[End.DONE]) == (1, 1, 2)
        assert {hit.path for hit in gate.search("zebra").hits} == {"f3/3.txt", "new.txt"}
        assert gate.search("合同").total == 4


class StopAfter:
    """Says stop once so many files have ended."""

    def __init__(self, files: int) -> None:
        self.files, self.is_over = files, False

    def hooks(self) -> Hooks:
        return Hooks(lambda: self.is_over, self._tell)

    def _tell(self, progress: Any) -> None:
        self.is_over = self.is_over or progress.done.files >= self.files


@pytest.mark.fault("F13")
def test_a_stop_in_the_middle_keeps_and_publishes_what_is_done_and_releases_the_rest(pool: Any) -> None:
    fill(pool, 600)
    with pool.gate() as gate:
        summary = gate.run(StopAfter(60).hooks())
        assert summary.is_stopped
        done = summary.work.ends[End.DONE]
        assert 60 <= done < 600
        assert pool.rows("SELECT count(*) FROM claim") == [(0,)]
        assert pool.rows("SELECT max(attempts) FROM task WHERE state <> 'done'") == [(0,)]
        assert summary.snapshot is not None
        assert summary.snapshot.documents == done
        assert pool.leftovers() == []
        second = gate.run()
    assert second.work.ends[End.DONE] == 600 - done
    assert set(pool.states().values()) == {"done"}
    assert pool.rows("SELECT max(attempts) FROM task") == [(1,)]
    assert pool.rows("SELECT count(*), count(DISTINCT digest) FROM result") == [(600, 600)]


def test_a_stop_before_anything_began_leaves_a_usable_state(pool: Any) -> None:
    fill(pool, 5)
    with pool.gate() as gate:
        assert gate.run(Hooks(should_stop=lambda: True)).is_stopped
        assert gate.run().work.ends[End.DONE] == 5


TWIN = """
import sys
from pathlib import Path
from tidegate.config import Config, PoolConfig
from tidegate.gate import Gate
from tidegate.ledger import End
pool, state = map(Path, sys.argv[1:])
with Gate(Config(PoolConfig(pool, "pool", state, 0.05))) as gate:
    summary = gate.run()
    print(summary.work.ends[End.DONE] + summary.work.ends[End.SKIPPED], summary.work.stale)
"""


@pytest.mark.fault("F54")
def test_rc16_participants_at_once_do_each_file_once_and_publish_everything(pool: Any) -> None:
    fill(pool, 400)
    twins = [
        subprocess.Popen(
            [sys.executable, "-c", TWIN, str(pool.path), str(pool.state)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    said = [twin.communicate(timeout=120) for twin in twins]
    assert [twin.returncode for twin in twins] == [0, 0, 0], said
    assert all(error == "" for _, error in said)
    assert sum(int(out.split()[0]) for out, _ in said) == 400
    assert pool.rows("SELECT count(*), count(DISTINCT digest) FROM result") == [(400, 400)]
    assert pool.rows("SELECT state, max(attempts), count(*) FROM task GROUP BY 1") == [("done", 1, 400)]
    with Searcher(pool.state / "index") as searcher:
        assert searcher.snapshot.documents == 400
    assert pool.leftovers() == []


def test_a_publisher_beside_does_not_keep_the_last_results_out_of_the_index(pool: Any) -> None:
    from tidegate.index import snapshots

    fill(pool, 5)
    released = threading.Event()
    taken = threading.Event()

    def hold() -> None:
        disk.make_folder(pool.state / "index")
        with snapshots.publisher(pool.state / "index"):
            taken.set()
            released.wait(60)

    beside = threading.Thread(target=hold)
    (pool.state / "index").mkdir(parents=True)
    beside.start()
    assert taken.wait(10)

    def free_at_the_end(progress: Any) -> None:
        if progress.done.files == 5:
            threading.Timer(1.0, released.set).start()

    with pool.gate() as gate:
        threading.Timer(8.0, released.set).start()
        summary = gate.run(Hooks(tell=free_at_the_end))
    beside.join()
    assert summary.snapshot is not None
    assert summary.snapshot.documents == 5


def test_long_rounds_publish_in_between(pool: Any) -> None:
    fill(pool, 700)
    seen: set[int] = set()

    def look(progress: Any) -> None:
        try:
            with Searcher(pool.state / "index") as searcher:
                seen.add(searcher.snapshot.number)
                assert searcher.search("number").total == searcher.snapshot.documents
        except IndexMissing:
            pass

    with pool.gate(index={"publish_every_s": 0.2}) as gate:
        summary = gate.run(Hooks(tell=look))
        assert len(seen) >= 2
        assert summary.snapshot is not None
        assert summary.snapshot.documents == 700
        assert summary.snapshot.number > min(seen)


def test_without_an_index_nothing_is_published(pool: Any) -> None:
    fill(pool, 3)
    with pool.gate(index={"build": False}) as gate:
        assert gate.run().snapshot is None
        with pytest.raises(IndexMissing):
            gate.search("number")


def test_phases_do_one_thing_each(pool: Any) -> None:
    fill(pool, 4)
    with pool.gate() as gate:
        scanned = gate.run(phases=Phases(work=False, publish=False))
        assert (scanned.scan.new, scanned.work.ends.total()) == (4, 0)
        assert set(pool.states().values()) == {"settling"}
        worked = gate.run(phases=Phases(scan=False, publish=False))
        assert (worked.scan.files, worked.work.ends[End.DONE], worked.snapshot) == (0, 4, None)
        published = gate.run(phases=Phases(scan=False, work=False))
        assert published.snapshot is not None
        assert gate.search("number").total == 4


def test_back_pressure_pauses_the_scan_while_workers_bring_the_level_down(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.intake.scan.ROWS_PER_COMMIT", 20)
    fill(pool, 400)
    for number in range(400):
        pool.write(f"more{number % 40}/{number}.txt", f"more {number}")
    highest = 0

    def look(progress: Any) -> None:
        nonlocal highest
        level = pool.rows("SELECT count(*) FROM task WHERE state IN ('settling', 'ready')")[0][0]
        highest = max(highest, level)

    from tidegate.config import ScanConfig

    with pool.gate(scan=ScanConfig(pause_above=100)) as gate:
        summary = gate.run(Hooks(tell=look))
    assert summary.work.ends[End.DONE] == 800
    assert 0 < highest <= 100 + 20 + 80, "one commit beyond the mark, and a folder"


def test_a_scan_alone_is_not_held_up_by_its_own_backlog(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.config import ScanConfig

    monkeypatch.setattr("tidegate.intake.scan.ROWS_PER_COMMIT", 20)
    fill(pool, 300)
    with pool.gate(scan=ScanConfig(pause_above=100)) as gate:
        assert gate.run(phases=Phases(work=False, publish=False)).scan.new == 300


def test_blocked_files_are_freed_by_retry_and_pass_the_settle_gate_again(pool: Any) -> None:
    pool.write("a.txt", b"")
    pool.write("b/b.txt", b"")
    with pool.gate() as gate:
        gate.run()
        assert gate.retry(Selection(gate.pool_path("b"))) == 1
        assert pool.states() == {b"a.txt": "blocked", b"b/b.txt": "settling"}
        summary = gate.run()
        assert summary.blocked == 2
        events = [event.event for event in gate.why("b/b.txt").history]
        assert events == ["blocked", "settling", "blocked"]
        assert gate.retry() == 2


def test_failures_that_time_may_heal_are_tried_again_within_the_round(pool: Any) -> None:
    fill(pool, 3)
    left = [2]

    def fail(operation: str, target: object) -> None:
        if operation == "open_beneath" and str(target).endswith("1.txt'") and left[0]:
            left[0] -= 1
            raise OSError(errno.EIO, "planted")

    with pool.gate() as gate, disk.watch_operations(fail):
        summary = gate.run()
    assert left == [0]
    assert summary.work.ends[End.DONE] == 3
    assert pool.rows("SELECT max(attempts) FROM task") == [(3,)]


@pytest.mark.fault("F37")
def test_a_file_that_stays_busy_is_left_to_the_next_round_at_last(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "LONGEST_WAIT_S", 3.0)
    fill(pool, 3)

    def busy(operation: str, target: object) -> None:
        if operation == "open_beneath" and str(target).endswith("1.txt'"):
            raise OSError(errno.EBUSY, "Device or resource busy")

    began = time.monotonic()
    stop = Hooks(should_stop=lambda: time.monotonic() - began > 40)
    with pool.gate() as gate:
        with disk.watch_operations(busy):
            summary = gate.run(stop)
        assert not summary.is_stopped
        assert summary.work.ends[End.DONE] == 2
        assert gate.run().work.ends[End.DONE] == 1, "picked up without a restart"
    assert pool.rows("SELECT max(attempts) FROM task") == [(1,)]


def test_a_share_that_does_not_answer_when_looked_at_does_not_keep_a_round_for_ever(
    pool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LONGEST_WAIT_S", 3.0)
    fill(pool, 3)
    is_down = [False]

    def fail(operation: str, target: object) -> None:
        if operation == "stat" and is_down[0] and isinstance(target, bytes):
            raise OSError(errno.EACCES, "planted")

    began = time.monotonic()
    with pool.gate() as gate:
        gate.run(phases=Phases(work=False, publish=False))
        is_down[0] = True
        with disk.watch_operations(fail):
            summary = gate.run(Hooks(should_stop=lambda: time.monotonic() - began > 40))
        assert not summary.is_stopped
        assert gate.run().work.ends[End.DONE] == 3


@pytest.mark.fault("F40")
@pytest.mark.timeout(30)  # the share hangs for twice as long
def test_a_stop_is_obeyed_although_a_dead_share_holds_the_scan(pool: Any) -> None:
    fill(pool, 3)
    released = threading.Event()

    def hang(operation: str, target: object) -> None:
        if operation == "list_folder":
            released.wait(60)

    began = time.monotonic()
    try:
        with pool.gate() as gate, disk.watch_operations(hang):
            summary = gate.run(Hooks(should_stop=lambda: time.monotonic() - began > 1))
        assert summary.is_stopped
    finally:
        released.set()


def test_an_error_of_the_work_ends_the_scan_as_well(pool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.errors import StateError

    monkeypatch.setattr("tidegate.intake.scan.SECONDS_PER_COMMIT", 0.0)
    fill(pool, 30)
    scanned = threading.Event()

    def slow(operation: str, target: object) -> None:
        if operation == "list_folder":
            scanned.wait(0.3)

    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pool.gate(work={"workers": 4}) as gate, disk.watch_operations(slow):
        with pytest.raises(StateError, match="child processes cannot start"):
            gate.run()
        assert not any(isinstance(thread, rounds.Beside) for thread in threading.enumerate())


@pytest.mark.fault("F52")
@pytest.mark.parametrize("verb", ["settle", "renew", "register", "commit"])
def test_a_full_disk_under_any_write_of_the_ledger_pauses_the_round_and_goes_on(
    pool: Any, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    from tidegate.ledger import SqliteLedger

    fill(pool, 5)
    act, left = getattr(SqliteLedger, verb), [2]

    def full(self: SqliteLedger, *given: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise DiskFull("no room left for the ledger (planted)")
        return act(self, *given)

    monkeypatch.setattr(SqliteLedger, verb, full)
    said: list[str] = []
    if verb == "renew":
        pool.write("slow.txt", "x")
    with pool.gate(work={"claim_for_s": 0.3} if verb == "renew" else {}) as gate:
        summary = gate.run(Hooks(note=said.append))
    assert summary.work.ends[End.DONE] >= 5
    if left[0] < 2:
        assert any(sentence.startswith("paused: no room left for the ledger") for sentence in said)


@pytest.mark.fault("F52")
def test_a_stop_during_a_full_disk_is_a_stop_and_keeps_every_attempt(pool: Any) -> None:
    fill(pool, 5)

    def full(operation: str, target: object) -> None:
        if operation == "create_new" and "packs" in str(target):
            raise OSError(errno.ENOSPC, "No space left on device")

    said: list[str] = []
    with pool.gate(index={"build": False}) as gate:
        with disk.watch_operations(full):
            summary = gate.run(Hooks(should_stop=lambda: any("paused" in one for one in said), note=said.append))
        assert summary.is_stopped
        assert pool.rows("SELECT count(*) FROM claim") == [(0,)]
        assert pool.rows("SELECT max(attempts) FROM task") == [(0,)]
        assert gate.run().work.ends[End.DONE] == 5


def test_watch_picks_up_a_new_file_without_being_told(pool: Any) -> None:
    from tidegate.config import ScanConfig

    fill(pool, 2)
    with pool.gate(scan=ScanConfig(every_s=0.1)) as gate:
        is_over = [False]
        watching = gate.watch(Hooks(should_stop=lambda: is_over[0]))
        assert next(watching).work.ends[End.DONE] == 2
        pool.write("late.txt", "a late arrival")
        assert next(watching).work.ends[End.DONE] == 1
        assert gate.search("arrival").total == 1
        is_over[0] = True
        assert list(watching) == []


def test_watch_waits_for_a_pool_that_drops_out_and_goes_on_when_it_is_back(pool: Any, tmp_path: Path) -> None:
    from tidegate.config import ScanConfig

    fill(pool, 2)
    said: list[str] = []

    def note(sentence: str) -> None:
        said.append(sentence)
        (tmp_path / "away").rename(pool.path)

    with pool.gate(scan=ScanConfig(every_s=0.1)) as gate:
        watching = gate.watch(Hooks(note=note))
        next(watching)
        pool.path.rename(tmp_path / "away")
        assert next(watching).scan.unchanged == 2
    assert [sentence for sentence in said if "does not exist; waiting for it" in sentence]


def test_watch_of_a_pool_that_is_not_there_is_refused(pool: Any) -> None:
    pool.path.rename(pool.path.with_name("away"))
    with pool.gate() as gate, pytest.raises(PoolUnavailable):
        next(gate.watch())


def test_publishing_alone_beside_another_publisher_is_refused(pool: Any) -> None:
    fill(pool, 2)
    with pool.gate() as gate:
        gate.run()
        pool.write("late.txt", "more")
        gate.run(phases=Phases(publish=False))
        lock = disk.open_lock(pool.state / "index" / "publish.lock")
        assert disk.try_lock(lock)
        with pytest.raises(HeldElsewhere):
            gate.run(phases=Phases(scan=False, work=False))
        os.close(lock)
        assert gate.run(phases=Phases(scan=False, work=False)).snapshot is not None


def test_watch_looks_up_the_path_anew_after_a_remount(pool: Any, tmp_path: Path) -> None:
    from tidegate.config import ScanConfig

    fill(pool, 2)
    with pool.gate(scan=ScanConfig(every_s=0.1)) as gate:
        watching = gate.watch()
        next(watching)
        pool.path.rename(tmp_path / "before")
        pool.path.mkdir()
        pool.write("other.txt", "of the other mount")
        assert next(watching).scan.new == 1


@pytest.mark.parametrize(
    ("backlog", "is_over"),
    [
        (Backlog(0, 0, 0, 0, 0, None), True),
        (Backlog(0, 0, 1, 0, 0, None), False),
        (Backlog(2, 0, 0, 0, 0, 1.0), False),
        (Backlog(2, 2, 0, 0, 0, 1.0), True),
        (Backlog(0, 0, 0, 0, 1, 5.0), False),
        (Backlog(0, 0, 0, 0, 1, 500.0), True),
        (Backlog(2, 1, 0, 0, 1, 500.0), True),
        (Backlog(0, 0, 0, 3, 0, None), True),
    ],
)
def test_what_a_round_waits_for(backlog: Backlog, is_over: bool) -> None:
    assert is_finished(backlog) is is_over


def test_progress_counts_files_and_bytes_and_never_exceeds_what_is_wanted(pool: Any) -> None:
    fill(pool, 100)
    seen: list[Any] = []
    with pool.gate() as gate:
        gate.run(Hooks(tell=seen.append))
    assert seen
    assert all(one.done.files <= one.wanted.files for one in seen if one.is_scan_complete)
    assert [one.done.files for one in seen] == sorted(one.done.files for one in seen)


def test_why_knows_a_file_by_every_name_a_person_may_type(
    pool: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fill(pool, 3)
    pool.write(b"caf\xe9 \x1b[31m.txt", "odd")
    (tmp_path / "link").symlink_to(pool.path)
    with pool.gate() as gate:
        gate.run()
        monkeypatch.chdir(pool.path / "f1")
        for name in ("f1/1.txt", "1.txt", str(pool.path / "f1" / "1.txt"), "../f1/1.txt", "./1.txt"):
            assert gate.why(name).path.raw == b"f1/1.txt", name
        assert gate.why(r"caf\xe9 \x1b[31m.txt").path.raw == b"caf\xe9 \x1b[31m.txt"
        for name in ("nothing.txt", "../../outside.txt", "/etc/passwd"):
            with pytest.raises(UsageError):
                gate.why(name)
    with Gate(pool.config(pool={"path": tmp_path / "link"})) as linked:
        assert linked.why(str(tmp_path / "link" / "f1" / "1.txt")).path.raw == b"f1/1.txt"


def test_several_files_of_one_displayed_name_are_not_guessed_between(pool: Any) -> None:
    pool.write("a/x.txt", "one")
    pool.write("b/x.txt", "two")
    with pool.gate() as gate:
        gate.run()
        with pytest.raises(UsageError, match=r"several files end in x\.txt") as caught:
            gate.why("x.txt")
        assert "/x.txt" in caught.value.hint
