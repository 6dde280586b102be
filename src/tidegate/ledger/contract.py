"""Ledger: the durable table of every known file, and the only owner of state transitions.

The contract of every store, proved by one conformance suite. All methods are short transactions: each either happened
durably when it returns or not at all, and none spans a read of the pool. Any may raise DiskFull (nothing was written;
try again), LedgerCorrupt, or StateError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tidegate.ledger.records import (
    Backlog,
    Claim,
    Committed,
    Counts,
    FileView,
    Finish,
    FolderChange,
    IndexedFile,
    KnownFile,
    Look,
    Recovered,
    Result,
    Selection,
    Unsettled,
    Want,
)
from tidegate.ledger.states import State
from tidegate.pool.paths import PoolPath


class Ledger(Protocol):
    """See the module. An instance belongs to one thread; `another` gives a second one."""

    def another(self) -> Ledger:
        """A ledger on the same store for another thread."""

    def close(self) -> None:
        """Give back what this instance holds; claims stay with their owner."""

    def get_note(self, key: str) -> str | None:
        """A small remembered fact, such as what the last scan counted."""

    def set_note(self, key: str, value: str) -> None:
        """Remember a small fact."""

    # scanning

    def signature(self, folder: PoolPath) -> bytes | None:
        """What the folder looked like when its files were last registered."""

    def known_files(self, folder: PoolPath) -> Mapping[bytes, KnownFile]:
        """The files that are known directly in a folder, by name."""

    def register(self, changes: Sequence[FolderChange]) -> int:
        """Write what differs, with the folder's new signature in the same transaction: new and changed files become
        settling (a claim on them is lost), refreshed ones keep their result. How many folders were applied: one whose
        signature is not the expected one any more is left to the next scan."""

    # settling

    def unsettled(self, limit: int) -> Sequence[Unsettled]:
        """Files whose next look is due, longest due first."""

    def settle(self, looks: Sequence[Look]) -> Mapping[State, int]:
        """Apply looks: what rests becomes ready, what moves is looked at again later, what grows for ever or is gone
        is blocked. A file that is not settling any more is left alone. Files by the state they are in now."""

    # working

    def commit(self, owner: str, finishes: Sequence[Finish], want: Want) -> Committed:
        """End claims and take new ones, in one transaction.

        A finish is accepted only while its task is still claimed with the same fence; else its task is in `stale` and
        nothing of it is kept. Attempts were counted by the claim; RELEASED and SETTLING give the attempt back. New
        claims come in order (priority, urgency, size), a task that may have killed its worker alone."""

    def renew(self, owner: str, claims: Iterable[Claim]) -> frozenset[int]:
        """Move the lease end of these claims; the tasks of those that are lost already."""

    def recover(self, is_dead: Iterable[str]) -> Recovered:
        """Take back the claims of these owners and all whose lease ended, in one transaction, however many they are."""

    def claiming_owners(self) -> Sequence[str]:
        """Owners that hold claims."""

    def backlog(self) -> Backlog:
        """What is left to do."""

    def find_result(self, digest: bytes, plan_key: tuple[str, str, str]) -> Result | None:
        """The result of the same content, processor, version and settings, if there is one."""

    def adopt_results(self, results: Sequence[Result]) -> int:
        """Remember results that an earlier ledger recorded; known ones are left alone. How many were new."""

    # reading

    def changes_after(self, change: int, file: int, limit: int) -> Sequence[IndexedFile]:
        """Files whose searchable side changed after (change number, file id), in that order; 0, 0 for all."""

    def counts(self) -> Counts:
        """The pool at a glance."""

    def find_file(self, path: PoolPath) -> FileView | None:
        """One file with its tasks and history."""

    def find_displayed(self, text: str, limit: int) -> Sequence[PoolPath]:
        """Known paths whose display form ends in `text`, for people who type what they read."""

    def stuck(self, limit: int) -> Sequence[FileView]:
        """Files that failed or are blocked, newest event first."""

    def retry(self, selection: Selection) -> int:
        """Free failed and blocked tasks; they pass the settle gate again. How many."""
