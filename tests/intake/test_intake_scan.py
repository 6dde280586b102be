"""Scanning real folders into a real ledger."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Config, FolderConfig, PoolConfig, ProcessConfig
from tidegate.errors import PoolUnavailable
from tidegate.intake import Rules, Scanner, ScanReport
from tidegate.ledger import Clock, SqliteLedger, Terms
from tidegate.pool import PoolPath, disk, open_pool

VERSIONS = {"register": "1", "checksum": "1", "text": "1"}


class Scans:
    """A pool, a ledger, and scans of it."""

    def __init__(self, pool: Path, state: Path) -> None:
        self.pool, self.state = pool, state
        self.rules = Rules(Config(PoolConfig(pool)), VERSIONS)
        self.ledger, _ = SqliteLedger.open(state, Terms(settle_s=0.0), Clock.of_host())

    def scan(self, pace: Callable[[], bool] = lambda: False) -> ScanReport:
        root = open_pool(self.pool)
        try:
            return Scanner(root, self.ledger, self.rules, pace).run()
        finally:
            os.close(root)

    def with_rules(self, **config: Any) -> None:
        folders = config.pop("folder", ())
        self.rules = Rules(Config(PoolConfig(self.pool, folder=folders), **config), VERSIONS)

    def paths(self) -> set[bytes]:
        with contextlib.closing(sqlite3.connect(self.state / "ledger.db")) as db:
            rows = db.execute("SELECT d.path, f.name FROM file f JOIN directory d ON d.id = f.directory").fetchall()
        return {folder + b"/" + name if folder else name for folder, name in rows}

    def writes(self) -> int:
        return self.ledger._store._db.total_changes


@pytest.fixture
def scans(tmp_path: Path) -> Iterator[Scans]:
    (tmp_path / "pool").mkdir()
    made = Scans(tmp_path / "pool", tmp_path / "state")
    yield made
    made.ledger.close()


def fill(folder: Path, count: int, text: str = "x") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"{number:05}.txt").write_text(text)


def test_every_file_of_every_folder_is_registered_once(scans: Scans) -> None:
    fill(scans.pool / "a" / "b", 3)
    fill(scans.pool / "c", 2)
    report = scans.scan()
    assert (report.files, report.new, report.size, report.is_complete) == (5, 5, 5, True)
    assert report.folders == 4
    assert b"a/b/00001.txt" in scans.paths()


def test_an_empty_pool_is_a_complete_scan(scans: Scans) -> None:
    report = scans.scan()
    assert (report.folders, report.files, report.is_complete) == (1, 0, True)


def test_a_scan_that_finds_nothing_new_writes_nothing(scans: Scans) -> None:
    for folder in ("a", "b/c", "d"):
        fill(scans.pool / folder, 20)
    scans.scan()
    before, log = scans.writes(), (scans.state / "ledger.db-wal").stat()
    report = scans.scan()
    after = (scans.state / "ledger.db-wal").stat()
    assert report.unchanged == 60
    assert scans.writes() == before
    assert (after.st_mtime_ns, after.st_size) == (log.st_mtime_ns, log.st_size)


def test_only_the_folder_that_differs_is_opened(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("a", "b", "c"):
        fill(scans.pool / folder, 5)
    scans.scan()
    (scans.pool / "b" / "00002.txt").write_text("longer than before")
    opened: list[PoolPath] = []
    ask = scans.ledger.known_files
    monkeypatch.setattr(scans.ledger, "known_files", lambda folder: opened.append(folder) or ask(folder))
    report = scans.scan()
    assert opened == [PoolPath(b"b")]
    assert (report.changed, report.unchanged) == (1, 14)


def test_a_scan_that_is_stopped_goes_on_from_there(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.intake.scan.ROWS_PER_COMMIT", 5)
    for number in range(10):
        fill(scans.pool / f"{number}", 4)
    stopped = scans.scan(pace=lambda: True)
    assert not stopped.is_complete
    known = len(scans.paths())
    assert 0 < known < 40
    report = scans.scan()
    assert (report.unchanged, report.new) == (known, 40 - known)


def test_new_rules_open_every_folder_once(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(scans.pool / "a", 3)
    fill(scans.pool / "b", 3)
    (scans.pool / "b" / "film.mp4").write_bytes(b"film")
    scans.scan()
    scans.with_rules(process=(ProcessConfig("*.mp4", "register"),))
    opened: list[PoolPath] = []
    ask = scans.ledger.known_files
    monkeypatch.setattr(scans.ledger, "known_files", lambda folder: opened.append(folder) or ask(folder))
    report = scans.scan()
    assert sorted(opened) == [PoolPath(b"a"), PoolPath(b"b")]
    assert (report.changed, report.unchanged) == (1, 6), "only the film has another plan"
    opened.clear()
    scans.scan()
    assert opened == []


def test_folders_with_a_loop_change_no_plan_of_other_files(scans: Scans) -> None:
    fill(scans.pool / "a", 2)
    scans.scan()
    scans.with_rules(folder=(FolderConfig("b/**", kept_for_s=60.0),))
    assert scans.scan().changed == 0


def test_names_of_any_bytes_are_registered_as_they_are(scans: Scans) -> None:
    names = [
        b"caf\xe9.txt",
        b"new\nline.txt",
        "e\u0301.txt".encode(),
        "é.txt".encode(),
        b"trailing .",
        b" leading",
        "\u202egnp.exe".encode(),
        b"CON",
        b"x" * 255,
        b"\x01\x7f\xff",
        "合同.pdf".encode(),
    ]
    root = os.fsencode(scans.pool)
    for name in names:
        os.close(os.open(root + b"/" + name, os.O_CREAT | os.O_WRONLY))
    assert scans.scan().new == len(names)
    assert scans.paths() == set(names)
    assert scans.scan().unchanged == len(names)


def test_symlinks_are_recorded_and_not_followed(scans: Scans, tmp_path: Path) -> None:
    fill(tmp_path / "outside", 3)
    fill(scans.pool / "inside", 1)
    (scans.pool / "out").symlink_to(tmp_path / "outside")
    (scans.pool / "up").symlink_to("..")
    (scans.pool / "a").symlink_to("b")
    (scans.pool / "b").symlink_to("a")
    report = scans.scan()
    assert scans.paths() == {b"inside/00000.txt", b"out", b"up", b"a", b"b"}
    assert report.is_complete
    kinds = {name: one.kind for name, one in scans.ledger.known_files(PoolPath(b"")).items()}
    assert set(kinds.values()) == {"symlink"}


def test_pipes_sockets_and_devices_are_never_opened(scans: Scans) -> None:
    os.mkfifo(scans.pool / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.open(scans.pool, os.O_RDONLY)
        bound.bind(f"/proc/self/fd/{here}/s.txt")
        os.close(here)
    opened: list[object] = []

    def watch(operation: str, target: object) -> None:
        if operation == "open_beneath":
            opened.append(target)

    with disk.watch_operations(watch):
        report = scans.scan()
    assert opened == [b""], "a scan opens folders only"
    assert (report.ignored, report.files) == (2, 0)


def test_the_scanner_opens_no_file(scans: Scans) -> None:
    fill(scans.pool / "a", 5)
    done: list[str] = []
    with disk.watch_operations(lambda operation, target: done.append(operation)):
        scans.scan()
    assert set(done) <= {"open_folder", "open_beneath", "list_folder", "stat", "lock", "unlock"}
    assert done.count("open_beneath") == 2, "one for each folder"


def test_a_flat_folder_of_twenty_thousand_is_registered(scans: Scans) -> None:
    folder = os.open(scans.pool, os.O_RDONLY)
    for number in range(20_000):
        os.close(os.open(f"{number}.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    report = scans.scan()
    assert (report.new, report.is_complete) == (20_000, True)
    before = scans.writes()
    assert scans.scan().unchanged == 20_000
    assert scans.writes() == before


def test_a_tree_of_two_thousand_levels_is_walked(scans: Scans) -> None:
    here = os.open(scans.pool, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    try:
        report = scans.scan()
        assert (report.folders, report.files, report.is_complete) == (2001, 1, True)
        assert b"d/" * 2000 + b"deep.txt" in scans.paths()
    finally:
        subprocess.run(["rm", "-rf", scans.pool / "d"], check=True)  # deeper than shutil can go


def test_a_folder_that_cannot_be_listed_makes_the_scan_incomplete_and_loses_nothing(
    scans: Scans, as_nobody: Callable[[Callable[[], Any]], int], tmp_path: Path
) -> None:
    fill(scans.pool / "open", 2)
    fill(scans.pool / "shut", 2)
    scans.scan()
    known = scans.paths()
    scans.ledger.close()
    for path in [tmp_path, *tmp_path.rglob("*")]:
        os.chown(path, 65534, 65534)
    reach(tmp_path)
    (scans.pool / "shut").chmod(0)

    def scan() -> None:
        mine = Scans(scans.pool, scans.state)
        report = mine.scan()
        assert not report.is_complete
        assert [(path.raw, said) for path, said in report.errors] == [(b"shut", "Permission denied")]
        assert (report.unchanged, report.unseen, report.new) == (2, 0, 0)
        assert mine.paths() == known

    try:
        assert as_nobody(scan) == 0
    finally:
        (scans.pool / "shut").chmod(0o755)
        scans.ledger, _ = SqliteLedger.open(scans.state, Terms(settle_s=0.0), Clock.of_host())


def reach(folder: Path) -> None:
    """Let everybody pass through the folders above a test's own."""
    for parent in folder.parents:
        if parent.owner() == "root" and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)


