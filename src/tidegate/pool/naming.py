"""What a person may call a file of the pool: its path there, a path from here, or an absolute one."""

from __future__ import annotations

import os
from pathlib import Path

from tidegate.errors import UsageError
from tidegate.pool.paths import PoolPath


def meant_by(name: str, pool: Path, here: Path) -> list[PoolPath]:
    """The paths in the pool that `name`, said in the folder `here`, may mean, likeliest first; at least one.

    The folders' links are resolved, the file's own name is not: a link is known under its name. Raises UsageError
    where the name means nothing inside the pool.
    """
    given, root = Path(name), pool.resolve()
    said = Path(os.path.normpath(here / given))
    inside = said.parent.resolve() / said.name
    meant = []
    if inside.is_relative_to(root):
        meant.append(PoolPath.parse(os.fsencode(inside.relative_to(root))))
    if not given.is_absolute() and ".." not in given.parts:
        meant.append(PoolPath.parse(os.fsencode(name)))
    if not meant:
        raise UsageError(f"{name}: not inside the pool {root}", "give a path relative to the pool")
    return meant
