"""Supervisor: takes claims from the ledger, gives their files to children, commits what came of them.

One thread and one loop. Files are opened here, below the pool's root, and handed over open; their stamp must be the
claimed one after opening and after the last read, else the result is thrown away and the file settles again. Finishing
a batch and claiming the next is one transaction; the texts are durable in a pack before it. Claims are renewed from
here, only while their child makes progress: one without progress is killed, and charged with the file in hand alone.
If this process dies, its claims are taken back at once by whoever finds its owner's lock free.
"""

from __future__ import annotations

import contextlib
import selectors
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from tidegate.errors import DiskFull, Failure, StateError
from tidegate.ledger import NOTHING, Claim, Clock, End, Finish, Ledger, Want
from tidegate.pool import Kind, Stamp, disk
from tidegate.processing.children import Child, ChildTerms, InHand
from tidegate.processing.drafts import (
    CHANGED,
    WAIT,
    Batch,
    ContentKey,
    Draft,
    Press,
    after_failure,
    after_open_error,
    after_reading,
    content_key,
    press,
    reason_for,
    served_by_earlier,
)
from tidegate.processing.messages import Digest, Extracted, Failed, FromChild
from tidegate.processing.processors import REGISTER, TEXT

BATCH: Final = 32
BATCH_BYTES: Final = 64 << 20
TEXT_BYTES: Final = 16 << 20
COMMIT_EVERY_S: Final = 2.0
MARGIN: Final = 0.1  # of a claim's length, before whose end nothing is written without asking
STILLBORN: Final = 5
DEPTH: Final = 2  # files given to a child: one in hand, one waiting so that it never idles


@dataclass(frozen=True, slots=True)
class WorkTerms:
    """How many children, what each may use, and the length of a claim in seconds."""

    workers: int
    child: ChildTerms
    claim_for_s: float


@dataclass(slots=True)
class Tallies:
    """What was accepted since the start: ends by kind, failures by class, bytes of finished files, results dropped
    because their claim was lost (`stale`) or their file had changed (`changed`)."""

    ends: Counter[End] = field(default_factory=Counter)
    failures: Counter[Failure] = field(default_factory=Counter)
    size: int = 0
    stale: int = 0
    changed: int = 0
    crashed_children: int = 0


@dataclass(slots=True)
class Extraction:
    """A content that one child extracts, and the files of the same content that wait for what comes of it."""

    by: InHand
    waiting: list[tuple[Child, InHand]] = field(default_factory=list)


