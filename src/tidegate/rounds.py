"""Rounds: recover, scan, settle, process, publish; until nothing is left to do, or until asked to stop.

The scan runs in a thread beside the supervisor's loop and waits while too much is queued (back-pressure). Publishing
runs in another, so that claims are renewed meanwhile. Asked to stop, a round ends within seconds: finished work is
committed, claims are released, what is done is published as far as time allows; the next round goes on from there.
If the process dies anywhere, the next round's first step takes its claims back.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidegate.errors import DiskFull, HeldElsewhere, PoolUnavailable, StateError
from tidegate.intake import Rules, Scanner, ScanReport, settle_due
from tidegate.ledger import (
    Backlog,
    Clock,
    IndexedFile,
    Ledger,
    Meter,
    Owner,
    Presence,
    Progress,
    Result,
    TaskPlan,
    Work,
    dead_among,
    living,
    nonce,
)
from tidegate.pool.settle import Patience
from tidegate.processing.drafts import Press
from tidegate.processing.supervisor import Supervisor, Tallies, WorkTerms
from tidegate.results import all_entries, clear_unfinished, read_entry

if TYPE_CHECKING:
    from tidegate.index import Change, Document, Removal, Snapshot

TICK_S: Final = 0.1
SETTLE_EVERY_S: Final = 0.5
TELL_EVERY_S: Final = 0.25
LAST_PUBLISH_S: Final = 5.0
LAST_SCAN_S: Final = 2.0
LONGEST_WAIT_S: Final = 60.0
PAGE: Final = 500

ADOPTED: Final = "packs adopted"
LAST_SCAN: Final = "last scan"
LEDGER_ID: Final = "ledger id"


@dataclass(slots=True)
class Summary:
    """What a round did, as `run --json` gives it; `failed` and `blocked` count what stands so now."""

    scan: ScanReport = field(default_factory=ScanReport)
    work: Tallies = field(default_factory=Tallies)
    snapshot: Snapshot | None = None
    backlog: Backlog | None = None
    failed: int = 0
    blocked: int = 0
    seconds: float = 0.0
    is_stopped: bool = False
    is_confined: bool | None = None


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a round speaks with its face: `should_stop` is asked often, `tell` hears progress, `note` hears sentences."""

    should_stop: Callable[[], bool] = lambda: False
    tell: Callable[[Progress], None] = lambda progress: None
    note: Callable[[str], None] = lambda sentence: None


@dataclass(frozen=True, slots=True)
class Site:
    """One pool as this participant sees it: its open root, its ledger, where results and index live, and the rules."""

    root: int
    state: Path
    outputs: Path
    name: str
    ledger: Ledger
    clock: Clock
    rules: Rules
    patience: Patience
    work: WorkTerms
    pause_above: int
    builds_index: bool
    publish_every_s: float

    @property
    def index_root(self) -> Path:
        """The folder of the snapshots."""
        return self.state / "index"


class Beside(threading.Thread):
    """A piece of a round in a thread of its own; `end` waits for it and raises what it raised."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Act; called by the thread."""
        try:
            self._act()
        except BaseException as error:  # noqa: BLE001 - raised again by `end`, in the thread that waits for it
            self._error = error

    def end(self) -> None:
        """Wait for the end."""
        self.join()
        if self._error is not None:
            raise self._error


@dataclass(frozen=True, slots=True)
class Phases:
    """Which phases a round has."""

    scan: bool = True
    work: bool = True
    publish: bool = True


