"""`doctor`: looks whether this machine, pool and state folder can do what is needed. Changes nothing in the pool."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidegate.config import Config
from tidegate.errors import TidegateError
from tidegate.ledger import nonce
from tidegate.pool import disk, open_pool
from tidegate.pool.mounts import check_state_place, filesystem_of, is_network
from tidegate.processing.confine import landlock_abi


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: `level` is ok, warning or failure."""

    name: str
    level: str
    said: str


def examine(config: Config) -> list[Finding]:
    """All findings, worst matters first in each group."""
    return [*_pool(config), *_state(config), *_machine()]


def _pool(config: Config) -> Iterator[Finding]:
    path = config.pool.path
    try:
        root = open_pool(path)
    except TidegateError as error:
        yield Finding("pool", "failure", f"{error} ({error.hint})")
        return
    try:
        entries = disk.list_folder(root)
    except OSError as error:
        yield Finding("pool", "failure", f"{path} cannot be listed: {error.strerror}")
        return
    finally:
        os.close(root)
    level = "ok" if entries else "warning"
    yield Finding("pool", level, f"{path}: {len(entries)} entries" if entries else f"{path} is empty; is it mounted?")
    kind = filesystem_of(path)
    wait = "a network mount: files settle for 10 s" if is_network(kind) else "local: files settle for 2 s"
    yield Finding("pool file system", "ok", f"{kind}, {wait}")


def _state(config: Config) -> Iterator[Finding]:
    state = config.state
    existing = next(folder for folder in (state, *state.parents) if folder.exists())
    kind = filesystem_of(existing)
    try:
        check_state_place(state, config.pool.path, kind)
    except TidegateError as error:
        yield Finding("state", "failure", f"{error} ({error.hint})")
        return
    free = disk.free_bytes(existing)
    yield Finding("state", "ok" if free > 10**9 else "warning", f"{state} on {kind}, {free / 1e9:.1f} GB free")
    if not os.access(existing, os.W_OK):
        yield Finding("state rights", "failure", f"{existing} is not writable")
        return
    if state.exists():
        yield from _abilities(state)


def _abilities(state: Path) -> Iterator[Finding]:
    probe = state / f"doctor-{nonce()}"
    disk.make_folder(probe)
    try:
        (probe / "one").touch()
        (probe / "two").touch()
        yield Finding("rename without replacing", *_refuses(lambda: disk.rename_new(probe / "one", probe / "two")))
        yield Finding("link without replacing", *_refuses(lambda: disk.link(probe / "one", probe / "two")))
        with contextlib.suppress(OSError):
            disk.sync_folder(probe)
            yield Finding("folder fsync", "ok", "works")
    finally:
        disk.remove_tree(probe)


def _refuses(act: object) -> tuple[str, str]:
    assert callable(act)
    try:
        act()
    except FileExistsError:
        return "ok", "works"
    except OSError as error:
        return "warning", f"not here: {error.strerror}"
    return "failure", "an existing name was replaced"


def _machine() -> Iterator[Finding]:
    yield Finding("python", "ok", sys.version.split()[0])
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)
    yield Finding("tantivy", "ok", importlib.metadata.version("tantivy"))
    abi = landlock_abi()
    said = f"version {abi}" if abi else "missing: parsers run without a sandbox around their file access"
    yield Finding("landlock", "ok" if abi else "warning", said)