@pytest.mark.parametrize("code", ["EIO", "ESTALE", "EACCES", "EMFILE"])
def test_an_error_of_listing_concludes_nothing_and_the_next_scan_finds_all(scans: Scans, code: str) -> None:
    import errno

    fill(scans.pool / "a", 3)
    fill(scans.pool / "b", 3)

    def fail(operation: str, target: object) -> None:
        if operation == "open_beneath" and target == b"a":
            raise OSError(getattr(errno, code), "planted")

    with disk.watch_operations(fail):
        report = scans.scan()
    assert (report.new, report.is_complete) == (3, False)
    assert scans.scan().new == 3


def test_an_error_in_the_middle_of_a_listing_registers_nothing_of_that_folder(scans: Scans) -> None:
    fill(scans.pool / "a", 5)
    seen: list[object] = []

    def fail(operation: str, target: object) -> None:
        if operation == "stat" and str(target).endswith(".txt"):
            seen.append(target)
            if len(seen) == 4:
                raise OSError(5, "planted")

    with disk.watch_operations(fail):
        report = scans.scan()
    assert (report.files, report.is_complete) == (0, False)
    assert scans.paths() == set()


def test_names_that_vanish_during_the_listing_are_left_out(scans: Scans) -> None:
    fill(scans.pool / "a", 5)

    def vanish(operation: str, target: object) -> None:
        if operation == "stat" and target == "00003.txt":
            (scans.pool / "a" / "00003.txt").unlink()

    with disk.watch_operations(vanish):
        report = scans.scan()
    assert (report.new, report.is_complete) == (4, True)