class Round:
    """One round on one site. Use once."""

    def __init__(self, site: Site, owner: Owner, hooks: Hooks, phases: Phases) -> None:
        self._site = site
        self._owner = owner
        self._hooks = hooks
        self._phases = phases
        self._summary = Summary()
        self._meter = Meter(time.monotonic())
        self._left_before = Work()
        self._scanning: Beside | None = None
        self._publishing: Beside | None = None
        self._told_full = self._is_over = False
        self._ended = 0
        now = time.monotonic()
        self._settled_at = self._told_at = 0.0
        self._published_at = self._recovered_at = self._ended_at = self._began = now

    def run(self) -> Summary:
        """Run the round to its end; what it did."""
        self._recover()
        adopt_packs(self._site)
        try:
            if self._phases.scan:
                self._scanning = Beside(self._scan)
            if self._phases.work:
                self._work()
            self._await_scan()
        finally:
            self._is_over = True
            if self._scanning is not None:
                self._scanning.join(LAST_SCAN_S)
        self._summary.is_stopped = self._hooks.should_stop()
        if self._phases.publish and self._site.builds_index:
            self._publish(self._site.ledger, _until(self._hooks.should_stop), waits=True)
        return self._finished()

    def _finished(self) -> Summary:
        summary = self._summary
        summary.backlog = self._site.ledger.backlog()
        summary.failed, summary.blocked = summary.backlog.failed, summary.backlog.blocked
        summary.seconds = time.monotonic() - self._began
        return summary

    # --- recovering --------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        ledger, state = self._site.ledger, self._site.state
        recovered = ledger.recover(dead_among(state, ledger.claiming_owners()))
        if recovered.ready or recovered.blocked:
            self._hooks.note(f"took back {recovered.ready} files from participants that ended")
        if living(state) == {self._owner.nonce}:
            clear_unfinished(self._site.outputs)
        self._recovered_at = time.monotonic()

    # --- scanning ----------------------------------------------------------------------------------------------------

    @property
    def _is_scanning(self) -> bool:
        return self._scanning is not None and self._scanning.is_alive()

    def _scan(self) -> None:
        root = os.dup(self._site.root)  # its own: a share that is dead may hold this thread beyond the round
        try:
            with contextlib.closing(self._site.ledger.another()) as ledger:
                self._scan_into(ledger, root)
        finally:
            os.close(root)

    def _scan_into(self, ledger: Ledger, root: int) -> None:
        while not self._is_told_to_stop():
            scanner = Scanner(root, ledger, self._site.rules, lambda: self._pace(ledger))
            self._summary.scan = scanner.report
            try:
                scanner.run()
                return
            except DiskFull as error:
                self._tell_full(error)

    def _is_told_to_stop(self) -> bool:
        return self._is_over or self._hooks.should_stop()

    def _await_scan(self) -> None:
        """Wait for the scan's end; told to stop, only for so long that a share which does not answer can be left."""
        if self._scanning is None:
            return
        stopped_at = None
        while self._is_scanning:
            self._scanning.join(TICK_S)
            if self._hooks.should_stop():
                stopped_at = stopped_at or time.monotonic()
                if time.monotonic() - stopped_at > LAST_SCAN_S:
                    self._hooks.note("the share does not answer; its scan is left behind")
                    return
        self._scanning.end()
        self._note_scan()

    def _pace(self, ledger: Ledger) -> bool:
        """Between two commits of the scan: wait while too much is queued and there are workers; whether to stop."""
        while self._phases.work and not self._is_told_to_stop():
            backlog = ledger.backlog()
            if backlog.ready + backlog.settling <= self._site.pause_above:
                break
            time.sleep(TICK_S)
        return self._is_told_to_stop()

    def _note_scan(self) -> None:
        report = self._summary.scan
        for path, said in report.errors[:5]:
            self._hooks.note(f"cannot list {path.display or 'the pool'}: {said}; nothing is concluded from it")
        if report.is_complete and not report.files:
            self._check_empty()
        if report.is_complete:
            self._site.ledger.set_note(LAST_SCAN, f"{self._site.clock.wall_ns()} {report.files} {report.ignored}")

    def _check_empty(self) -> None:
        """An empty pool is no reason to forget anything: most often its share is not mounted."""
        known = (self._site.ledger.get_note(LAST_SCAN) or "0 0").split()[1]
        if known != "0":
            raise PoolUnavailable(
                f"the pool is empty, but its last scan saw {known} files; nothing was concluded",
                "is the share mounted?",
            )
        self._hooks.note("the pool holds no files; is the share mounted?")

    # --- settling and processing -------------------------------------------------------------------------------------

    def _work(self) -> None:
        site = self._site
        target = Press(site.outputs, site.name, self._owner.id, self._owner.nonce)
        supervisor = Supervisor(site.ledger, site.root, target, site.work, site.clock, self._wait_for_room)
        self._summary.work = supervisor.tallies
        backlog = site.ledger.backlog()
        self._left_before = Work(backlog.settling + backlog.ready + backlog.failed)
        try:
            while not self._hooks.should_stop() and self._turn(supervisor):
                pass
        finally:
            self._summary.is_confined = supervisor.is_confined
            self._stop(supervisor)
            if self._publishing is not None:
                self._publishing.end()

    def _turn(self, supervisor: Supervisor) -> bool:
        """One turn of the loop; whether there may be another."""
        try:
            self._settle(supervisor)
            is_busy = supervisor.step(TICK_S)
        except DiskFull as error:
            self._tell_full(error)
            return True
        self._tell()
        self._publish_in_between()
        return is_busy or self._wait_for_more(supervisor)

    def _stop(self, supervisor: Supervisor) -> None:
        try:
            supervisor.stop()
        except DiskFull as error:
            self._hooks.note(f"{error}; what was not written is done again by the next run")

    def _settle(self, supervisor: Supervisor) -> None:
        now = time.monotonic()
        if now - self._settled_at < SETTLE_EVERY_S:
            return
        self._settled_at = now
        settle_due(self._site.root, self._site.ledger, self._site.patience)
        supervisor.ask_again()
        if now - self._recovered_at > self._site.work.claim_for_s / 3:
            self._recover()

    def _wait_for_more(self, supervisor: Supervisor) -> bool:
        """Nothing is in hand: whether something may still come, after a short wait for it."""
        was_scanning = self._is_scanning  # asked first: what a scan registers last must not be missed
        if not was_scanning and (is_finished(self._site.ledger.backlog()) or self._is_standing_still()):
            return False
        if was_scanning:
            self._ended_at = time.monotonic()
        time.sleep(TICK_S)
        supervisor.ask_again()
        return True

    def _is_standing_still(self) -> bool:
        """Whether nothing came to an end for so long that what is left is left to the next round: files that stay busy,
        a share that does not answer."""
        ends, now = self._summary.work.ends, time.monotonic()
        ended = sum(ends[end] for end in ends if end.is_final)
        if ended != self._ended:
            self._ended, self._ended_at = ended, now
        return now - self._ended_at > LONGEST_WAIT_S + 2 * self._site.patience.window_s

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told_at < TELL_EVERY_S:
            return
        self._told_at = now
        scan, work = self._summary.scan, self._summary.work
        wanted = Work(self._left_before.files + scan.new + scan.changed, scan.todo_size)
        done = Work(sum(work.ends[end] for end in work.ends if end.is_final), work.size)
        progress = self._meter.read(now, wanted, done, is_scan_complete=not self._is_scanning)
        self._hooks.tell(progress)

    def _wait_for_room(self, error: DiskFull) -> None:
        if self._hooks.should_stop():
            raise error
        self._tell_full(error)

    def _tell_full(self, error: DiskFull) -> None:
        if not self._told_full:
            self._hooks.note(f"paused: {error}; going on by itself when there is room")
            self._told_full = True
        time.sleep(1.0)

    # --- publishing --------------------------------------------------------------------------------------------------

    def _publish_in_between(self) -> None:
        site, now = self._site, time.monotonic()
        is_publishing = self._publishing is not None and self._publishing.is_alive()
        wants = self._phases.publish and site.builds_index
        if wants and not is_publishing and now - self._published_at >= site.publish_every_s:
            if self._publishing is not None:
                self._publishing.end()
            self._published_at = now
            self._publishing = Beside(self._publish_beside)

    def _publish_beside(self) -> None:
        with contextlib.closing(self._site.ledger.another()) as ledger:
            self._publish(ledger, self._hooks.should_stop)

    def _publish(self, ledger: Ledger, should_stop: Callable[[], bool], *, waits: bool = False) -> None:
        """Publish; beside another publisher, who may have begun before our last results, wait for it where `waits`.
        A round that only publishes raises HeldElsewhere then."""
        is_all = not (self._phases.scan or self._phases.work)
        until = time.monotonic() + (LONGEST_WAIT_S if waits and not is_all else 0.0)
        while True:
            try:
                self._summary.snapshot = publish(self._site, ledger, should_stop) or self._summary.snapshot
            except HeldElsewhere:
                if not self._hooks.should_stop() and time.monotonic() < until:
                    time.sleep(TICK_S)
                    continue
                if is_all:
                    raise
                self._hooks.note("another participant is publishing this index")
            except DiskFull as error:
                self._hooks.note(f"not published: {error}; the snapshot of before stays")
            return


