"""Every file operation of Tidegate goes through this module, and through one seam in it.

A test installs a hook with `watch_operations`; it is called before each operation with the operation's name and its
target, may raise (a crash, EIO, ENOSPC, EMFILE) or answer a number, which caps the bytes of that one read or write.
What bypasses it is what libraries do themselves: SQLite on the ledger, tantivy inside a snapshot that is being built.
Nothing here decides anything: names, order and durability belong to the callers.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

Hook = Callable[[str, object], int | None]
RawEntry = tuple[bytes, os.stat_result]
"""A name in a directory and what `lstat` said of it."""

_hook: Hook | None = None
_dontcache = 0x80  # RWF_DONTCACHE; 0 once the kernel or a file system has refused it

_SYS_OPENAT2: Final = 437
_RESOLVE_NO_MAGICLINKS: Final = 0x02
_RESOLVE_NO_SYMLINKS: Final = 0x04
_RESOLVE_BENEATH: Final = 0x08
_RENAME_NOREPLACE: Final = 1
_AT_FDCWD: Final = -100
_LONGEST_PATH: Final = 4000  # the kernel takes 4,095 bytes a call; longer paths are opened piece by piece

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@contextlib.contextmanager
def watch_operations(hook: Hook) -> Iterator[None]:
    """Call `hook(operation, target)` before every file operation of this process while the block runs."""
    global _hook
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before


def _seam(operation: str, target: object) -> int | None:
    return None if _hook is None else _hook(operation, target)


# --- opening ---------------------------------------------------------------------------------------------------------


def open_folder(path: str | bytes | Path) -> int:
    """A descriptor of the folder at `path`; raises OSError (ENOTDIR for anything else than a folder)."""
    _seam("open_folder", path)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def open_beneath(root: int, path: bytes, flags: int = os.O_RDONLY) -> int:
    """A descriptor of `path` below the folder `root`, reached without following one symbolic link.

    Raises OSError: ELOOP where a component is a link, EXDEV where the path would leave `root`. Never waits for the
    writer of a FIFO. Uses openat2(2) where the kernel has it, else walks the components.
    """
    _seam("open_beneath", path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | (0 if flags & os.O_PATH else os.O_NONBLOCK)
    if len(path) <= _LONGEST_PATH:
        return _openat2(root, path or b".", flags)
    return _open_long(root, path, flags)


def _open_long(root: int, path: bytes, flags: int) -> int:
    here = os.dup(root)
    try:
        while len(path) > _LONGEST_PATH:
            cut = path.rfind(b"/", 0, _LONGEST_PATH)
            if cut <= 0:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), os.fsdecode(path))
            deeper = _openat2(here, path[:cut], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            os.close(here)
            here, path = deeper, path[cut + 1 :]
        return _openat2(here, path, flags)
    finally:
        os.close(here)


def _openat2(root: int, path: bytes, flags: int) -> int:
    how = _OpenHow(flags, 0, _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS)
    while True:
        answer = int(_libc.syscall(_SYS_OPENAT2, root, path, ctypes.byref(how), ctypes.sizeof(how)))
        if answer >= 0:
            return answer
        code = ctypes.get_errno()
        if code in (errno.ENOSYS, errno.EPERM):
            return _open_by_component(root, path, flags)
        if code not in (errno.EINTR, errno.EAGAIN):
            raise OSError(code, os.strerror(code), os.fsdecode(path))


def _open_by_component(root: int, path: bytes, flags: int) -> int:
    here = os.dup(root)
    try:
        *folders, last = path.split(b"/")
        if path.startswith(b"/") or b".." in (*folders, last):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), os.fsdecode(path))
        for folder in folders:
            deeper = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = deeper
        return os.open(last, flags, dir_fd=here)
    finally:
        os.close(here)


def create_new(path: str | Path) -> int:
    """A descriptor of a new empty file for writing; raises FileExistsError where the name is taken."""
    _seam("create_new", path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)


def open_to_read(path: str | Path) -> int:
    """A descriptor of one of Tidegate's own files, for reading."""
    _seam("open_to_read", path)
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def close(descriptor: int) -> None:
    """Close; raises OSError where the system reports a late write error (the file must then not be trusted)."""
    _seam("close", descriptor)
    os.close(descriptor)


# --- reading and writing ---------------------------------------------------------------------------------------------


def read_into(descriptor: int, buffer: memoryview) -> int:
    """Read up to `len(buffer)` bytes at the descriptor's position; 0 at the end. A short read is normal."""
    cap = _seam("read", descriptor)
    return os.readv(descriptor, [buffer if cap is None else buffer[:cap]])


def read_once(descriptor: int, buffer: memoryview, offset: int) -> int:
    """Read up to `len(buffer)` bytes from `offset` without leaving them in the page cache where the kernel can do that
    (RWF_DONTCACHE, Linux 6.14), so that a server keeps its hot pages. 0 at the end; a short read is normal."""
    global _dontcache
    cap = _seam("read", descriptor)
    part = buffer if cap is None else buffer[:cap]
    if _dontcache:
        try:
            return os.preadv(descriptor, [part], offset, _dontcache)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
            _dontcache = 0
    return os.preadv(descriptor, [part], offset)