def test_a_folder_emptied_between_two_scans_is_not_taken_as_deleted(scans: Scans) -> None:
    fill(scans.pool / "a", 3)
    scans.scan()
    for path in (scans.pool / "a").iterdir():
        path.unlink()
    report = scans.scan()
    assert report.unseen == 3
    assert len(scans.paths()) == 3, "nothing is concluded from one look"


def test_partial_files_are_picked_up_after_the_rename(scans: Scans) -> None:
    (scans.pool / "film.mp4.part").write_text("x")
    (scans.pool / "a.pdf.crdownload").write_text("x")
    report = scans.scan()
    assert (report.files, report.ignored) == (0, 2)
    (scans.pool / "film.mp4.part").rename(scans.pool / "film.mp4")
    (scans.pool / "a.pdf.crdownload").rename(scans.pool / "a.pdf")
    scans.scan()
    assert scans.paths() == {b"film.mp4", b"a.pdf"}


def test_a_folder_of_files_moved_in_with_old_times_is_found(scans: Scans, tmp_path: Path) -> None:
    scans.scan()
    fill(tmp_path / "other", 3)
    for path in (tmp_path / "other").iterdir():
        os.utime(path, (1_262_304_000, 1_262_304_000))
    (tmp_path / "other").rename(scans.pool / "moved")
    assert scans.scan().new == 3


def test_a_file_of_the_future_is_registered_once(scans: Scans) -> None:
    (scans.pool / "a").write_text("x")
    os.utime(scans.pool / "a", (1_900_000_000, 1_900_000_000))
    assert scans.scan().new == 1
    assert scans.scan().unchanged == 1


@pytest.mark.parametrize("seconds", [0, -5_000_000_000, 1 << 33])
def test_times_of_any_size_are_taken(scans: Scans, seconds: int) -> None:
    (scans.pool / "a").write_text("x")
    os.utime(scans.pool / "a", (seconds, seconds))
    assert scans.scan().new == 1
    assert scans.scan().unchanged == 1


def test_the_pace_is_asked_between_commits(scans: Scans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.intake.scan.ROWS_PER_COMMIT", 10)
    for number in range(6):
        fill(scans.pool / f"{number}", 10)
    levels: list[int] = []

    def pace() -> bool:
        levels.append(scans.ledger.backlog().settling)
        return False

    scans.scan(pace)
    assert levels == [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize(
    ("make", "words"), [("nothing", "does not exist"), ("file", "is not a folder"), ("loop", "cannot be opened")]
)
def test_a_pool_that_is_no_folder_is_refused_in_words(tmp_path: Path, make: str, words: str) -> None:
    path = tmp_path / "p"
    if make == "file":
        path.write_text("x")
    if make == "loop":
        path.symlink_to("p")
    with pytest.raises(PoolUnavailable, match=words) as caught:
        open_pool(path)
    assert str(path) in str(caught.value)
    assert caught.value.hint