def is_finished(backlog: Backlog) -> bool:
    """Whether a round has nothing to wait for: files that go on being written, and retries far ahead, are left to the
    next one."""
    rests = backlog.settling - backlog.moving
    is_far = backlog.next_due_s is not None and backlog.next_due_s > LONGEST_WAIT_S
    return backlog.ready == 0 and ((rests <= 0 and backlog.failed == 0) or is_far)


def _until(should_stop: Callable[[], bool]) -> Callable[[], bool]:
    """Says stop some seconds after `should_stop` first did, so that the last publish has a little time."""
    stopped_at: list[float] = []

    def is_over() -> bool:
        if should_stop() and not stopped_at:
            stopped_at.append(time.monotonic())
        return bool(stopped_at) and time.monotonic() - stopped_at[0] > LAST_PUBLISH_S

    return is_over


# --- ledger and packs to index ---------------------------------------------------------------------------------------
# The index is imported where it is used: a scan needs none, and its import takes a fifth of a second.


def publish(site: Site, ledger: Ledger, should_stop: Callable[[], bool]) -> Snapshot | None:
    """Publish what changed since the last snapshot; None where nothing did.

    Told to stop, it publishes what it has; but a snapshot that replaces that of an earlier ledger comes whole or not.
    Raises HeldElsewhere beside another publisher, or where the index moved on meanwhile; then it may be tried again.
    """
    from tidegate import index  # noqa: PLC0415 - see above

    root, name = site.index_root, _ledger_id(ledger)
    since = index.Since(index.start_change(root, name), name)
    must_be_whole = since.change == 0 and index.current(root) is not None
    changes = ((file.change, _document(site.outputs, file)) for file in _changed_files(ledger, since.change))
    try:
        snapshot = index.publish(
            root,
            _unless(should_stop, changes) if must_be_whole else changes,
            now_ns=site.clock.wall_ns(),
            should_stop=_never if must_be_whole else should_stop,
            since=since,
        )
    except InterruptedError:
        return None
    except StateError as error:
        if index.start_change(root, name) == since.change:
            raise
        raise HeldElsewhere(f"another publisher came first in {root}", "publish again") from error
    index.collect(root)
    return snapshot


