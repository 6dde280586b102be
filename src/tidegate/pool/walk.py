"""Walking a pool: one listing per folder, sorted by name, with what `lstat` said of every entry.

A generator with an explicit stack, so depth costs no recursion and memory holds folders still to visit, never files.
Opens folders only; symbolic links are reported and not followed. A folder that cannot be listed to its end is reported
as such and its entries are not: nothing may be concluded from what was not seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from tidegate.errors import PoolUnavailable
from tidegate.pool import disk
from tidegate.pool.paths import PoolPath
from tidegate.pool.stamps import Kind, kind_of

Entry = tuple[bytes, os.stat_result]
ROOT = PoolPath(b"")
IsIgnored = Callable[[PoolPath, bytes, Kind], bool]


@dataclass(frozen=True, slots=True)
class Listing:
    """One folder: its files, links and special files, sorted by name. `error` is set where it could not be listed."""

    path: PoolPath
    entries: list[Entry]
    ignored: int = 0
    error: OSError | None = None


def open_pool(path: str | os.PathLike[str]) -> int:
    """A descriptor of the pool's root; raises PoolUnavailable where there is no folder that can be listed."""
    try:
        return disk.open_folder(os.fspath(path))
    except FileNotFoundError as error:
        raise PoolUnavailable(f"the pool {path} does not exist", "is the share mounted?") from error
    except NotADirectoryError as error:
        raise PoolUnavailable(f"the pool {path} is not a folder", "name the folder that holds the files") from error
    except OSError as error:
        raise PoolUnavailable(
            f"the pool {path} cannot be opened: {error.strerror}", "check mount and rights"
        ) from error


def walk(root: int, is_ignored: IsIgnored, start: PoolPath = ROOT) -> Iterator[Listing]:
    """Every folder of the pool below `start`, each once, last found first.

    Ignored entries are counted and left out; ignored folders are not entered. Another file system mounted inside is
    walked as well. Never raises for what one folder does: see `Listing.error`.
    """
    frontier = [start]
    while frontier:
        folder = frontier.pop()
        try:
            raw = _list(root, folder)
        except OSError as error:
            yield Listing(folder, [], error=error)
            continue
        listing, folders = _sort_out(folder, raw, is_ignored)
        frontier.extend(folders)
        yield listing


def _list(root: int, folder: PoolPath) -> list[Entry]:
    descriptor = disk.open_beneath(root, folder.raw, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return disk.list_folder(descriptor)
    finally:
        os.close(descriptor)


def _sort_out(folder: PoolPath, raw: list[Entry], is_ignored: IsIgnored) -> tuple[Listing, list[PoolPath]]:
    entries, folders, ignored = [], [], 0
    kinds: dict[int, Kind] = {}  # of the few modes that one folder's entries have
    inner = Kind.FOLDER  # looked up once: that takes longer than all else here
    for entry in raw:
        name, status = entry
        kind = kinds.get(status.st_mode) or kinds.setdefault(status.st_mode, kind_of(status.st_mode))
        if is_ignored(folder, name, kind):
            ignored += 1
        elif kind is inner:
            folders.append(folder / name)
        else:
            entries.append(entry)
    entries.sort(key=itemgetter(0))
    return Listing(folder, entries, ignored), folders
