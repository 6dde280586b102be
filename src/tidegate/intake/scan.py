"""Scan: how files are found. Walks the pool, compares each folder with the ledger, registers what differs.

Opens no file. Costs what changed: an unchanged folder is one look-up of its signature and no write. Rows are written in
short transactions of some thousand, after the listing they come from; the pool is never read inside one. A folder that
cannot be listed is reported and nothing is concluded from it. If the process dies, what was registered stays, and the
next scan goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tidegate.intake.compare import Look, compare, signature_of
from tidegate.intake.ignore import is_ignored
from tidegate.intake.rules import Rules
from tidegate.ledger import FolderChange, Ledger
from tidegate.pool import Listing, PoolPath, walk

ROWS_PER_COMMIT: Final = 5000
SECONDS_PER_COMMIT: Final = 1.0


@dataclass(slots=True)
class ScanReport:
    """What a scan saw so far: files and bytes. `todo_size` are the bytes of new and changed ones; `unseen` are known
    files that were not there; `errors` names folders that could not be listed, so that the scan is incomplete."""

    folders: int = 0
    files: int = 0
    size: int = 0
    new: int = 0
    changed: int = 0
    todo_size: int = 0
    unchanged: int = 0
    ignored: int = 0
    unseen: int = 0
    errors: list[tuple[PoolPath, str]] = field(default_factory=list)
    is_complete: bool = False


class Scanner:
    """One scan of a pool. `pace` is called between commits; it may wait (back-pressure) and says whether to stop."""

    def __init__(self, root: int, ledger: Ledger, rules: Rules, pace: Callable[[], bool]) -> None:
        self.report = ScanReport()
        self._root = root
        self._ledger = ledger
        self._rules = rules
        self._pace = pace
        self._waiting: list[FolderChange] = []
        self._rows = 0
        self._written_at = time.monotonic()

    def run(self) -> ScanReport:
        """Scan until the end, or until `pace` says stop; then the report is not complete."""
        for listing in walk(self._root, is_ignored):
            self._take(listing)
            if self._rows >= ROWS_PER_COMMIT or time.monotonic() - self._written_at > SECONDS_PER_COMMIT:
                self._write()
                if self._pace():
                    return self.report
        self._write()
        self.report.is_complete = not self.report.errors
        return self.report

    def _take(self, listing: Listing) -> None:
        report = self.report
        report.folders += 1
        report.ignored += listing.ignored
        if listing.error is not None:
            report.errors.append((listing.path, listing.error.strerror or str(listing.error)))
            return
        report.files += len(listing.entries)
        report.size += sum([status.st_size for _, status in listing.entries])
        expected = self._ledger.signature(listing.path)
        if expected is None and not listing.entries:
            return
        signature = signature_of(listing.entries, self._rules.fingerprint)
        if signature == expected:
            report.unchanged += len(listing.entries)
            return
        self._open(Look(listing.path, listing.entries, expected, signature))

    def _open(self, look: Look) -> None:
        known = self._ledger.known_files(look.folder) if look.expected is not None else {}
        differences = compare(look, known, self._rules.plan)
        change = differences.change
        self.report.new += len(change.new)
        self.report.changed += len(change.changed)
        self.report.todo_size += sum(seen.stamp.size for seen in change.new)
        self.report.todo_size += sum(seen.stamp.size for _, seen in change.changed)
        self.report.unchanged += differences.unchanged
        self.report.unseen += differences.unseen
        self._waiting.append(change)
        self._rows += 1 + len(change.new) + len(change.changed) + len(change.refreshed) + len(change.returned)

    def _write(self) -> None:
        if self._waiting:
            self._ledger.register(self._waiting)
        self._waiting, self._rows, self._written_at = [], 0, time.monotonic()
