"""Walking: every folder once, nothing followed, nothing opened, nothing concluded from what was not seen."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.errors import PoolUnavailable
from tidegate.pool import Kind, Listing, PoolPath, disk, open_pool, walk
from tidegate.pool.stamps import kind_of

DEEP = 2000


def nothing(_folder: PoolPath, _name: bytes, _kind: Kind) -> bool:
    return False


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "pool").mkdir()
    root = open_pool(tmp_path / "pool")
    yield root
    os.close(root)


def folders(root: int) -> dict[bytes, Listing]:
    listings = list(walk(root, nothing))
    assert len({listing.path for listing in listings}) == len(listings)
    return {listing.path.raw: listing for listing in listings}


def names(listing: Listing) -> list[bytes]:
    return [name for name, _ in listing.entries]


def test_every_folder_is_listed_once_with_its_files_in_order(tmp_path: Path, pool: int) -> None:
    for path in ("a/b/x", "a/y", "a/X", "z"):
        (tmp_path / "pool" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pool" / path).touch()
    found = folders(pool)
    assert {raw: names(listing) for raw, listing in found.items()} == {
        b"": [b"z"],
        b"a": [b"X", b"y"],
        b"a/b": [b"x"],
    }


def test_ignored_entries_are_counted_and_ignored_folders_not_entered(tmp_path: Path, pool: int) -> None:
    for path in ("keep/x", "skip/y", "x.part"):
        (tmp_path / "pool" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "pool" / path).touch()
    found = list(walk(pool, lambda _folder, name, _kind: name in (b"skip", b"x.part")))
    assert {listing.path.raw: listing.ignored for listing in found} == {b"": 2, b"keep": 0}


@pytest.mark.fault("F46")
def test_symbolic_links_are_reported_and_not_followed(tmp_path: Path, pool: int) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").touch()
    (tmp_path / "pool" / "loop").symlink_to(".")
    (tmp_path / "pool" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "pool" / "broken").symlink_to("nowhere")
    found = folders(pool)
    assert set(found) == {b""}
    assert {kind_of(status.st_mode) for _, status in found[b""].entries} == {Kind.SYMLINK}


@pytest.mark.fault("F47")
def test_special_files_are_reported_and_never_opened(tmp_path: Path, pool: int) -> None:
    os.mkfifo(tmp_path / "pool" / "fifo")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "pool" / "socket"))
        listing = folders(pool)[b""]
    assert [kind_of(status.st_mode) for _, status in listing.entries] == [Kind.SPECIAL, Kind.SPECIAL]


@pytest.mark.fault("F45")
def test_names_of_any_bytes_come_as_they_are(tmp_path: Path, pool: int) -> None:
    odd = sorted([b"\xff", b"new\nline", "é".encode(), "e\u0301".encode(), b"x" * 255, b" ", b"CON", b"-rf"])
    for name in odd:
        Path(os.fsdecode(os.fsencode(tmp_path / "pool") + b"/" + name)).touch()
    assert names(folders(pool)[b""]) == odd


def test_walk_opens_folders_and_no_file(tmp_path: Path, pool: int) -> None:
    for number in range(30):
        path = tmp_path / "pool" / f"{number % 3}" / f"{number}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"content")
    seen: Counter[str] = Counter()
    with disk.watch_operations(lambda operation, _: seen.update([operation])):
        folders(pool)
    assert seen == {"open_beneath": 4, "list_folder": 4, "stat": 33}


@pytest.mark.fault("F50")
def test_two_thousand_levels_beyond_the_longest_path_are_walked(tmp_path: Path, pool: int) -> None:
    here = os.dup(pool)
    for _ in range(DEEP):
        os.mkdir(b"level", dir_fd=here)
        deeper = os.open(b"level", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open(b"bottom", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    try:
        *_, last = walk(pool, nothing)
        assert last.error is None
        assert len(last.path.raw) > os.pathconf("/", "PC_PATH_MAX")
        assert last.path.raw.count(b"/") == DEEP - 1
        assert names(last) == [b"bottom"]
        descriptor = disk.open_beneath(pool, (last.path / b"bottom").raw)
        assert disk.is_regular(disk.stat_open(descriptor))
        os.close(descriptor)
    finally:
        subprocess.run(["rm", "-rf", str(tmp_path / "pool")], check=True)


UNREADABLE = """
import os, sys
from tidegate.pool import open_pool, walk
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
for listing in walk(open_pool(sys.argv[1]), lambda *_: False):
    print(listing.path, listing.error.errno if listing.error else len(listing.entries))
"""


@pytest.mark.fault("F42")
def test_unreadable_folder_is_reported_and_the_others_go_on() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        Path(folder).chmod(0o755)
        for name in ("closed", "open"):
            (Path(folder) / name).mkdir()
            (Path(folder) / name / "x").touch()
        (Path(folder) / "closed").chmod(0)
        command = [sys.executable, "-c", UNREADABLE, folder]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        (Path(folder) / "closed").chmod(0o755)
    assert ended.stderr == ""
    assert sorted(ended.stdout.splitlines()) == [" 0", f"closed {errno.EACCES}", "open 1"]


@pytest.mark.parametrize("operation", ["open_beneath", "list_folder", "stat"])
def test_folder_whose_listing_fails_has_an_error_and_no_entries(tmp_path: Path, pool: int, operation: str) -> None:
    (tmp_path / "pool" / "x").touch()

    def fail(what: str, _target: object) -> None:
        if what == operation:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with disk.watch_operations(fail):
        (listing,) = walk(pool, nothing)
    assert listing.entries == []
    assert listing.error is not None
    assert listing.error.errno == errno.EIO


@pytest.mark.fault("F38")
def test_too_many_open_files_stop_no_walk(tmp_path: Path, pool: int) -> None:
    (tmp_path / "pool" / "a").mkdir()

    def fail(what: str, target: object) -> None:
        if what == "open_beneath" and target == b"a":
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with disk.watch_operations(lambda what, target: fail(what, target)):
        assert len(list(walk(pool, nothing))) == 2


def test_file_that_vanishes_while_listed_is_left_out(tmp_path: Path, pool: int) -> None:
    for name in ("a", "b"):
        (tmp_path / "pool" / name).touch()

    def vanish(what: str, target: object) -> None:
        if what == "stat" and target == "a":
            (tmp_path / "pool" / "a").unlink()

    with disk.watch_operations(vanish):
        listing = folders(pool)[b""]
    assert b"b" in names(listing)
    assert listing.error is None


def test_missing_pool_and_file_as_pool_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in ("nowhere", "file"):
        with pytest.raises(PoolUnavailable) as caught:
            open_pool(tmp_path / path)
        assert caught.value.hint
        assert path in str(caught.value)