class Supervisor:
    """See the module. `wait_for_room` is called when the disk is full; it returns when it is worth another try, or
    raises to give up."""

    def __init__(
        self,
        ledger: Ledger,
        root: int,
        target: Press,
        terms: WorkTerms,
        clock: Clock,
        wait_for_room: Callable[[DiskFull], None],
    ) -> None:
        self.tallies = Tallies()
        self.is_confined: bool | None = None
        self._ledger = ledger
        self._root = root
        self._target = target
        self._terms = terms
        self._clock = clock
        self._wait_for_room = wait_for_room
        self._selector = selectors.DefaultSelector()
        self._children: list[Child] = []
        self._claims: deque[Claim] = deque()
        self._batch = Batch()
        self._asked_in_vain = False
        self._stillborn = 0
        self._extracting: dict[ContentKey, Extraction] = {}
        self._committed_at = time.monotonic()
        self._claim_ns = int(terms.claim_for_s * 1e9)
        self._renewed_ns = clock.now_ns()

    # --- the loop's one step -----------------------------------------------------------------------------------------

    def step(self, patience_s: float) -> bool:
        """Do what can be done now and wait at most `patience_s` for children; whether anything is in hand.

        False means that the ledger had nothing to claim at the last commit and no child is busy.
        """
        self._feed()
        now = time.monotonic()
        if self._is_commit_due(now):
            self._commit()
            self._feed()
        if self._clock.now_ns() > self._renewed_ns + self._claim_ns / 3:
            self._renew()
        self._hear(patience_s if self._is_busy or self._claims else 0.0)
        self._end_late(time.monotonic())
        return self._is_busy or bool(self._claims or self._batch.drafts) or not self._asked_in_vain

    def ask_again(self) -> None:
        """There may be new work in the ledger."""
        self._asked_in_vain = False

    def stop(self) -> None:
        """Commit what is finished, release every other claim with its attempt given back, end all children."""
        for child in self._children:
            for item in child.queue:
                self._batch.add(Draft(item.claim, End.RELEASED))
                item.close()
            child.queue.clear()
            self._selector.unregister(child.channel)
            child.end(is_late=True)
        self._children.clear()
        for claim in self._claims:
            self._batch.add(Draft(claim, End.RELEASED))
        self._claims.clear()
        self._selector.close()
        if self._batch.drafts:
            self._write_or_release()

    @property
    def _is_busy(self) -> bool:
        return any(child.queue for child in self._children)

    # --- claims out, files to children -------------------------------------------------------------------------------

    def _feed(self) -> None:
        while self._claims:
            claim = self._claims[0]
            if claim.plan.processor == REGISTER or claim.kind is not Kind.FILE:
                self._claims.popleft()
                reason = "registered" if claim.kind is Kind.FILE else "symbolic link, recorded and not followed"
                self._batch.add(Draft(claim, End.DONE, reason))
                continue
            child = self._free_child()
            if child is None or not self._give(child, claim):
                return
            self._claims.popleft()

    def _free_child(self) -> Child | None:
        """The least loaded child that takes a file, started where there are fewer than wanted."""
        self._replace_worn()
        idle = next((child for child in self._children if not child.queue and not child.is_worn), None)
        if idle is None and len(self._children) < self._terms.workers:
            idle = self._start_child()
        if idle is not None:
            return idle
        ready = [child for child in self._children if len(child.queue) < DEPTH and not child.is_worn]
        return min(ready, key=lambda child: len(child.queue), default=None)

    def _start_child(self) -> Child | None:
        try:
            child = Child.start(self._terms.child)
        except OSError as error:
            if error.errno not in WAIT:
                raise
            return None
        self._children.append(child)
        self._selector.register(child.channel, selectors.EVENT_READ, child)
        return child

    def _replace_worn(self) -> None:
        for child in [child for child in self._children if child.is_worn and not child.queue]:
            self._forget(child)
            child.end()

    def _forget(self, child: Child) -> None:
        self._children.remove(child)
        self._selector.unregister(child.channel)

    def _give(self, child: Child, claim: Claim) -> bool:
        """Open the claim's file and hand it over; False where descriptors or memory ran short, and it must wait."""
        try:
            descriptor = disk.open_beneath(self._root, claim.path.raw)
        except OSError as error:
            if error.errno in WAIT:
                return False
            self._batch.add(after_open_error(claim, error))
            return True
        item = InHand(claim, descriptor)
        try:
            status = disk.stat_open(descriptor)
        except OSError as error:
            self._end_item(item, after_open_error(claim, error))
            return True
        if not disk.is_regular(status) or Stamp.of(status) != claim.stamp:
            self._end_item(item, Draft(claim, End.SETTLING, CHANGED))
            return True
        with contextlib.suppress(OSError):  # a child that died is found gone by `_hear`, which takes its queue back
            child.give(item, claim.plan.processor)
        return True

    # --- children's answers ------------------------------------------------------------------------------------------

    def _hear(self, patience_s: float) -> None:
        for key, _ in self._selector.select(patience_s):
            child: Child = key.data
            messages = child.hear()
            for message in messages or ():
                self._take(child, message)
            if messages is None and child in self._children:
                self._bury(child, is_late=False)

    def _take(self, child: Child, message: FromChild) -> None:
        if child.is_confined is not None:
            self.is_confined = child.is_confined
        if not child.queue or getattr(message, "task", None) != child.queue[0].claim.task:
            return
        item = child.queue[0]
        match message:
            case Digest(digest=digest):
                item.digest = digest
                self._after_digest(child, item, digest)
            case Extracted():
                draft = Draft(item.claim, End.DONE, reason_for(message), digest=item.digest, text=message)
                self._end_first(child, self._checked(item, draft))
            case Failed(failure=failure, reason=reason):
                draft = after_failure(item.claim, failure, reason, item.digest)
                self._end_first(child, self._checked(item, draft))
                if failure is Failure.MEMORY:
                    self._let_go(child)

    def _after_digest(self, child: Child, item: InHand, digest: bytes) -> None:
        if item.claim.plan.processor != TEXT:
            reason = "touched, same content" if item.claim.digest == digest else "read"
            end = End.SKIPPED if item.claim.digest == digest else End.DONE
            self._end_first(child, self._checked(item, Draft(item.claim, end, reason, digest=digest)))
            return
        key = content_key(item.claim, digest)
        if key in self._extracting:
            self._extracting[key].waiting.append((child, item))
        elif self._is_known(key):
            child.answer(item.claim.task, is_wanted=False)
            self._end_first(child, self._checked(item, served_by_earlier(item.claim, digest)))
        else:
            self._extracting[key] = Extraction(item)
            child.answer(item.claim.task, is_wanted=True)

    def _is_known(self, key: ContentKey) -> bool:
        if self._batch.has_text(key) or key in self._batch.results:
            return True
        result = self._ledger.find_result(key[0], key[1:])
        if result is not None:
            self._batch.results[key] = result
        return result is not None

    def _checked(self, item: InHand, draft: Draft) -> Draft:
        try:
            now = Stamp.of(disk.stat_open(item.descriptor))
        except OSError as error:
            return after_open_error(item.claim, error)
        checked = after_reading(draft, now)
        self.tallies.changed += checked is not draft
        return checked

    def _end_first(self, child: Child, draft: Draft) -> None:
        item = child.queue.popleft()
        child.heard_at = time.monotonic()
        self._end_item(item, draft)

    def _end_item(self, item: InHand, draft: Draft) -> None:
        item.close()
        self._batch.add(draft)
        if item.digest is not None:
            self._answer_waiting(content_key(item.claim, item.digest), item)

    def _answer_waiting(self, key: ContentKey, ended: InHand) -> None:
        """The content's extraction ended, well or not: those that waited for it go on as if they asked now."""
        extraction = self._extracting.get(key)
        if extraction is None or extraction.by is not ended:
            return
        del self._extracting[key]
        for child, item in extraction.waiting:
            if child.queue and child.queue[0] is item and item.digest is not None:
                self._after_digest(child, item, item.digest)

    def _end_late(self, now: float) -> None:
        for child in [child for child in self._children if child.is_late(now)]:
            if not self._is_waiting(child):
                self._bury(child, is_late=True)

    def _is_waiting(self, child: Child) -> bool:
        return any(child is waiting for one in self._extracting.values() for waiting, _ in one.waiting)

    def _bury(self, child: Child, *, is_late: bool) -> None:
        """A child is gone or has to go: its file in hand failed, what waited behind it goes back in front."""
        self._forget(child)
        failure, reason = child.end(is_late=is_late)
        first = child.queue.popleft() if child.queue and child.is_confined is not None else None
        self._take_back(child)
        if first is not None:
            self.tallies.crashed_children += 1
            draft = Draft(first.claim, End.FAILED, reason, failure, first.digest)
            self._end_item(first, self._checked(first, draft))
        self._check_is_born(child, reason)

    def _let_go(self, child: Child) -> None:
        """The child ends, having failed for lack of memory: what waits in it is not its to fail."""
        self._forget(child)
        child.end()
        self._take_back(child)

    def _take_back(self, child: Child) -> None:
        for item in reversed(child.queue):
            item.close()
            self._claims.appendleft(item.claim)
        child.queue.clear()

    def _check_is_born(self, child: Child, reason: str) -> None:
        """A child that ends before it greets is no file's fault: none is charged; after some in a row, give up."""
        self._stillborn = self._stillborn + 1 if child.is_confined is None else 0
        if self._stillborn == STILLBORN:
            raise StateError(f"child processes cannot start: {reason}", "reinstall tidegate; see: tidegate doctor")

    # --- the ledger --------------------------------------------------------------------------------------------------

    def _is_commit_due(self, now: float) -> bool:
        drafts, waiting = self._batch.drafts, len(self._claims)
        if len(drafts) >= BATCH or self._batch.size > TEXT_BYTES:
            return True
        if drafts and (now - self._committed_at > COMMIT_EVERY_S or not (self._is_busy or waiting)):
            return True
        return waiting < self._terms.workers and not self._asked_in_vain and not self._holds_risky

    @property
    def _holds_risky(self) -> bool:
        return any(claim.attempts > 1 for claim in self._held())

    def _held(self) -> Iterable[Claim]:
        yield from self._claims
        for child in self._children:
            yield from (item.claim for item in child.queue)

    def _commit(self) -> None:
        is_wanted = len(self._claims) < BATCH and not self._holds_risky
        holds_nothing = not any(True for _ in self._held())
        self._write(Want(BATCH, BATCH_BYTES, with_risky=holds_nothing) if is_wanted else NOTHING)

    def _write_or_release(self) -> None:
        """The last write. Where there is no room for texts, their files are released, to be read again later."""
        try:
            self._write(NOTHING)
        except DiskFull:
            released = [Finish(draft.claim, End.RELEASED) for draft in self._batch.drafts]
            self._batch = Batch()
            self._ledger.commit(self._target.owner, released, NOTHING)
            raise

    def _write(self, want: Want) -> None:
        batch, self._batch = self._batch, Batch()
        if self._is_past_deadline:
            self._drop_lost(batch)
        asked_ns = self._clock.now_ns()
        if not any(True for _ in self._held()):
            self._renewed_ns = asked_ns
        while True:
            try:
                finishes = press(batch, self._target, self._clock.wall_ns())
                committed = self._ledger.commit(self._target.owner, finishes, want)
                break
            except DiskFull as error:
                self._batch = batch  # waiting may end in giving up; then it is released
                self._wait_for_room(error)
                self._batch = Batch()
        self._count(finishes, committed.stale)
        self._claims.extend(committed.claims)
        self._committed_at = time.monotonic()
        if want.tasks:
            self._asked_in_vain = not committed.claims

    @property
    def _is_past_deadline(self) -> bool:
        """Whether so much time went by since the last renewal, a suspend or a stop of this process included, that
        claims may be somebody else's by now."""
        return self._clock.now_ns() > self._renewed_ns + self._claim_ns * (1 - MARGIN)

    def _drop_lost(self, batch: Batch) -> None:
        """Ask before anything is written: what came of a claim that is lost goes no further."""
        lost = self._ledger.renew(self._target.owner, [draft.claim for draft in batch.drafts])
        self.tallies.stale += len(lost)
        batch.drop(lost)
        self._renew()

    def _count(self, finishes: Iterable[Finish], stale: frozenset[int]) -> None:
        for finish in finishes:
            if finish.claim.task in stale:
                self.tallies.stale += 1
                continue
            self.tallies.ends[finish.end] += 1
            if finish.failure is not None:
                self.tallies.failures[finish.failure] += 1
            if finish.end in (End.DONE, End.SKIPPED):
                self.tallies.size += finish.claim.stamp.size

    def _renew(self) -> None:
        """Renew what is held; claims that are lost already are dropped, with the child that works on one."""
        asked_ns = self._clock.now_ns()
        waiting = [draft.claim for draft in self._batch.drafts]
        lost = self._ledger.renew(self._target.owner, [*self._held(), *waiting])
        self._renewed_ns = asked_ns
        self._claims = deque(claim for claim in self._claims if claim.task not in lost)
        for child in self._children:
            if child.queue and child.queue[0].claim.task in lost:
                child.heard_at = -self._terms.child.deadline_s
