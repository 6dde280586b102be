"""The file `<state>/ledger.db`: opening, migrating, refusing, putting aside, and the one way to write to it.

Every writer takes the flock of `<state>/ledger.ticket` and then BEGIN IMMEDIATE: SQLite's busy handler alone starves
writers under contention. WAL with synchronous=FULL: what was committed survives a power cut. A file that cannot be read
is moved to `ledger-damaged-<wall ns>.db`, never run on; one of a newer Tidegate or of another program is left alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tidegate.errors import DiskFull, LedgerCorrupt, LedgerNewer, StateError
from tidegate.ledger.clock import Clock
from tidegate.ledger.statements import load
from tidegate.pool import disk

FILE: Final = "ledger.db"
TICKET: Final = "ledger.ticket"
SUSPECT: Final = "ledger.suspect"
APPLICATION: Final = 0x54696465  # "Tide" in the file's header
SQL: Final = load("sqlite.sql")
VERSION: Final = sum(1 for name in SQL if name.startswith("migration_"))
_FULL: Final = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHMSIZE"})
_DAMAGED: Final = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_CORRUPT_INDEX", "SQLITE_CORRUPT_VTAB"})


class Store:
    """One connection of one thread."""

    def __init__(self, state: Path, clock: Clock) -> None:
        self.state = state
        self.clock = clock
        self._was_full = False
        self._ticket = disk.open_lock(state / TICKET)
        self._db = sqlite3.connect(state / FILE, timeout=60.0, isolation_level=None)
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("PRAGMA cache_size = -65536")
        self._db.execute("PRAGMA wal_autocheckpoint = 4000")
        self._db.execute("PRAGMA foreign_keys = ON")

    def close(self) -> None:
        """Close the connection."""
        self._db.close()
        os.close(self._ticket)

    def one(self, name: str, values: tuple[object, ...] = ()) -> tuple[object, ...] | None:
        """The first row of a reading statement."""
        with self._named_errors():
            row: tuple[object, ...] | None = self._db.execute(SQL[name], values).fetchone()
            return row

    def all(self, name: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        """All rows of a reading statement."""
        with self._named_errors():
            return self._db.execute(SQL[name], values).fetchall()

    def each(self, name: str) -> Iterator[tuple[object, ...]]:
        """The rows of a reading statement one by one, for answers that may not fit into memory."""
        with self._named_errors():
            yield from self._db.execute(SQL[name])

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One short write transaction: durable when the block has ended, nothing of it when it raised."""
        disk.lock(self._ticket)
        try:
            with self._named_errors():
                if self._was_full:
                    self._give_back_wal()
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield self._db
                    self._db.execute("COMMIT")
                except BaseException as error:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    self._was_full = getattr(error, "sqlite_errorname", "") in _FULL
                    raise
        finally:
            disk.unlock(self._ticket)

    def _give_back_wal(self) -> None:
        """After a full disk the log's own megabytes are room too; without any room this does nothing."""
        with contextlib.suppress(sqlite3.DatabaseError):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._was_full = False

    @contextlib.contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            name = getattr(error, "sqlite_errorname", "")
            if name in _FULL:
                raise DiskFull(f"no room left for the ledger in {self.state}", "free some space") from error
            if name in _DAMAGED:
                (self.state / SUSPECT).touch()
                raise LedgerCorrupt(
                    f"the ledger in {self.state} is damaged: {error}",
                    "run again: it is put aside and rebuilt from the pool and the outputs",
                ) from error
            raise StateError(f"the ledger in {self.state} cannot be used: {error}", "see: tidegate doctor") from error


def prepare(state: Path, clock: Clock) -> Path | None:
    """Make `<state>/ledger.db` usable: create, migrate, note a restart of the host, put a damaged one aside.

    Returns where a damaged ledger was put, None where there was none. Raises LedgerNewer or StateError (another
    program's file), which leave everything as it is.
    """
    disk.make_folder(state)
    ticket = disk.open_lock(state / TICKET)
    disk.lock(ticket)
    try:
        aside = _put_aside(state, clock) if _is_damaged(state) else None
        disk.remove(state / SUSPECT)
        _migrate(state, clock)
        return aside
    finally:
        os.close(ticket)


def _is_damaged(state: Path) -> bool:
    path = state / FILE
    if not path.exists():
        return False
    if path.stat().st_size == 0:
        return not Path(f"{path}-wal").exists()
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=60.0)) as db:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if (state / SUSPECT).exists():
                return str(db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok"
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorname", "") in _DAMAGED:
            return True
        raise StateError(f"the ledger {path} cannot be opened: {error}", "see: tidegate doctor") from error
    return False


def _put_aside(state: Path, clock: Clock) -> Path:
    aside = state / f"ledger-damaged-{clock.wall_ns()}.db"
    for ending in ("-wal", "-shm", ""):
        if Path(f"{state / FILE}{ending}").exists():
            disk.rename_new(f"{state / FILE}{ending}", f"{aside}{ending}")
    disk.sync_folder(state)
    return aside


def _migrate(state: Path, clock: Clock) -> None:
    with contextlib.closing(sqlite3.connect(state / FILE, timeout=60.0, isolation_level=None)) as db:
        _check_is_ours(db, state)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        for number in range(version + 1, VERSION + 1):
            for statement in SQL[f"migration_{number}"].split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        _note_boot(db, clock)
        db.execute("COMMIT")


def _check_is_ours(db: sqlite3.Connection, state: Path) -> None:
    application = int(db.execute("PRAGMA application_id").fetchone()[0])
    tables = int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if application not in (0, APPLICATION) or (application == 0 and tables):
        raise StateError(f"{state / FILE} belongs to another program", "choose another state folder with --state DIR")
    version = int(db.execute("PRAGMA user_version").fetchone()[0])
    if version > VERSION:
        raise LedgerNewer(
            f"the ledger in {state} has format {version}, this Tidegate knows {VERSION}",
            "update this Tidegate, or choose another state folder with --state DIR",
        )


def _note_boot(db: sqlite3.Connection, clock: Clock) -> None:
    row = db.execute(SQL["get_note"], ("boot",)).fetchone()
    if row is not None and row[0] == clock.boot:
        return
    db.execute(SQL["boot_due_tasks"])
    db.execute(SQL["boot_claims"])
    db.execute(SQL["boot_unsettled"], (clock.now_ns(),))
    db.execute(SQL["set_note"], ("boot", clock.boot))
