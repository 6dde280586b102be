"""A small model of the ledger, and a machine that drives a store and the model side by side.

Checked, by their names in the list of invariants: L1 one claim a file, L2 fences grow and stale ones change nothing,
L4 who renews is never recovered, L5 the dead one's file can be claimed, L6 attempts are limited, L9 the order; I3 one
accepted commit a fence, I5 no task is lost.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from ledger_samples import KINDS_OF_STORES, OTHER, OWNER, SECOND, HandClock, Item, World

from tidegate.errors import Failure
from tidegate.ledger import NOTHING, Claim, End, Finish, Look, Selection, State, Terms, Want
from tidegate.pool.settle import Verdict

NAMES = st.sampled_from([b"a", b"b", b"c", b"d"])
SIZES = st.integers(0, 3)
ORDERS = st.integers(0, 2)
OWNERS = st.sampled_from([OWNER, OTHER])
ENDS = st.sampled_from(list(End))
FAILURES = st.sampled_from([Failure.TRANSIENT, Failure.CRASH, Failure.CORRUPT])
TERMS = Terms(claim_for_s=300.0, settle_s=2.0, attempts=3)
CLAIM_FOR, WINDOW = TERMS.claim_ns, TERMS.settle_ns


@dataclass
class Known:
    """What the model knows of one file with one task."""

    item: Item
    number: int
    state: State = State.SETTLING
    due: int = 0
    alone: bool = False
    attempts: int = 0
    fence: int = 0
    owner: str = ""
    lease_end: int = 0
    accepted: set[int] = field(default_factory=set)

    @property
    def order(self) -> tuple[object, ...]:
        return self.alone, self.item.priority, self.item.urgency, self.item.size, self.number

    def start_over(self, due: int) -> None:
        self.state, self.due, self.attempts, self.owner = State.SETTLING, due, 0, ""


class LedgerMachine(RuleBasedStateMachine):
    """Runs against the kind of store that a subclass names."""

    kind = "sqlite"

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory(dir="/dev/shm")
        self.stores = KINDS_OF_STORES[self.kind](Path(self.folder.name))
        self.time = HandClock()
        ledger = self.stores.open(TERMS, self.time.clock, random.Random(1))
        self.world = World(ledger, self.time, TERMS)
        self.known: dict[bytes, Known] = {}
        self.ever: list[tuple[str, Claim]] = []
        for number, name in enumerate((b"a", b"b", b"c")):
            self.find_or_change(name, size=number, priority=1, urgency=0)
        self.look_at_what_is_due(Verdict.RESTS)

    def teardown(self) -> None:
        if hasattr(self, "stores"):
            self.stores.close()
            self.folder.cleanup()

    @property
    def now(self) -> int:
        return self.time.now_ns

    # --- what happens ------------------------------------------------------------------------------------------------

    @rule(name=NAMES, size=SIZES, priority=ORDERS, urgency=ORDERS)
    def find_or_change(self, name: bytes, size: int, priority: int, urgency: int) -> None:
        before = self.known.get(name)
        mtime_ns = before.item.mtime_ns + 1 if before else 1
        item = Item(name, size, priority, urgency, mtime_ns=mtime_ns)
        if before is None:
            self.world.find(item)
            self.known[name] = Known(item, len(self.known), due=self.now + WINDOW)
        else:
            self.world.rescan(item)
            before.item, before.alone = item, False
            before.start_over(self.now + WINDOW)

    @rule(seconds=st.sampled_from([1, 200, 301]))
    def time_passes(self, seconds: int) -> None:
        self.time.move(seconds)

    @rule(verdict=st.sampled_from([Verdict.RESTS, Verdict.RESTS, Verdict.RESTS, Verdict.UNKNOWN, Verdict.GROWING]))
    def look_at_what_is_due(self, verdict: Verdict) -> None:
        self.time.move(TERMS.settle_ns / SECOND)
        due = self.world.ledger.unsettled(100)
        expected = {name for name, one in self.known.items() if one.state is State.SETTLING and one.due <= self.now}
        assert {file.path.raw for file in due} == expected
        self.world.ledger.settle([Look(file.file, verdict, file.stamp) for file in due])
        for name in expected:
            one = self.known[name]
            match verdict:
                case Verdict.RESTS:
                    one.state = State.READY
                case Verdict.UNKNOWN:
                    one.due = self.now + WINDOW
                case _:
                    one.state = State.BLOCKED

    @rule(owner=OWNERS, tasks=st.integers(1, 4), size=st.integers(0, 6), risky=st.booleans())
    def claim(self, owner: str, tasks: int, size: int, risky: bool) -> None:
        for one in self.known.values():
            if one.state is State.FAILED and one.due <= self.now:
                one.state = State.READY
        expected = self._next(tasks, size, risky)
        claims = self.world.ledger.commit(owner, [], Want(tasks, size, risky)).claims
        assert [claim.path.raw for claim in claims] == [one.item.path for one in expected], "L5, L9: not those in order"
        for one, claim in zip(expected, claims, strict=True):
            assert claim.fence > one.fence, "L2: the fence did not grow"
            assert claim.attempts == one.attempts + 1 <= TERMS.attempts, "L6: attempts"
            assert claim.stamp == one.item.stamp
            one.state, one.owner, one.fence, one.attempts = State.CLAIMED, owner, claim.fence, claim.attempts
            one.lease_end = self.now + CLAIM_FOR
            self.ever.append((owner, claim))

    def _next(self, tasks: int, size: int, risky: bool) -> list[Known]:
        ready = [one for one in self.known.values() if one.state is State.READY and (risky or not one.alone)]
        taken: list[Known] = []
        for one in sorted(ready, key=lambda one: one.order)[:tasks]:
            total = sum(other.item.size for other in taken) + one.item.size
            if taken and (total > size or one.alone):
                break
            taken.append(one)
            if one.alone:
                break
        return taken

    @precondition(lambda self: self.ever)
    @rule(data=st.data(), end=ENDS, failure=FAILURES)
    def finish_a_claim_of_any_age(self, data: st.DataObject, end: End, failure: Failure) -> None:
        owner, claim = data.draw(st.sampled_from(self.ever[-8:]))
        if data.draw(st.integers(0, 9)) == 0:
            owner = OTHER if owner == OWNER else OWNER
        one = self.known[claim.path.raw]
        is_held = self._holds(one, owner, claim)
        finish = Finish(claim, end, failure=failure if end is End.FAILED else None)
        stale = self.world.ledger.commit(owner, [finish], NOTHING).stale
        assert (claim.task not in stale) == is_held, "L1, L2, I3: accepted what was lost, or refused what was held"
        if is_held:
            assert claim.fence not in one.accepted, "I3: a second commit under one fence"
            one.accepted.add(claim.fence)
            self._end(one, end, failure)

    def _end(self, one: Known, end: End, failure: Failure) -> None:
        one.owner = ""
        one.alone = end is End.FAILED and failure is Failure.CRASH
        if end in (End.RELEASED, End.SETTLING):
            one.attempts -= 1
        match end:
            case End.RELEASED:
                one.state = State.READY
            case End.SETTLING:
                one.state, one.due = State.SETTLING, self.now + WINDOW
            case End.FAILED:
                used_up = not failure.is_retryable or one.attempts >= TERMS.attempts
                one.state = State.BLOCKED if used_up else State.FAILED
                wait = self.world.view(one.item.path).tasks[0].due_in_s
                one.due = self.now + round((wait or 0) * SECOND)
            case _:
                one.state = State(end.value)

    @precondition(lambda self: self.ever)
    @rule(owner=OWNERS)
    def renew_everything_ever_claimed(self, owner: str) -> None:
        mine = [claim for whose, claim in self.ever if whose == owner]
        lost = self.world.ledger.renew(owner, mine)
        assert lost == {one.task for one in mine if not self._holds(self.known[one.path.raw], owner, one)}, (
            "L4: renewal"
        )
        for claim in mine:
            if self._holds(self.known[claim.path.raw], owner, claim):
                self.known[claim.path.raw].lease_end = self.now + CLAIM_FOR

    @rule(dead=st.sets(OWNERS))
    def recover(self, dead: set[str]) -> None:
        taken = [
            one
            for one in self.known.values()
            if one.state is State.CLAIMED and (one.owner in dead or one.lease_end <= self.now)
        ]
        recovered = self.world.ledger.recover(dead)
        for one in taken:
            one.owner, one.alone = "", True
            one.state = State.BLOCKED if one.attempts >= TERMS.attempts else State.READY
        assert recovered.ready == sum(one.state is State.READY for one in taken), "L4, L5: taken back"
        assert recovered.blocked == sum(one.state is State.BLOCKED for one in taken), "L6: blocked"

    @rule()
    def a_person_retries(self) -> None:
        stuck = [one for one in self.known.values() if one.state in (State.FAILED, State.BLOCKED)]
        assert self.world.ledger.retry(Selection()) == len(stuck)
        for one in stuck:
            one.start_over(0)

    def _holds(self, one: Known, owner: str, claim: Claim) -> bool:
        return one.state is State.CLAIMED and one.owner == owner and one.fence == claim.fence

    # --- what always holds -------------------------------------------------------------------------------------------

    @invariant()
    def store_and_model_agree(self) -> None:
        if not hasattr(self, "known"):
            return
        for name, one in self.known.items():
            (task,) = self.world.view(name).tasks
            assert (task.state, task.attempts, task.owner) == (one.state, one.attempts, one.owner), name

    @invariant()
    def no_task_is_lost(self) -> None:
        if not hasattr(self, "known"):
            return
        states = self.world.ledger.counts().states
        assert sum(tally.files for tally in states.values()) == len(self.known), "I5: a file is lost"
        owners = {one.owner for one in self.known.values() if one.owner}
        assert set(self.world.ledger.claiming_owners()) == owners, "L5: a claim without an owner"
