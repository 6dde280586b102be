"""SqliteLedger: the embedded ledger, for any number of processes on one machine.

Implements the contract in `contract.py` on `sqlite.sql`. Time is CLOCK_BOOTTIME of the host that all holders share.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tidegate.errors import Failure
from tidegate.ledger.clock import Clock
from tidegate.ledger.records import (
    Backlog,
    Claim,
    Committed,
    Counts,
    End,
    Event,
    FileView,
    Finish,
    FolderChange,
    FolderTally,
    IndexedFile,
    KnownFile,
    Look,
    Recovered,
    Result,
    SeenFile,
    Selection,
    Tally,
    TaskPlan,
    TaskView,
    Unsettled,
    Want,
)
from tidegate.ledger.sqlite_store import SQL, Store, prepare
from tidegate.ledger.states import Presence, State, after_failure, backoff_s
from tidegate.pool.paths import PoolPath
from tidegate.pool.settle import Verdict
from tidegate.pool.stamps import Kind, Stamp
from tidegate.results.packs import TextRef

MOVING_AFTER: Final = 3  # looks that saw a change, after which a round does not wait for the file any more
_RANKS: Final = (
    State.SETTLING,
    State.READY,
    State.CLAIMED,
    State.FAILED,
    State.BLOCKED,
    State.SKIPPED,
    State.DONE,
)
_RISKY: Final = frozenset({Failure.CRASH, Failure.MEMORY, Failure.TIMEOUT})
_KINDS: Final = {kind.value: kind for kind in Kind}
_SECOND: Final = 1_000_000_000


class Terms:
    """What the ledger must know of the configuration: lease length and settle window in seconds, attempts."""

    def __init__(self, claim_for_s: float = 300.0, settle_s: float = 2.0, attempts: int = 3) -> None:
        self.claim_ns = int(claim_for_s * _SECOND)
        self.settle_ns = int(settle_s * _SECOND)
        self.attempts = attempts


class SqliteLedger:
    """See the module and the contract. One instance belongs to one thread."""

    def __init__(self, state: Path, terms: Terms, clock: Clock, chance: random.Random | None = None) -> None:
        self._store = Store(state, clock)
        self._clock = clock
        self._terms = terms
        self._chance = chance or random.Random()

    @classmethod
    def open(cls, state: Path, terms: Terms, clock: Clock) -> tuple[SqliteLedger, Path | None]:
        """The ledger of a state folder, made or migrated where needed, and where a damaged one was put aside."""
        aside = prepare(state, clock)
        return cls(state, terms, clock), aside

    def another(self) -> SqliteLedger:
        """See the contract."""
        return SqliteLedger(self._store.state, self._terms, self._clock)

    def close(self) -> None:
        """See the contract."""
        self._store.close()

    def get_note(self, key: str) -> str | None:
        """See the contract."""
        row = self._store.one("get_note", (key,))
        return str(row[0]) if row else None

    def set_note(self, key: str, value: str) -> None:
        """See the contract."""
        with self._store.writing() as db:
            db.execute(SQL["set_note"], (key, value))

    # --- scanning ----------------------------------------------------------------------------------------------------

    def signature(self, folder: PoolPath) -> bytes | None:
        """See the contract."""
        row: Any = self._store.one("signature", (folder.raw,))
        return bytes(row[0]) if row else None

    def known_files(self, folder: PoolPath) -> Mapping[bytes, KnownFile]:
        """See the contract."""
        rows: list[Any] = self._store.all("known_files", (folder.raw,))
        return {
            name: KnownFile(file, Kind(kind), Stamp(*stamp), plan, Presence(presence))
            for name, file, kind, *stamp, plan, presence in rows
        }

    def register(self, changes: Sequence[FolderChange]) -> int:
        """See the contract."""
        applied = 0
        with self._store.writing() as db:
            due = self._clock.now_ns() + self._terms.settle_ns
            for change in changes:
                row = db.execute(SQL["directory_row"], (change.path.raw,)).fetchone()
                if (row[1] if row else None) != change.expected:
                    continue
                (directory,) = db.execute(SQL["put_directory"], (change.path.raw, change.signature)).fetchone()
                self._insert(db, directory, change.new, due)
                for file, seen in change.changed:
                    self._change(db, file, seen, due)
                for file, stamp in change.refreshed:
                    db.execute(SQL["refresh_file"], (*_columns(stamp), file))
                    db.execute(SQL["refresh_tasks"], (due, file))
                    _unclaim_file(db, file)
                self._return(db, change.returned, due)
                applied += 1
        return applied

    def _insert(self, db: sqlite3.Connection, directory: int, new: Sequence[SeenFile], due: int) -> None:
        if not new:
            return
        first = db.execute(SQL["last_file"]).fetchone()[0] + 1
        since = due - self._terms.settle_ns
        files: list[tuple[object, ...]] = []
        tasks: list[tuple[object, ...]] = []
        task = _next_tasks(db, sum([len(seen.plan.tasks) for seen in new]))
        keys: dict[int, str] = {}
        for file, seen in enumerate(new, first):
            plan, stamp = seen.plan, seen.stamp
            key = keys.get(id(plan)) or keys.setdefault(id(plan), plan.key)
            columns = (stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode)
            files.append((file, directory, seen.name, seen.kind, *columns, key, plan.folder, since))
            order = (plan.priority, plan.urgency, stamp.size, due, "new")
            for wanted in plan.tasks:
                tasks.append((task, file, wanted.processor, wanted.version, wanted.settings, *order))
                task += 1
        db.executemany(SQL["insert_file"], files)
        db.executemany(SQL["insert_task"], tasks)

    def _change(self, db: sqlite3.Connection, file: int, seen: SeenFile, due: int) -> None:
        plan = seen.plan
        since = due - self._terms.settle_ns
        wanted = json.dumps([task.processor for task in plan.tasks])
        db.execute(SQL["keep_ends"], (file,))
        db.execute(SQL["change_file"], (seen.kind, *_columns(seen.stamp), plan.key, plan.folder, since, file))
        db.execute(SQL["unqueue_file"], (file,))
        _unclaim_file(db, file)
        db.execute(SQL["drop_history"], (file, wanted))
        db.execute(SQL["drop_tasks"], (file, wanted))
        for task in plan.tasks:
            order = (plan.priority, plan.urgency, seen.stamp.size, due)
            values = (task.version, task.settings, *order, "changed", file, task.processor)
            if db.execute(SQL["change_task"], values).rowcount == 0:
                row = (file, task.processor, task.version, task.settings, *order, "wanted now")
                db.execute(SQL["insert_task"], (_next_tasks(db, 1), *row))

    def _return(self, db: sqlite3.Connection, files: Sequence[int], due: int) -> None:
        if files:
            change = _next_change(db)
            db.executemany(SQL["return_file"], [(file,) for file in files])
            db.executemany(SQL["touch_file"], [(change, file) for file in files])
            db.executemany(SQL["return_tasks"], [(due, file) for file in files])

    # --- settling ----------------------------------------------------------------------------------------------------

    def unsettled(self, limit: int) -> Sequence[Unsettled]:
        """See the contract."""
        now = self._clock.now_ns()
        rows: list[Any] = self._store.all("unsettled", (now, limit))
        files = {
            file: Unsettled(file, PoolPath(folder) / name, Stamp(*stamp), max(0, now - since) / _SECOND, moves)
            for file, folder, name, *stamp, since, moves in rows
        }
        return list(files.values())

    def settle(self, looks: Sequence[Look]) -> Mapping[State, int]:
        """See the contract."""
        counts: Counter[State] = Counter()
        with self._store.writing() as db:
            still = _still_settling(db, looks)
            resting = [(look.file,) for look in looks if look.verdict is Verdict.RESTS and look.file in still]
            db.executemany(SQL["queue_settled"], resting)
            db.executemany(SQL["settle_tasks"], resting)
            db.executemany(SQL["settle_file"], resting)
            counts[State.READY] = len(resting)
            for look in looks:
                if look.verdict is Verdict.RESTS or look.file not in still:
                    continue
                if look.verdict in (Verdict.MOVES, Verdict.UNKNOWN):
                    self._look_again(db, look)
                    counts[State.SETTLING] += 1
                else:
                    self._block_settling(db, look)
                    counts[State.BLOCKED] += 1
        return counts

    def _look_again(self, db: sqlite3.Connection, look: Look) -> None:
        due = self._clock.now_ns() + self._terms.settle_ns
        reason = "still changing" if look.verdict is Verdict.MOVES else "the share does not answer"
        if look.verdict is Verdict.MOVES:
            content = (look.file, look.stamp.size, look.stamp.mtime_ns)
            if db.execute(SQL["has_other_content"], content).fetchone():
                self._restart(db, look.file)
            db.execute(SQL["move_file"], (*_columns(look.stamp), look.file))
        db.execute(SQL["move_tasks"], (due, look.stamp.size, reason, look.file))

    def _restart(self, db: sqlite3.Connection, file: int) -> None:
        db.execute(SQL["keep_ends"], (file,))
        db.execute(SQL["unqueue_file"], (file,))
        db.execute(SQL["restart_tasks"], (file,))
        _unclaim_file(db, file)

    def _block_settling(self, db: sqlite3.Connection, look: Look) -> None:
        failure = Failure.VANISHED if look.verdict is Verdict.GONE else Failure.GROWING
        reason = "keeps changing" if failure is Failure.GROWING else "gone before it was read"
        values = (failure, reason, self._clock.wall_ns(), look.file)
        for (task,) in db.execute(SQL["block_settling"], values).fetchall():
            self._remember(db, task, State.BLOCKED, f"{failure}: {reason}")
        db.execute(SQL["settle_file"], (look.file,))
        if failure is Failure.VANISHED:
            db.execute(SQL["suspect_file"], (look.file,))
            db.execute(SQL["touch_file"], (_next_change(db), look.file))

    # --- working -----------------------------------------------------------------------------------------------------

    def commit(self, owner: str, finishes: Sequence[Finish], want: Want) -> Committed:
        """See the contract."""
        with self._store.writing() as db:
            stale = self._finish_all(db, owner, finishes) if finishes else frozenset()
            rows = self._claim(db, owner, want) if want.tasks else []
        return Committed(stale, tuple([_claim_of(row) for row in rows]))  # built when others may write again

    def _finish_all(self, db: sqlite3.Connection, owner: str, finishes: Sequence[Finish]) -> frozenset[int]:
        asked = json.dumps([(finish.claim.task, finish.claim.fence) for finish in finishes])
        held = {task for (task,) in db.execute(SQL["held"], (asked, owner))}
        accepted = [finish for finish in finishes if finish.claim.task in held]
        ended = [finish for finish in accepted if finish.end.is_final]
        change = _next_change(db) if ended else None
        db.executemany(SQL["finish_task"], [self._finish_row(db, finish, change) for finish in accepted])
        db.executemany(SQL["unclaim"], [(task,) for task in held])
        self._note_ends(db, accepted)
        if ended:
            db.execute(SQL["verify_files"], (json.dumps([finish.claim.file for finish in ended]),))
            gone = [(finish.claim.file,) for finish in ended if finish.failure is Failure.VANISHED]
            db.executemany(SQL["suspect_file"], gone)
        return frozenset(finish.claim.task for finish in finishes) - held

    def _finish_row(self, db: sqlite3.Connection, finish: Finish, change: int | None) -> tuple[object, ...]:
        claim, failure = finish.claim, finish.failure
        state, due = self._state_after(finish)
        alone = failure is not None and failure in _RISKY
        if not finish.end.is_final:
            head = (state, claim.attempts - 1, claim.fence, due, failure, finish.reason, alone)
            return (*head, self._clock.wall_ns(), False, None, None, None, claim.task)
        result = None if finish.result is None else _put_result(db, finish.result)
        head = (state, claim.attempts, claim.fence, due, failure, finish.reason, alone)
        has_none = state is State.BLOCKED and failure is not Failure.VANISHED
        return (*head, self._clock.wall_ns(), has_none, result, finish.digest, change, claim.task)

    def _note_ends(self, db: sqlite3.Connection, accepted: Sequence[Finish]) -> None:
        for finish in accepted:
            if finish.end is End.RELEASED:
                db.execute(SQL["queue_task"], (finish.claim.task,))
            elif finish.end is End.SETTLING:
                db.execute(SQL["unsettle_file"], (self._clock.now_ns(), finish.claim.file))
                self._remember(db, finish.claim.task, State.SETTLING, finish.reason)
            elif finish.end is End.FAILED:
                state, _ = self._state_after(finish)
                self._remember(db, finish.claim.task, state, f"{finish.failure}: {finish.reason}")

    def _state_after(self, finish: Finish) -> tuple[State, int]:
        match finish.end:
            case End.DONE:
                return State.DONE, 0
            case End.SKIPPED:
                return State.SKIPPED, 0
            case End.SETTLING:
                return State.SETTLING, self._clock.now_ns() + self._terms.settle_ns
            case End.RELEASED:
                return State.READY, 0
            case End.FAILED:
                assert finish.failure is not None
                state = after_failure(finish.failure, finish.claim.attempts, self._terms.attempts)
                wait = backoff_s(finish.claim.attempts, self._chance.random())
                return state, self._clock.now_ns() + int(wait * _SECOND) if state is State.FAILED else 0

    def _claim(self, db: sqlite3.Connection, owner: str, want: Want) -> list[Any]:
        now = self._clock.now_ns()
        if db.execute(SQL["queue_failed"], (now,)).rowcount:
            db.execute(SQL["wake_failed"], (now,))
        rows = _within(db.execute(SQL["pick"], (want.with_risky, want.tasks)).fetchall(), want.size)
        end = now + self._terms.claim_ns
        db.executemany(SQL["unqueue"], [row[:5] for row in rows])
        db.executemany(SQL["claim"], [(row[4], owner, row[6] + 1, row[17] + 1, end) for row in rows])
        return rows

    def _remember(self, db: sqlite3.Connection, task: int, event: str, detail: str) -> None:
        db.execute(SQL["insert_history"], (task, self._clock.wall_ns(), event, detail))

    def renew(self, owner: str, claims: Iterable[Claim]) -> frozenset[int]:
        """See the contract."""
        lost = set()
        with self._store.writing() as db:
            end = self._clock.now_ns() + self._terms.claim_ns
            for claim in claims:
                if db.execute(SQL["renew"], (end, claim.task, claim.fence, owner)).rowcount == 0:
                    lost.add(claim.task)
        return frozenset(lost)

    def recover(self, is_dead: Iterable[str]) -> Recovered:
        """See the contract."""
        clock = self._clock
        values = {"limit": self._terms.attempts, "now": clock.now_ns(), "dead": json.dumps(list(is_dead))}
        with self._store.writing() as db:
            rows = db.execute(SQL["recover"], {**values, "wall": clock.wall_ns()}).fetchall()
            db.execute(SQL["queue_recovered"], values)
            db.execute(SQL["end_claims"], values)
            blocked = [(task, file) for task, file, state in rows if state == State.BLOCKED]
            if blocked:
                change = _next_change(db)
                for task, file in blocked:
                    self._remember(db, task, State.BLOCKED, f"{Failure.CRASH}: each participant that took it died")
                    db.execute(SQL["touch_file"], (change, file))
        return Recovered(len(rows) - len(blocked), len(blocked))

    def claiming_owners(self) -> Sequence[str]:
        """See the contract."""
        return [str(owner) for (owner,) in self._store.all("claiming_owners")]

    def backlog(self) -> Backlog:
        """See the contract."""
        counts: Any = self._store.one("backlog")
        moving: Any = self._store.one("count_moving", (MOVING_AFTER,))
        due: Any = self._store.one("next_due")
        wait = None if due[0] is None else max(0.0, (due[0] - self._clock.now_ns()) / _SECOND)
        settling, ready, claimed, failed, blocked = counts
        return Backlog(settling, moving[0], ready, claimed, failed, wait, blocked)

    def find_result(self, digest: bytes, plan_key: tuple[str, str, str]) -> Result | None:
        """See the contract."""
        row: Any = self._store.one("find_result", (digest, *plan_key))
        if row is None:
            return None
        return Result(digest, TaskPlan(*plan_key), TextRef(*row[1:4]), row[4], row[5])

    def adopt_results(self, results: Sequence[Result]) -> int:
        """See the contract."""
        with self._store.writing() as db:
            before = db.total_changes
            db.executemany(SQL["insert_result"], [_result_row(result) for result in results])
            return db.total_changes - before

    # --- reading -----------------------------------------------------------------------------------------------------

    def changes_after(self, change: int, file: int, limit: int) -> Sequence[IndexedFile]:
        """See the contract."""
        rows: list[Any] = self._store.all("changes_after", (change, file, limit))
        return [
            IndexedFile(
                row[0], row[1], PoolPath(row[2]) / row[3], Stamp(*row[4:8]), Presence(row[8]), _result_of(row[9:])
            )
            for row in rows
        ]

    def counts(self) -> Counts:
        """See the contract."""
        rows: list[Any] = self._store.all("count_states")
        states = {state: Tally(0, 0) for state in State}
        folders: dict[str, dict[State, Tally]] = {}
        for folder, rank, files, size in rows:
            state = _RANKS[rank]
            states[state] = Tally(states[state].files + files, states[state].size + size)
            folders.setdefault(folder, {})[state] = Tally(files, size)
        seen: list[Any] = self._store.all("count_presence")
        presence = dict.fromkeys(Presence, 0) | {Presence(one): count for one, count in seen}
        failed: list[Any] = self._store.all("count_failures")
        failures = {Failure(failure): count for failure, count in failed if failure}
        tallies = tuple(FolderTally(match, tally) for match, tally in sorted(folders.items()))
        return Counts(states, presence, tallies, failures)

    def find_file(self, path: PoolPath) -> FileView | None:
        """See the contract."""
        row: Any = self._store.one("find_file", (path.folder.raw, path.name))
        if row is None:
            return None
        file, kind, *stamp, presence, digest = row
        tasks: list[Any] = self._store.all("tasks_of", (file,))
        history: list[Any] = self._store.all("history_of", (file,))
        views = tuple(self._task_view(task) for task in tasks)
        events = tuple(Event(*event) for event in history) + tuple(
            Event(task[9], task[0], task[3], task[6]) for task in tasks if task[3] in (State.DONE, State.SKIPPED)
        )
        return FileView(path, Kind(kind), Stamp(*stamp), Presence(presence), digest, views, events)

    def _task_view(self, row: Any) -> TaskView:
        processor, version, settings, state, attempts, failure, reason, owner, due, _ = row
        wait = max(0.0, (due - self._clock.now_ns()) / _SECOND) if due else None
        plan = TaskPlan(processor, version, settings)
        return TaskView(plan, State(state), attempts, Failure(failure) if failure else None, reason, owner or "", wait)

    def find_displayed(self, text: str, limit: int) -> Sequence[PoolPath]:
        """See the contract."""
        rows: Iterator[Any] = self._store.each("all_paths")
        found = []
        for folder, name in rows:
            path = PoolPath(folder) / name
            if path.display.endswith(text) or path.search_form.endswith(text):
                found.append(path)
                if len(found) == limit:
                    break
        return found

    def stuck(self, limit: int) -> Sequence[FileView]:
        """See the contract."""
        rows: list[Any] = self._store.all("stuck", (limit,))
        views = (self.find_file(PoolPath(folder) / name) for folder, name in rows)
        return [view for view in views if view is not None]

    def retry(self, selection: Selection) -> int:
        """See the contract."""
        below = selection.below if selection.below and selection.below.raw else None
        values = {
            "failure": selection.failure,
            "folder": below.raw if below else None,
            "below": below.raw + b"/" if below else None,
            "beyond": below.raw + b"0" if below else None,
            "parent": below.folder.raw if below else None,
            "name": below.name if below else None,
        }
        with self._store.writing() as db:
            rows = db.execute(SQL["retry"], values).fetchall()
            now = self._clock.now_ns()
            db.executemany(SQL["retry_file"], [(now, file) for _, file in rows])
            for task, _ in rows:
                self._remember(db, task, State.SETTLING, "retried by a person")
        return len(rows)


def _columns(stamp: Stamp) -> tuple[int, int, int, int]:
    return stamp.size, stamp.mtime_ns, stamp.ctime_ns, stamp.inode


def _next_change(db: sqlite3.Connection) -> int:
    return int(db.execute(SQL["next_change"]).fetchone()[0])


def _next_tasks(db: sqlite3.Connection, count: int) -> int:
    """The first of `count` numbers that no task ever had."""
    return int(db.execute(SQL["next_tasks"], (count,)).fetchone()[0]) - count + 1


def _unclaim_file(db: sqlite3.Connection, file: int) -> None:
    """Claims on tasks of this file are lost."""
    if db.execute(SQL["outdate_claims"], (file,)).rowcount:
        db.execute(SQL["unclaim_file"], (file,))


def _still_settling(db: sqlite3.Connection, looks: Sequence[Look]) -> frozenset[int]:
    """The files whose look still applies: they are settling, and one that rests or is gone has the stamp looked at."""
    asked = [(look.file, *_columns(look.stamp), look.verdict in (Verdict.RESTS, Verdict.GONE)) for look in looks]
    return frozenset([file for (file,) in db.execute(SQL["still_settling"], (json.dumps(asked),))])


def _within(rows: list[Any], size: int) -> list[Any]:
    """As many picked rows as fit into `size` bytes, the first in any case; one that must be alone comes alone."""
    taken: list[Any] = []
    total = 0
    for row in rows:
        total += row[10]
        if taken and (total > size or row[0]):
            break
        taken.append(row)
        if row[0]:
            break
    return taken


def _claim_of(row: Any) -> Claim:
    folder, name, kind, *stamp = row[7:14]
    plan = TaskPlan(row[14], row[15], row[16])
    path = PoolPath(folder + b"/" + name if folder else name)
    return Claim(row[4], row[5], row[6] + 1, path, _KINDS[kind], Stamp(*stamp), plan, row[17] + 1, row[18])


def _put_result(db: sqlite3.Connection, result: Result) -> int:
    """The row of a result: inserted where it is new, found where the same content was there before."""
    key = (result.digest, result.plan.processor, result.plan.version, result.plan.settings)
    cursor = db.execute(SQL["insert_result"], _result_row(result))
    if cursor.rowcount:
        assert cursor.lastrowid is not None
        return cursor.lastrowid
    return int(db.execute(SQL["find_result"], key).fetchone()[0])


def _result_row(result: Result) -> tuple[object, ...]:
    plan, ref = result.plan, result.ref
    key = (result.digest, plan.processor, plan.version, plan.settings)
    return (*key, ref.pack, ref.offset, ref.length, result.kind, result.title)


def _result_of(row: Any) -> Result | None:
    digest, processor, version, settings, pack, place, length, kind, title = row
    if digest is None:
        return None
    return Result(digest, TaskPlan(processor, version, settings), TextRef(pack, place, length), kind, title)