def _never() -> bool:
    return False


def _unless(should_stop: Callable[[], bool], changes: Iterator[Change]) -> Iterator[Change]:
    for change in changes:
        if should_stop():
            raise InterruptedError
        yield change


def _ledger_id(ledger: Ledger) -> str:
    """The name of this ledger, made at the first publish: a rebuilt one counts its changes anew."""
    known = ledger.get_note(LEDGER_ID)
    if known is None:
        ledger.set_note(LEDGER_ID, nonce())
    return ledger.get_note(LEDGER_ID) or ""


def _changed_files(ledger: Ledger, since: int) -> Iterator[IndexedFile]:
    cursor = (since, (1 << 63) - 1)
    while page := ledger.changes_after(*cursor, PAGE):
        yield from page
        cursor = (page[-1].change, page[-1].file)


def _document(outputs: Path, file: IndexedFile) -> Document | Removal:
    from tidegate.index import Document, Removal  # noqa: PLC0415 - see above

    if file.presence is Presence.MISSING:
        return Removal(file.file)
    text, title, kind = _text_of(outputs, file.result)
    return Document(file.file, file.path, file.stamp.mtime_ns, file.stamp.size, text, title, kind)


def _text_of(outputs: Path, result: Result | None) -> tuple[str, str, str]:
    if result is None:
        return "", "", ""
    try:
        entry = read_entry(outputs, result.ref)
    except (FileNotFoundError, ValueError):
        return "", result.title, result.kind
    except OSError as error:  # what may be read later must not be published as if it were nothing
        raise StateError(
            f"the pack {result.ref.pack} in {outputs} cannot be read: {error.strerror}",
            "run again; what is done is published then",
        ) from error
    return entry.text, entry.receipt.title, entry.receipt.kind


def adopt_packs(site: Site) -> int:
    """Give a fresh ledger the results that the packs hold, once, so that nothing is extracted again."""
    if site.ledger.get_note(ADOPTED) is not None:
        return 0
    adopted, results = 0, []
    for ref, receipt in all_entries(site.outputs):
        plan = TaskPlan(receipt.processor, receipt.version, receipt.settings)
        digest = bytes.fromhex(receipt.digest.removeprefix("sha256:"))
        results.append(Result(digest, plan, ref, receipt.kind, receipt.title))
        if len(results) == PAGE:
            adopted += site.ledger.adopt_results(results)
            results = []
    adopted += site.ledger.adopt_results(results)
    site.ledger.set_note(ADOPTED, str(adopted))
    return adopted
