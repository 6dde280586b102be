"""When a file may be read, what a stamp says, and where a state folder may lie."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from tidegate.errors import StateError
from tidegate.pool import Kind, PoolPath, Stamp, disk, open_pool
from tidegate.pool.mounts import LOCAL, REMOTE, check_state_place, filesystem_of, is_network
from tidegate.pool.settle import GONE, Patience, Verdict, judge, look_at_all
from tidegate.pool.stamps import kind_of, signed

HERE = Stamp(10, 20, 30, 40)
GREW = Stamp(11, 21, 31, 40)
PATIENCE = Patience(window_s=2.0, longest_s=60.0)


@pytest.mark.parametrize(
    ("now", "unsettled_for_s", "verdict"),
    [
        (HERE, 2.0, Verdict.RESTS),
        (HERE, 1000.0, Verdict.RESTS),
        (GREW, 2.0, Verdict.MOVES),
        (GREW, 60.0, Verdict.MOVES),
        (GREW, 60.1, Verdict.GROWING),
        (Stamp(10, 20, 31, 40), 2.0, Verdict.MOVES),
        (Stamp(10, 20, 30, 41), 2.0, Verdict.MOVES),
        (None, 2.0, Verdict.GONE),
        (OSError(errno.EIO, "no answer"), 1000.0, Verdict.UNKNOWN),
    ],
)
def test_two_looks_decide(now: Stamp | OSError | None, unsettled_for_s: float, verdict: Verdict) -> None:
    assert judge(HERE, now, unsettled_for_s, PATIENCE) is verdict


def test_every_verdict_is_decided_above() -> None:
    (mark,) = test_two_looks_decide.pytestmark
    assert {row[2] for row in mark.args[1]} == set(Verdict)


def test_looks_see_stamps_gone_files_and_errors_in_the_order_asked(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"12345")
    (tmp_path / "top").touch()
    asked = [PoolPath(raw) for raw in (b"a/x", b"gone/x", b"top", b"a/none", b"top/x")]
    root = open_pool(tmp_path)
    seen = look_at_all(root, asked)
    assert seen == [
        Stamp.of((tmp_path / "a" / "x").stat()),
        None,
        Stamp.of((tmp_path / "top").stat()),
        None,
        None,
    ]

    def fail(operation: str, target: object) -> None:
        if operation == "stat" and target == b"x":
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with disk.watch_operations(fail):
        (broken,) = look_at_all(root, asked[:1])
    assert isinstance(broken, OSError)
    os.close(root)


@pytest.mark.parametrize("code", sorted(GONE))
def test_share_that_answers_says_gone(tmp_path: Path, code: int) -> None:
    def fail(operation: str, _target: object) -> None:
        if operation == "stat":
            raise OSError(code, os.strerror(code))

    root = open_pool(tmp_path)
    with disk.watch_operations(fail):
        assert look_at_all(root, [PoolPath(b"x")]) == [None]
    os.close(root)


def test_files_of_one_folder_are_looked_at_through_one_descriptor(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / str(number)).touch()
    root = open_pool(tmp_path)
    opened: list[object] = []

    def note(operation: str, target: object) -> None:
        if operation == "open_beneath":
            opened.append(target)

    with disk.watch_operations(note):
        look_at_all(root, [PoolPath(b"%d" % number) for number in range(20)])
    assert opened == [b""]
    os.close(root)


# --- stamps ----------------------------------------------------------------------------------------------------------


def test_stamp_is_what_stat_said(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"12345")
    status = path.stat()
    assert Stamp.of(status) == Stamp(5, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


@pytest.mark.fault("F32")
@pytest.mark.parametrize("mtime_ns", [0, -1, -(10**18), 2**31 * 10**9, 4 * 10**18])
def test_times_of_any_age_are_kept(tmp_path: Path, mtime_ns: int) -> None:
    path = Path("/dev/shm") / f"tidegate-{os.getpid()}"
    path.touch()
    try:
        os.utime(path, ns=(0, mtime_ns))
        assert Stamp.of(path.stat()).mtime_ns == mtime_ns
    finally:
        path.unlink()


def test_inode_of_64_bits_fits_a_signed_column() -> None:
    assert signed(2**64 - 1) == -1
    assert signed(2**63) == -(2**63)
    assert signed(2**63 - 1) == 2**63 - 1


def test_ctime_and_inode_alone_are_no_change_of_content() -> None:
    assert HERE.has_same_content_as(Stamp(10, 20, 31, 41))
    assert not HERE.has_same_content_as(Stamp(11, 20, 30, 40))
    assert not HERE.has_same_content_as(Stamp(10, 21, 30, 40))


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (stat.S_IFREG, Kind.FILE),
        (stat.S_IFDIR, Kind.FOLDER),
        (stat.S_IFLNK, Kind.SYMLINK),
        (stat.S_IFIFO, Kind.SPECIAL),
        (stat.S_IFSOCK, Kind.SPECIAL),
        (stat.S_IFCHR, Kind.SPECIAL),
        (stat.S_IFBLK, Kind.SPECIAL),
    ],
)
def test_kind_follows_the_mode(mode: int, kind: Kind) -> None:
    assert kind_of(mode | 0o644) is kind


# --- mounts ----------------------------------------------------------------------------------------------------------


def test_kernel_names_the_file_system(tmp_path: Path) -> None:
    assert filesystem_of(Path("/dev/shm")) == "tmpfs"
    assert filesystem_of(Path("/proc")).startswith("0x")
    with pytest.raises(FileNotFoundError):
        filesystem_of(tmp_path / "none")


def test_known_local_file_systems_alone_are_local() -> None:
    assert not any(is_network(name) for name in LOCAL.values())
    assert all(is_network(name) for name in (*REMOTE.values(), "0x9fa0", ""))


@pytest.mark.parametrize("place", ["pool", "pool/state", "pool/a/b/state", "link/state"])
def test_state_inside_the_pool_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "pool").mkdir()
    (tmp_path / "link").symlink_to("pool")
    with pytest.raises(StateError) as caught:
        check_state_place(tmp_path / place, tmp_path / "pool", "ext4")
    assert caught.value.hint


@pytest.mark.fault("F56")
@pytest.mark.parametrize("filesystem", [*sorted(REMOTE.values()), "0x1234"])
def test_state_on_a_network_mount_is_refused(tmp_path: Path, filesystem: str) -> None:
    with pytest.raises(StateError, match="not safe"):
        check_state_place(tmp_path / "state", tmp_path / "pool", filesystem)


@pytest.mark.parametrize("filesystem", sorted(LOCAL.values()))
def test_state_beside_the_pool_on_a_local_disk_is_fine(tmp_path: Path, filesystem: str) -> None:
    check_state_place(tmp_path / "pool-state", tmp_path / "pool", filesystem)
