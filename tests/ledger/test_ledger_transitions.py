"""Every transition that states.py allows happens, each by an act of its own; and no act makes another one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ledger_samples import EVERYTHING, OWNER, Item, World

from tidegate.errors import Failure
from tidegate.ledger import NOTHING, RESTING, End, Finish, Selection, State, Want
from tidegate.ledger.states import FOLLOWS
from tidegate.pool.settle import Verdict

Act = Callable[[World], object]


def settling(world: World) -> None:
    world.find(b"x")


def ready(world: World) -> None:
    world.ready(b"x")


def claimed(world: World) -> None:
    world.held(b"x")


def failed(world: World) -> None:
    world.ready(b"x", Item(b"y", size=1))
    for claim in world.take():
        world.fail(claim)


def ended(end: End, failure: Failure | None = None) -> Act:
    return lambda world: world.finish(world.held(b"x"), end, failure=failure)


def finish(end: End, failure: Failure | None = None) -> Act:
    return lambda world: world.finish(world.claims[b"x"], end, failure=failure)


def change(world: World) -> None:
    world.rescan(Item(b"x", size=777))


def wake(world: World) -> None:
    world.time.move(60)
    world.take(1)


def release_and_take(world: World) -> None:
    world.ledger.commit(OWNER, [Finish(world.claims[b"x"], End.RELEASED)], Want(1, EVERYTHING))


BEFORE: dict[State, Act] = {
    State.SETTLING: settling,
    State.READY: ready,
    State.CLAIMED: claimed,
    State.FAILED: failed,
    State.BLOCKED: ended(End.FAILED, Failure.CORRUPT),
    State.SKIPPED: ended(End.SKIPPED),
    State.DONE: ended(End.DONE),
}
ACTS: dict[tuple[State, State], Act] = {
    (State.SETTLING, State.READY): lambda world: world.look(b"x", Verdict.RESTS),
    (State.SETTLING, State.BLOCKED): lambda world: world.look(b"x", Verdict.GROWING),
    (State.READY, State.CLAIMED): lambda world: world.take(),
    (State.READY, State.SETTLING): change,
    (State.CLAIMED, State.CLAIMED): release_and_take,
    (State.CLAIMED, State.SETTLING): finish(End.SETTLING),
    (State.CLAIMED, State.READY): lambda world: world.ledger.recover([OWNER]),
    (State.CLAIMED, State.FAILED): finish(End.FAILED, Failure.TRANSIENT),
    (State.CLAIMED, State.BLOCKED): finish(End.FAILED, Failure.CORRUPT),
    (State.CLAIMED, State.SKIPPED): finish(End.SKIPPED),
    (State.CLAIMED, State.DONE): finish(End.DONE),
    (State.FAILED, State.READY): wake,
    (State.FAILED, State.SETTLING): lambda world: world.ledger.retry(Selection()),
    (State.BLOCKED, State.SETTLING): lambda world: world.ledger.retry(Selection()),
    (State.SKIPPED, State.SETTLING): change,
    (State.DONE, State.SETTLING): change,
}


def test_every_allowed_transition_has_an_act() -> None:
    assert set(ACTS) == {(before, after) for before, follows in FOLLOWS.items() for after in follows}


@pytest.mark.parametrize(("before", "after"), sorted(ACTS))
def test_transition_happens(world: World, before: State, after: State) -> None:
    BEFORE[before](world)
    assert world.state(b"x") is before
    ACTS[before, after](world)
    assert world.state(b"x") is after


@pytest.mark.parametrize("state", sorted(RESTING))
def test_nothing_takes_a_resting_task_by_itself(world: World, state: State) -> None:
    BEFORE[state](world)
    world.time.move(1_000_000)
    world.ledger.recover([OWNER])
    assert world.ledger.unsettled(10) == []
    assert world.ledger.commit(OWNER, [], Want(10, EVERYTHING)).claims == ()
    assert world.ledger.commit(OWNER, [], NOTHING).claims == ()
    assert world.state(b"x") is state


def test_retry_leaves_tasks_alone_that_are_not_stuck(world: World) -> None:
    for state in (State.SETTLING, State.READY, State.CLAIMED, State.SKIPPED, State.DONE):
        path = state.value.encode() + b"/x"
        world.find(path) if state is State.SETTLING else world.ready(path)
        if state not in (State.SETTLING, State.READY):
            (claim,) = [one for one in world.take() if one.path.raw == path]
            if state is not State.CLAIMED:
                world.finish(claim, End(state.value))
    before = world.ledger.counts()
    assert world.ledger.retry(Selection()) == 0
    assert world.ledger.counts() == before


def test_states_rest_or_lead_on() -> None:
    assert set(FOLLOWS) == set(State)
    assert all(FOLLOWS[state] <= {State.SETTLING} for state in RESTING)