def read_at(descriptor: int, length: int, offset: int) -> bytes:
    """Exactly `length` bytes from `offset`, fewer only where the file ends."""
    parts = []
    while length > 0:
        cap = _seam("read", descriptor)
        part = os.pread(descriptor, length if cap is None else min(cap, length), offset)
        if not part:
            break
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write every byte; a short write is continued."""
    view = memoryview(data)
    while view:
        cap = _seam("write", descriptor)
        view = view[os.write(descriptor, view if cap is None else view[:cap]) :]


def sync(descriptor: int) -> None:
    """fsync. After an error the file's content is unknown: discard it and write it anew, never sync again."""
    _seam("sync", descriptor)
    os.fsync(descriptor)


def sync_folder(path: str | Path) -> None:
    """fsync a folder, so that names made in it survive a power cut."""
    _seam("sync_folder", path)
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- looking ---------------------------------------------------------------------------------------------------------


def list_folder(descriptor: int) -> list[RawEntry]:
    """Every name in the folder with its `lstat`; names that vanish meanwhile are left out. No order is promised.

    Raises OSError where the listing or a stat fails: then nothing may be concluded from what was not seen.
    """
    _seam("list_folder", descriptor)
    hook, names, statuses = _hook, [], []
    with os.scandir(descriptor) as listing:
        for entry in listing:
            if hook is not None:
                hook("stat", entry.name)
            try:
                statuses.append(entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            names.append(entry.name)
    # Encoded all at once: no name holds a slash, and a call per name is a tenth of a scan.
    return list(zip(os.fsencode("/".join(names)).split(b"/"), statuses, strict=True)) if names else []


def list_names(path: str | Path) -> list[str]:
    """The names in one of Tidegate's own folders, sorted; empty where the folder does not exist."""
    _seam("list_names", path)
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


def stat_in(folder: int, name: bytes) -> os.stat_result:
    """`lstat` of a name in an open folder."""
    _seam("stat", name)
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def stat_open(descriptor: int) -> os.stat_result:
    """`fstat` of an open file."""
    _seam("fstat", descriptor)
    return os.fstat(descriptor)


def stat_path(path: str | bytes | Path) -> os.stat_result:
    """`stat` of a path outside the pool, links followed."""
    _seam("stat", path)
    return os.stat(path)


def is_regular(status: os.stat_result) -> bool:
    """Whether the status is that of a regular file."""
    return stat.S_ISREG(status.st_mode)


def free_bytes(path: str | Path) -> int:
    """Bytes that an ordinary user may still write on the file system of `path`."""
    _seam("statvfs", path)
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


# --- names -----------------------------------------------------------------------------------------------------------


def make_folder(path: str | Path) -> None:
    """Make the folder and its missing parents; an existing folder is fine."""
    _seam("make_folder", path)
    os.makedirs(path, mode=0o777, exist_ok=True)


def link(source: str | Path, target: str | Path) -> None:
    """Give the file a second name; raises FileExistsError where the target exists."""
    _seam("link", target)
    os.link(source, target)


def rename_new(source: str | Path, target: str | Path) -> None:
    """Rename onto a name that must not exist; raises FileExistsError where it does (renameat2, RENAME_NOREPLACE).

    Where the file system lacks the flag: for folders rename(2), which refuses a non-empty target; for files link and
    unlink.
    """
    _seam("rename_new", target)
    answer = _libc.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE)
    if answer == 0:
        return
    code = ctypes.get_errno()
    if code not in (errno.ENOSYS, errno.EINVAL):
        raise OSError(code, os.strerror(code), os.fspath(target))
    if os.path.isdir(source):
        os.rename(source, target)
    else:
        os.link(source, target)
        os.unlink(source)


def replace(source: str | Path, target: str | Path) -> None:
    """Rename one of Tidegate's own files over another."""
    _seam("replace", target)
    os.replace(source, target)


def remove(path: str | Path) -> None:
    """Remove one of Tidegate's own files; a missing one is fine. Never called with a path of a pool."""
    _seam("remove", path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_tree(path: str | Path) -> None:
    """Remove one of Tidegate's own folders with all that is in it; a missing one is fine."""
    _seam("remove_tree", path)
    for folder, folders, names in os.walk(path, topdown=False):
        for name in names:
            remove(Path(folder, name))
        for name in folders:
            inner = Path(folder, name)
            inner.unlink() if inner.is_symlink() else inner.rmdir()
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(path)


# --- locks -----------------------------------------------------------------------------------------------------------


def open_lock(path: str | Path) -> int:
    """A descriptor of a lock file, made where it is missing; it holds no lock yet."""
    _seam("open_lock", path)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)


def lock(descriptor: int) -> None:
    """Wait for the exclusive flock of this descriptor; it ends with the descriptor or the process."""
    _seam("lock", descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Take the flock if it is free now; whether it was."""
    _seam("lock", descriptor)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(descriptor: int) -> None:
    """Give the flock back and keep the descriptor."""
    _seam("unlock", descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_UN)
