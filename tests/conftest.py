"""What every room's tests share: a real pool to fill, and a Gate on it whose files settle at once."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Config, IndexConfig, OutputsConfig, PoolConfig, WorkConfig
from tidegate.gate import Gate

SETTLE_S = 0.05


@dataclass(frozen=True)
class Pool:
    """A shared folder, the state beside it, and short ways to fill and to ask."""

    path: Path
    state: Path

    def write(self, name: str | bytes, content: str | bytes = "words of a file", *, mtime: int | None = None) -> Path:
        """Write a file, with the folders above it; where it is."""
        path = Path(self.path, os.fsdecode(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if mtime is not None:
            os.utime(path, (mtime, mtime))
        return path

    def config(self, **changes: Any) -> Config:
        """A configuration for tests: `pool`, `work`, `index` … are dicts of settings that differ from the defaults."""
        pool = {"path": self.path, "state": self.state, "name": "pool", "settle_s": SETTLE_S}
        work = {"deadline_s": 60.0, "claim_for_s": 30.0}
        given = {
            "pool": PoolConfig(**pool | changes.pop("pool", {})),
            "work": WorkConfig(**work | changes.pop("work", {})),
            "index": IndexConfig(**changes.pop("index", {})),
            "outputs": OutputsConfig(**changes.pop("outputs", {})),
        }
        return dataclasses.replace(Config(given.pop("pool")), **given, **changes)

    def gate(self, **changes: Any) -> contextlib.AbstractContextManager[Gate]:
        """A gate on this pool."""
        return Gate(self.config(**changes))

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the ledger's file says, read from outside."""
        with contextlib.closing(sqlite3.connect(self.state / "ledger.db", timeout=30)) as db:
            return db.execute(sql, values).fetchall()

    def states(self) -> dict[bytes, str]:
        """The state of every task by the path of its file; a claimed one counts as `claimed`."""
        rows = self.rows(
            "SELECT d.path, f.name, CASE WHEN c.task IS NULL THEN t.state ELSE 'claimed' END FROM task t "
            "JOIN file f ON f.id = t.file JOIN directory d ON d.id = f.directory LEFT JOIN claim c ON c.task = t.id"
        )
        return {(folder + b"/" + name if folder else name): state for folder, name, state in rows}

    def leftovers(self) -> list[str]:
        """Temporary files and folders below the state folder."""
        return [
            str(path.relative_to(self.state))
            for path in self.state.rglob("*")
            if path.name.endswith(".part")
            or path.name.startswith(("build-", "dropped-"))
            or path.parent.name == "owners"
        ]

    def picture(self) -> dict[bytes, tuple[bytes, int]]:
        """Names, bytes and mtimes of all sources (I1)."""
        return {
            bytes(path): (path.read_bytes() if path.is_file() else b"", path.lstat().st_mtime_ns)
            for folder, _, names in os.walk(self.path)
            for path in (Path(folder, name) for name in names)
        }


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    (tmp_path / "pool").mkdir()
    return Pool(tmp_path / "pool", tmp_path / "state")


@pytest.fixture
def as_nobody() -> Iterator[Callable[[Callable[[], Any]], int]]:
    """Run something in a forked process that is no root (user 65534); its exit status, 0 where nothing was raised."""

    def run(act: Callable[[], Any]) -> int:
        child = os.fork()
        if child == 0:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                act()
                os._exit(0)
            except BaseException:  # noqa: BLE001 - the forked process must not go on into pytest
                import traceback

                traceback.print_exc()
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    return run
