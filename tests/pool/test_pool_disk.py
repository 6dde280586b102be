"""Opening beneath a root without following a link, with openat2 and without; renaming, locks, reading."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.pool import disk


@pytest.fixture(params=["openat2", "by component"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A folder `root` with `a/b/x` in it and a secret beside it; once on a kernel that lacks openat2."""
    (tmp_path / "root" / "a" / "b").mkdir(parents=True)
    (tmp_path / "root" / "a" / "b" / "x").write_bytes(b"inside")
    (tmp_path / "secret").write_bytes(b"outside")
    if request.param == "by component":
        monkeypatch.setattr(disk, "_libc", OldKernel())
    descriptor = os.open(tmp_path / "root", os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


class OldKernel:
    """A C library on a kernel before openat2."""

    def syscall(self, *_arguments: object) -> int:
        ctypes.set_errno(errno.ENOSYS)
        return -1


def read(root: int, path: bytes) -> bytes:
    descriptor = disk.open_beneath(root, path)
    try:
        return disk.read_at(descriptor, 100, 0)
    finally:
        os.close(descriptor)


def test_file_beneath_is_opened(root: int) -> None:
    assert read(root, b"a/b/x") == b"inside"


def test_root_itself_is_opened(root: int) -> None:
    descriptor = disk.open_beneath(root, b"", os.O_RDONLY | os.O_DIRECTORY)
    assert os.path.samestat(os.fstat(descriptor), os.fstat(root))
    os.close(descriptor)


@pytest.mark.parametrize("path", [b"../secret", b"a/../../secret", b"a/b/../../../secret"])
def test_path_that_climbs_out_is_refused(root: int, path: bytes) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        read(root, path)
    assert caught.value.errno == errno.EXDEV


def test_absolute_path_is_refused(root: int, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        read(root, os.fsencode(tmp_path / "secret"))
    assert caught.value.errno == errno.EXDEV


@pytest.mark.fault("F46")
@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("out", "../secret", b"out"),
        ("up", "..", b"up/secret"),
        ("inner", "a", b"inner/b/x"),
        ("a/b/same", "x", b"a/b/same"),
        ("loop", "loop", b"loop"),
        ("magic", "/proc/self/cwd", b"magic/x"),
    ],
)
def test_no_link_is_followed_not_even_inside(root: int, tmp_path: Path, link: str, target: str, path: bytes) -> None:
    (tmp_path / "root" / link).symlink_to(target)
    with pytest.raises(OSError, match=r".") as caught:
        read(root, path)
    assert caught.value.errno in (errno.ELOOP, errno.ENOTDIR)


@pytest.mark.fault("F47")
def test_fifo_without_writer_is_opened_without_waiting(root: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "root" / "fifo")
    descriptor = disk.open_beneath(root, b"fifo")
    assert not disk.is_regular(disk.stat_open(descriptor))
    os.close(descriptor)


def test_missing_file_and_file_as_folder_are_told_apart(root: int) -> None:
    for path, code in ((b"a/none", errno.ENOENT), (b"a/b/x/y", errno.ENOTDIR)):
        with pytest.raises(OSError, match=r".") as caught:
            read(root, path)
        assert caught.value.errno == code


def test_failed_opening_leaks_no_descriptor(root: int) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (b"a/none", b"../secret", b"a/b/x/y"):
        with pytest.raises(OSError, match=r"."):
            read(root, path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_name_longer_than_any_file_system_takes_is_refused(root: int) -> None:
    with pytest.raises(OSError, match=r".") as caught:
        read(root, b"x" * 5000)
    assert caught.value.errno == errno.ENAMETOOLONG


# --- names, locks, reading -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_folder", [False, True])
@pytest.mark.parametrize("has_flag", [True, False])
def test_rename_onto_a_new_name_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_folder: bool, has_flag: bool
) -> None:
    if not has_flag:
        monkeypatch.setattr(disk, "_libc", WithoutFlags())
    for name in ("source", "taken"):
        path = tmp_path / name
        if is_folder:
            path.mkdir()
            (path / "inside").touch()
        else:
            path.write_text(name)
    with pytest.raises(OSError, match=r".") as caught:
        disk.rename_new(tmp_path / "source", tmp_path / "taken")
    assert caught.value.errno in (errno.EEXIST, errno.ENOTEMPTY)
    assert (tmp_path / "source").exists()
    disk.rename_new(tmp_path / "source", tmp_path / "fresh")
    assert {path.name for path in tmp_path.iterdir()} == {"taken", "fresh"}


class WithoutFlags:
    """A file system that does not know RENAME_NOREPLACE."""

    def renameat2(self, *_arguments: object) -> int:
        ctypes.set_errno(errno.EINVAL)
        return -1


def test_lock_is_exclusive_and_ends_with_its_descriptor(tmp_path: Path) -> None:
    first, second = disk.open_lock(tmp_path / "lock"), disk.open_lock(tmp_path / "lock")
    disk.lock(first)
    assert not disk.try_lock(second)
    assert not disk.try_lock(second, shared=True)
    os.close(first)
    assert disk.try_lock(second)
    os.close(second)


def test_reading_once_survives_a_kernel_without_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    real, refused = os.preadv, []

    def refuse(descriptor: int, buffers: list[memoryview], offset: int, flags: int = 0) -> int:
        if flags:
            refused.append(flags)
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", refuse)
    monkeypatch.setattr(disk, "_dontcache", 0x80)
    descriptor = disk.open_to_read(tmp_path / "x")
    buffer = memoryview(bytearray(4))
    assert [disk.read_once(descriptor, buffer, offset) for offset in (0, 4, 8, 10)] == [4, 4, 2, 0]
    assert refused == [0x80]
    os.close(descriptor)


def test_tree_of_our_own_is_removed_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept").touch()
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / "a" / "x").touch()
    (tmp_path / "tree" / "link").symlink_to(tmp_path / "outside")
    disk.remove_tree(tmp_path / "tree")
    disk.remove_tree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
    assert (tmp_path / "outside" / "kept").exists()


def test_hook_is_taken_away_after_the_block(tmp_path: Path) -> None:
    with disk.watch_operations(lambda *_: None):
        pass
    assert disk.list_names(tmp_path / "none") == []
