"""The settle gate: nothing is read before it rests, on a clock that the tests move."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.config import Config, PoolConfig
from tidegate.errors import Failure
from tidegate.intake import Rules, Scanner, settle_due
from tidegate.ledger import Clock, FileView, SqliteLedger, State, Terms, Want
from tidegate.pool import PoolPath, disk, open_pool
from tidegate.pool.settle import Patience, Verdict, judge
from tidegate.pool.stamps import Stamp

SECOND = 1_000_000_000
WINDOW_S = 2.0
LONGEST_S = 60.0
PATIENCE = Patience(WINDOW_S, LONGEST_S)


class Gatehouse:
    """A pool, a ledger and a clock; scans, looks and claims."""

    def __init__(self, tmp_path: Path) -> None:
        self.pool = tmp_path / "pool"
        self.pool.mkdir()
        self.now_ns = 1000 * SECOND
        clock = Clock(lambda: self.now_ns, lambda: self.now_ns, "boot")
        self.ledger, _ = SqliteLedger.open(tmp_path / "state", Terms(settle_s=WINDOW_S), clock)
        self.root = open_pool(self.pool)
        self.rules = Rules(Config(PoolConfig(self.pool)), {"text": "1", "checksum": "1", "register": "1"})

    def write(self, name: str, content: str = "x") -> Path:
        (self.pool / name).write_text(content)
        return self.pool / name

    def scan(self) -> None:
        Scanner(self.root, self.ledger, self.rules, lambda: False).run()

    def wait(self, seconds: float = WINDOW_S) -> int:
        """The clock moves and a batch of looks is taken; how many files became ready."""
        self.now_ns += int(seconds * SECOND)
        return settle_due(self.root, self.ledger, PATIENCE)

    def view(self, name: str) -> FileView:
        view = self.ledger.find_file(PoolPath(name.encode()))
        assert view is not None
        return view

    def state(self, name: str) -> tuple[State, Failure | None]:
        task = self.view(name).tasks[0]
        return task.state, task.failure

    def claimable(self) -> list[bytes]:
        return [claim.path.raw for claim in self.ledger.commit("host:1:b:aaaaaaaa", [], Want(100, 1 << 40)).claims]


@pytest.fixture
def gatehouse(tmp_path: Path) -> Iterator[Gatehouse]:
    made = Gatehouse(tmp_path)
    yield made
    made.ledger.close()
    os.close(made.root)


def test_a_file_that_rests_is_ready_after_one_window(gatehouse: Gatehouse) -> None:
    gatehouse.write("a.txt")
    gatehouse.scan()
    assert gatehouse.wait(WINDOW_S / 2) == 0, "no second look before the window is over"
    assert gatehouse.claimable() == []
    assert gatehouse.wait(WINDOW_S / 2) == 1
    assert gatehouse.claimable() == [b"a.txt"]


@pytest.mark.fault("F26")
def test_rf01_a_slow_writer_is_never_read_before_its_final_size(gatehouse: Gatehouse) -> None:
    path = gatehouse.write("slow.txt", "x" * 1000)
    gatehouse.scan()
    for size in range(2000, 31_000, 1000):
        path.write_text("x" * size)
        assert gatehouse.wait(1.0) == 0
        assert gatehouse.claimable() == []
    assert gatehouse.wait() + gatehouse.wait() == 1
    (claim,) = gatehouse.ledger.commit("o:1:b:a", [], Want(9, 1 << 40)).claims
    assert claim.stamp.size == 30_000


def test_rf02_a_start_in_the_middle_of_the_write_waits_just_the_same(gatehouse: Gatehouse) -> None:
    path = gatehouse.write("slow.txt", "x" * 3000)
    gatehouse.scan()
    for size in range(4000, 21_000, 1000):
        path.write_text("x" * size)
        assert gatehouse.wait(0.5) == 0
        gatehouse.scan()
    while gatehouse.wait() == 0:
        assert gatehouse.now_ns < 1100 * SECOND
    (claim,) = gatehouse.ledger.commit("o:1:b:a", [], Want(9, 1 << 40)).claims
    assert claim.stamp.size == 20_000


def test_a_writer_that_keeps_the_size_is_noticed_by_its_mtime(gatehouse: Gatehouse) -> None:
    path = gatehouse.write("a.txt", "one")
    gatehouse.scan()
    os.utime(path, ns=(5 * SECOND, 5 * SECOND))
    assert gatehouse.wait() == 0
    assert gatehouse.state("a.txt") == (State.SETTLING, None)
    assert gatehouse.wait() == 1


def test_ten_thousand_files_settle_in_one_window(gatehouse: Gatehouse) -> None:
    for number in range(100):
        (gatehouse.pool / f"{number}").mkdir()
        for inner in range(100):
            (gatehouse.pool / f"{number}" / f"{inner}.txt").touch()
    gatehouse.scan()
    opened: list[object] = []
    with disk.watch_operations(lambda operation, target: opened.append(operation)):
        assert gatehouse.wait() == 10_000
    assert opened.count("open_beneath") == 100, "one for each folder"
    assert opened.count("stat") == 10_000


def test_a_file_that_is_gone_at_the_second_look_is_blocked_as_vanished_and_suspected(gatehouse: Gatehouse) -> None:
    gatehouse.write("a.txt")
    gatehouse.write("b.txt")
    gatehouse.scan()
    (gatehouse.pool / "a.txt").unlink()
    assert gatehouse.wait() == 1
    assert gatehouse.state("a.txt") == (State.BLOCKED, Failure.VANISHED)
    assert gatehouse.view("a.txt").presence == "suspected"


def test_a_vanished_file_that_comes_back_as_it_was_settles_again(gatehouse: Gatehouse) -> None:
    path = gatehouse.write("a.txt")
    gatehouse.scan()
    path.rename(gatehouse.pool.parent / "kept")
    gatehouse.wait()
    (gatehouse.pool.parent / "kept").rename(path)
    gatehouse.scan()
    assert gatehouse.view("a.txt").presence == "present"
    assert gatehouse.state("a.txt")[0] is State.SETTLING
    assert gatehouse.wait() == 1


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES, errno.EBUSY])
def test_a_share_that_does_not_answer_blames_no_file(gatehouse: Gatehouse, code: int) -> None:
    gatehouse.write("a.txt")
    gatehouse.scan()

    def fail(operation: str, target: object) -> None:
        if operation == "stat":
            raise OSError(code, "planted")

    with disk.watch_operations(fail):
        for _ in range(5):
            assert gatehouse.wait() == 0
    assert gatehouse.state("a.txt") == (State.SETTLING, None)
    assert gatehouse.view("a.txt").presence == "present"
    assert gatehouse.view("a.txt").tasks[0].reason == "the share does not answer"
    assert gatehouse.wait() == 1


@pytest.mark.fault("F26")
def test_rf06_a_file_that_grows_for_ever_is_blocked_as_growing_and_returns_when_it_rests(gatehouse: Gatehouse) -> None:
    path = gatehouse.write("log.txt")
    gatehouse.scan()
    size = 1
    while gatehouse.state("log.txt")[0] is State.SETTLING:
        size += 1
        path.write_text("x" * size)
        gatehouse.wait()
        assert gatehouse.now_ns < (1000 + 3 * LONGEST_S) * SECOND
    assert gatehouse.state("log.txt") == (State.BLOCKED, Failure.GROWING)
    assert gatehouse.now_ns > (1000 + LONGEST_S) * SECOND
    gatehouse.scan()
    assert gatehouse.state("log.txt")[0] is State.SETTLING, "its stamp changed since"
    assert gatehouse.wait() == 1
    assert gatehouse.claimable() == [b"log.txt"]


def test_looking_opens_no_file_and_follows_no_link(gatehouse: Gatehouse) -> None:
    gatehouse.write("a.txt")
    (gatehouse.pool / "link").symlink_to("nowhere")
    gatehouse.scan()
    done: list[str] = []
    with disk.watch_operations(lambda operation, target: done.append(operation)):
        assert gatehouse.wait() == 2
    assert set(done) == {"open_beneath", "stat", "lock", "unlock"}
    assert done.count("open_beneath") == 1


def test_a_folder_swapped_for_a_link_before_the_look_is_gone(gatehouse: Gatehouse, tmp_path: Path) -> None:
    (gatehouse.pool / "d").mkdir()
    gatehouse.write("d/a.txt")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("x")
    gatehouse.scan()
    (gatehouse.pool / "d" / "a.txt").unlink()
    (gatehouse.pool / "d").rmdir()
    (gatehouse.pool / "d").symlink_to(tmp_path / "outside")
    assert gatehouse.wait() == 0
    assert gatehouse.state("d/a.txt") == (State.BLOCKED, Failure.VANISHED)


A, B = Stamp(1, 1, 1, 1), Stamp(2, 1, 1, 1)


@pytest.mark.parametrize(
    ("before", "now", "since_s", "verdict"),
    [
        (A, A, 0.0, Verdict.RESTS),
        (A, A, 1e9, Verdict.RESTS),
        (A, B, 5.0, Verdict.MOVES),
        (A, B, LONGEST_S, Verdict.MOVES),
        (A, B, LONGEST_S + 1, Verdict.GROWING),
        (A, None, 0.0, Verdict.GONE),
        (A, None, 1e9, Verdict.GONE),
        (A, OSError(errno.EIO, "x"), 1e9, Verdict.UNKNOWN),
        (A, Stamp(1, 1, 2, 1), 0.0, Verdict.MOVES),
        (A, Stamp(1, 1, 1, 2), 0.0, Verdict.MOVES),
    ],
)
def test_the_verdict_of_two_looks(before: Stamp, now: Stamp | OSError | None, since_s: float, verdict: Verdict) -> None:
    assert judge(before, now, since_s, PATIENCE) is verdict
