"""How many new files per second does the SQLite ledger register, beside a bare executemany of the same rows?

  python benchmarks/registration.py
  python benchmarks/registration.py --files 100000 --per-folder 1000 --json

The floor puts the same values into one table with one index on (folder, name), in transactions of the same size, under
the same WAL and synchronous=FULL. What a scan does before (walk, compare) does not count here.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import measure

from tidegate.ledger import Clock, FilePlan, FolderChange, SeenFile, SqliteLedger, TaskPlan, Terms
from tidegate.pool import Kind, PoolPath, Stamp

ROWS_PER_COMMIT: Final = 5000
PLAN: Final = FilePlan((TaskPlan("text", "1"),), priority=1, urgency=7, folder="archive/**")
FLOOR: Final = """CREATE TABLE file (folder BLOB, name BLOB, kind TEXT, size INTEGER, mtime_ns INTEGER,
  ctime_ns INTEGER, inode INTEGER, plan TEXT, state TEXT, PRIMARY KEY (folder, name))"""


def changes(files: int, per_folder: int) -> list[FolderChange]:
    """New files, sorted by name in each folder, as a scan hands them over."""
    made = []
    for first in range(0, files, per_folder):
        seen = tuple(
            SeenFile(b"%08d.pdf" % number, Kind.FILE, Stamp(number % 100_000, number, number, number), PLAN)
            for number in range(first, min(files, first + per_folder))
        )
        made.append(FolderChange(PoolPath(b"archive/%06d" % first), None, bytes(16), new=seen))
    return made


def transactions(all_changes: Sequence[FolderChange]) -> list[list[FolderChange]]:
    """The changes cut as the scanner cuts them: a commit once enough rows wait."""
    cut: list[list[FolderChange]] = [[]]
    rows = 0
    for change in all_changes:
        if rows >= ROWS_PER_COMMIT:
            cut.append([])
            rows = 0
        cut[-1].append(change)
        rows += 1 + len(change.new)
    return cut


def register(state: Path, batches: list[list[FolderChange]]) -> float:
    """Seconds to register everything in a new ledger."""
    ledger, _ = SqliteLedger.open(measure.fresh(state), Terms(), Clock.of_host())
    with closing(ledger):
        began = time.perf_counter()
        for batch in batches:
            ledger.register(batch)
        return time.perf_counter() - began


def bare(folder: Path, batches: list[list[FolderChange]]) -> float:
    """Seconds to put the same rows into one table."""
    rows = [
        [
            (change.path.raw, seen.name, seen.kind, seen.stamp.size, seen.stamp.mtime_ns, seen.stamp.ctime_ns,
             seen.stamp.inode, seen.plan.key, "settling")
            for change in batch
            for seen in change.new
        ]
        for batch in batches
    ]  # fmt: skip
    with closing(sqlite3.connect(measure.fresh(folder) / "floor.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA cache_size = -65536")
        db.execute(FLOOR)
        began = time.perf_counter()
        for batch in rows:
            db.execute("BEGIN IMMEDIATE")
            db.executemany("INSERT INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", batch)
            db.execute("COMMIT")
        return time.perf_counter() - began


def main() -> None:
    parser = measure.parser(__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--per-folder", type=int, default=1000)
    args = parser.parse_args()
    batches = transactions(changes(args.files, args.per_folder))
    with measure.work_folder(args.work) as folder:
        cases = {
            "tidegate": lambda: register(folder / "state", batches),
            "bare executemany": lambda: bare(folder / "floor", batches),
        }
        answers = measure.interleaved(cases, args.rounds)
    rates = {name: args.files / measure.median(seconds) for name, seconds in answers.items()}
    floor = rates["bare executemany"]
    rows = [{"case": name, "rows_per_s": rate, "of_floor": rate / floor} for name, rate in rates.items()]
    if args.json:
        measure.say({"files": args.files, "rounds": args.rounds, "rows": rows})
        return
    print(measure.table(("case", "rows/s", "of floor"), [(r["case"], r["rows_per_s"], r["of_floor"]) for r in rows]))


if __name__ == "__main__":
    main()
