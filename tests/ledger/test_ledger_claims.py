"""Claims: their order and size, attempts and fences, what ends them, who takes them back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ledger_samples import EVERYTHING, OTHER, OWNER, TEXT, Item, World, paths, result_of

from tidegate.errors import Failure
from tidegate.ledger import NOTHING, End, Finish, Recovered, State, TaskPlan, Terms, Want
from tidegate.ledger.states import BACKOFF_FIRST_S, BACKOFF_LONGEST_S, after_failure, backoff_s

RISKY = (Failure.CRASH, Failure.MEMORY, Failure.TIMEOUT)


def test_order_is_priority_then_urgency_then_size_then_age(world: World) -> None:
    items = [
        Item(b"old", priority=3, urgency=0, size=1),
        Item(b"late", priority=1, urgency=9, size=1),
        Item(b"big", priority=1, urgency=2, size=500),
        Item(b"small-a", priority=1, urgency=2, size=5),
        Item(b"small-b", priority=1, urgency=2, size=5),
        Item(b"archive", priority=2, urgency=-4, size=0),
    ]
    world.ready(*items)
    assert paths(world.take()) == [b"small-a", b"small-b", b"big", b"late", b"archive", b"old"]


def test_order_holds_over_several_claims(world: World) -> None:
    world.ready(*(Item(b"%02d" % number, size=(number * 7) % 20) for number in range(20)))
    sizes = [claim.stamp.size for _ in range(5) for claim in world.take(4)]
    assert sizes == list(range(20))


def test_no_more_tasks_than_wanted(world: World) -> None:
    world.ready(*(b"%d" % number for number in range(5)))
    assert len(world.take(3)) == 3
    assert len(world.take(3)) == 2
    assert world.take(3) == ()


def test_nothing_is_claimed_where_nothing_is_wanted(world: World) -> None:
    world.ready(b"x")
    assert world.ledger.commit(OWNER, [], NOTHING).claims == ()
    assert world.state(b"x") is State.READY


def test_bytes_are_capped_but_the_first_file_is_always_taken(world: World) -> None:
    world.ready(Item(b"a", size=60), Item(b"b", size=60), Item(b"c", size=1000))
    assert paths(world.take(size=119)) == [b"a"]
    assert paths(world.take(size=1)) == [b"b"]
    assert paths(world.take(size=0)) == [b"c"]


def test_claim_tells_everything_that_work_needs(world: World) -> None:
    plan = TaskPlan("ocr", "2", "deu")
    world.ready(Item(b"f/x.png", size=9, mtime_ns=4, tasks=(plan,)))
    (claim,) = world.take()
    assert (claim.plan, claim.stamp, claim.attempts, claim.digest) == (plan, Item(b"", 9, mtime_ns=4).stamp, 1, None)
    task = world.view(b"f/x.png").tasks[0]
    assert (task.state, task.owner, task.attempts) == (State.CLAIMED, OWNER, 1)


def test_claimed_task_is_given_to_nobody_else(world: World) -> None:
    world.held(b"x")
    assert world.take(owner=OTHER) == ()


def test_finishing_and_claiming_are_one_transaction(world: World) -> None:
    world.ready(b"a", b"b")
    (first,) = world.take(1)
    committed = world.ledger.commit(OWNER, [Finish(first, End.DONE)], Want(1, EVERYTHING))
    assert paths(committed.claims) == [b"b"]
    assert (world.state(b"a"), world.state(b"b")) == (State.DONE, State.CLAIMED)


@pytest.mark.parametrize(
    ("end", "state", "attempts"),
    [
        (End.DONE, State.DONE, 1),
        (End.SKIPPED, State.SKIPPED, 1),
        (End.FAILED, State.FAILED, 1),
        (End.SETTLING, State.SETTLING, 0),
        (End.RELEASED, State.READY, 0),
    ],
)
def test_each_end_leads_to_its_state_and_gives_the_attempt_back_or_not(
    world: World, end: End, state: State, attempts: int
) -> None:
    claim = world.held(b"x")
    assert world.finish(claim, end, failure=Failure.TRANSIENT if end is End.FAILED else None)
    (task,) = world.view(b"x").tasks
    assert (task.state, task.attempts, task.owner) == (state, attempts, "")
    assert world.ledger.claiming_owners() == []


def test_every_end_has_a_row_above() -> None:
    (mark,) = test_each_end_leads_to_its_state_and_gives_the_attempt_back_or_not.pytestmark
    assert {row[0] for row in mark.args[1]} == set(End)


def test_task_sent_back_to_settling_is_looked_at_after_the_window(world: World) -> None:
    world.finish(world.held(b"x"), End.SETTLING, reason="changed while it was read")
    assert world.ledger.unsettled(10) == []
    world.time.move(2)
    assert [file.since_s for file in world.ledger.unsettled(10)] == [2.0]
    assert world.view(b"x").history[-1].detail == "changed while it was read"


def test_released_task_is_claimed_again_under_a_higher_fence(world: World) -> None:
    first = world.held(b"x")
    world.finish(first, End.RELEASED)
    (second,) = world.take(owner=OTHER)
    assert (second.attempts, second.fence > first.fence) == (1, True)


@pytest.mark.parametrize("end", list(End))
def test_finish_is_accepted_once(world: World, end: End) -> None:
    claim = world.held(b"x")
    failure = Failure.TRANSIENT if end is End.FAILED else None
    assert world.finish(claim, end, failure=failure)
    before = world.view(b"x")
    assert not world.finish(claim, end, failure=failure)
    assert world.view(b"x") == before


def test_finish_after_recovery_is_refused_and_keeps_nothing(world: World) -> None:
    claim = world.held(b"x")
    world.ledger.recover([OWNER])
    assert not world.finish(claim, End.DONE, digest=b"d" * 32, result=result_of(b"d" * 32))
    assert world.state(b"x") is State.READY
    assert world.ledger.find_result(b"d" * 32, ("text", "1", "")) is None
    assert world.ledger.changes_after(0, 0, 10) == []


@pytest.mark.fault("F2")
def test_finish_after_another_claimed_the_task_is_refused(world: World) -> None:
    old = world.held(b"x")
    world.ledger.recover([OWNER])
    (new,) = world.take(owner=OTHER)
    assert not world.finish(old, End.DONE)
    assert not world.finish(old, End.DONE, owner=OTHER)
    assert world.state(b"x") is State.CLAIMED
    assert world.finish(new, End.DONE, owner=OTHER)


def test_finish_by_another_owner_is_refused(world: World) -> None:
    claim = world.held(b"x")
    assert not world.finish(claim, End.DONE, owner=OTHER)
    assert world.finish(claim, End.DONE)


def test_refused_finish_does_not_hold_up_the_others(world: World) -> None:
    world.ready(b"a", b"b")
    first, second = world.take()
    world.finish(first, End.RELEASED)
    finishes = [Finish(first, End.DONE), Finish(second, End.DONE)]
    assert world.ledger.commit(OWNER, finishes, NOTHING).stale == {first.task}
    assert (world.state(b"a"), world.state(b"b")) == (State.READY, State.DONE)


def test_fences_of_a_task_only_grow(world: World) -> None:
    fences = [world.held(b"x").fence]
    steps: list[Callable[[], object]] = [
        lambda: world.finish(world.claims[b"x"], End.RELEASED),
        lambda: world.ledger.recover([OWNER]),
        lambda: world.rescan(Item(b"x", size=2)),
        lambda: world.fail(world.claims[b"x"]),
        lambda: world.refresh(Item(b"x", size=2, ctime_ns=9)),
        lambda: world.finish(world.claims[b"x"], End.SETTLING),
    ]
    for step in steps:
        step()
        world.time.move(BACKOFF_LONGEST_S)
        world.rest()
        fences += [claim.fence for claim in world.take()]
    assert len(fences) == len(steps) + 1
    assert fences == sorted(set(fences))


# --- leases ----------------------------------------------------------------------------------------------------------


@pytest.mark.fault("F1")
def test_expired_lease_is_taken_back_and_claimed_by_another(world: World) -> None:
    world.held(b"x")
    world.time.move(299.9)
    assert world.ledger.recover([]) == Recovered(0, 0)
    world.time.move(0.2)
    assert world.ledger.recover([]) == Recovered(1, 0)
    (claim,) = world.take(owner=OTHER)
    assert claim.attempts == 2


def test_renewed_lease_is_not_taken_back(world: World) -> None:
    claim = world.held(b"x")
    for _ in range(5):
        world.time.move(299)
        assert world.ledger.renew(OWNER, [claim]) == frozenset()
        assert world.ledger.recover([OTHER]) == Recovered(0, 0)
    assert world.finish(claim, End.DONE)


def test_renewal_says_what_is_lost_and_keeps_the_rest(world: World) -> None:
    world.ready(b"a", b"b", b"c")
    first, second, third = world.take()
    world.finish(first, End.RELEASED)
    world.rescan(Item(b"b", size=7))
    assert world.ledger.renew(OWNER, [first, second, third]) == {first.task, second.task}
    assert world.ledger.renew(OTHER, [third]) == {third.task}
    assert world.ledger.renew(OWNER, []) == frozenset()


def test_late_renewal_revives_a_claim_that_nobody_took_back(world: World) -> None:
    claim = world.held(b"x")
    world.time.move(400)
    assert world.ledger.renew(OWNER, [claim]) == frozenset()
    assert world.ledger.recover([]) == Recovered(0, 0)


def test_dead_owner_loses_its_claims_at_once_and_others_keep_theirs(world: World) -> None:
    world.ready(b"a", b"b")
    world.take(1, owner=OWNER)
    world.take(1, owner=OTHER)
    assert sorted(world.ledger.claiming_owners()) == [OWNER, OTHER]
    assert world.ledger.recover([OTHER, "never:seen"]) == Recovered(1, 0)
    assert world.ledger.claiming_owners() == [OWNER]


@pytest.mark.fault("F5")
def test_wall_clock_moves_no_lease(world: World) -> None:
    world.held(b"x")
    world.time.wall_ns += 3600 * 1_000_000_000
    assert world.ledger.recover([]) == Recovered(0, 0)
    world.time.wall_ns -= 7200 * 1_000_000_000
    world.time.now_ns += 301 * 1_000_000_000
    assert world.ledger.recover([]) == Recovered(1, 0)


# --- poison and failures ---------------------------------------------------------------------------------------------


@pytest.mark.fault("F8")
def test_file_that_kills_every_participant_is_blocked_after_the_attempts(world: World) -> None:
    world.ready(b"poison", Item(b"good", size=500))
    for _ in range(2):
        assert paths(world.take(1, owner=OTHER)) == [b"poison"] or paths(world.take(1)) == [b"poison"]
        assert world.ledger.recover([OWNER, OTHER]).blocked == 0
    while world.state(b"poison") is not State.BLOCKED:
        world.take()
        world.ledger.recover([OWNER, OTHER])
    (task,) = world.view(b"poison").tasks
    assert (task.failure, task.attempts) == (Failure.CRASH, 3)
    assert "blocked" in [event.event for event in world.view(b"poison").history]


def test_task_that_may_have_killed_its_worker_comes_last_and_alone(world: World) -> None:
    world.ready(Item(b"a", size=1), Item(b"b", size=2))
    world.take()
    world.ledger.recover([OWNER])
    world.find(Item(b"new/c", size=3))
    world.rest()
    assert paths(world.take()) == [b"new/c"]
    assert paths(world.take()) == [b"a"]
    assert paths(world.take()) == [b"b"]


def test_risky_task_is_left_to_one_that_holds_nothing_else(world: World) -> None:
    world.held(b"a")
    world.ledger.recover([OWNER])
    assert world.take(with_risky=False) == ()
    assert paths(world.take(with_risky=True)) == [b"a"]


@pytest.mark.parametrize("failure", list(Failure))
def test_failure_is_tried_again_alone_or_together_or_blocked(world: World, failure: Failure) -> None:
    world.fail(world.held(b"x"), failure)
    assert world.state(b"x") is (State.FAILED if failure.is_retryable else State.BLOCKED)
    if not failure.is_retryable:
        return
    world.time.move(BACKOFF_LONGEST_S)
    assert bool(world.take(with_risky=False)) is (failure not in RISKY)


@pytest.mark.parametrize("failure", [one for one in Failure if one.is_retryable])
def test_retryable_failure_is_blocked_when_the_attempts_are_used_up(world: World, failure: Failure) -> None:
    world.ready(b"x")
    for attempt in (1, 2, 3):
        (claim,) = world.take()
        assert claim.attempts == attempt
        world.fail(claim, failure)
        world.time.move(BACKOFF_LONGEST_S)
    assert world.take() == ()
    (task,) = world.view(b"x").tasks
    assert (task.state, task.failure, task.reason) == (State.BLOCKED, failure, "as planned")


def test_failed_task_waits_for_its_backoff(world: World) -> None:
    world.fail(world.held(b"x"))
    wait = world.view(b"x").tasks[0].due_in_s
    assert wait is not None
    assert BACKOFF_FIRST_S / 2 <= wait <= BACKOFF_FIRST_S
    world.time.move(wait - 0.01)
    assert world.take() == ()
    world.time.move(0.02)
    assert len(world.take()) == 1


@pytest.mark.fault("F12")
def test_backoffs_of_many_tasks_are_spread(world: World) -> None:
    world.ready(*(b"%03d" % number for number in range(100)))
    for claim in world.take():
        world.fail(claim)
    waits = {world.view(b"%03d" % number).tasks[0].due_in_s for number in range(100)}
    assert len(waits) == 100


def test_backoff_grows_fourfold_between_its_limits() -> None:
    assert [backoff_s(attempts, 1.0) for attempts in (0, 1, 2, 3)] == [2.0, 2.0, 8.0, 32.0]
    assert backoff_s(50, 1.0) == BACKOFF_LONGEST_S
    assert backoff_s(50, 0.0) == BACKOFF_LONGEST_S / 2


def test_limit_of_attempts_is_a_term(world_of: Callable[[Terms], World]) -> None:
    world = world_of(Terms(attempts=1))
    world.fail(world.held(b"x"))
    assert world.state(b"x") is State.BLOCKED
    assert after_failure(Failure.TRANSIENT, 1, 2) is State.FAILED


def test_vanished_file_is_blocked_and_suspected(world: World) -> None:
    world.fail(world.held(b"x"), Failure.VANISHED)
    assert world.state(b"x") is State.BLOCKED
    assert [file.presence.value for file in world.ledger.changes_after(0, 0, 10)] == ["suspected"]


def test_tasks_of_one_file_are_claimed_apart(world: World) -> None:
    world.ready(Item(b"x", tasks=(TEXT, TaskPlan("checksum", "1"))))
    first, second = world.take()
    assert (first.file, first.task != second.task) == (second.file, True)
    world.finish(first, End.DONE)
    assert [task.state for task in world.view(b"x").tasks] == [State.DONE, State.CLAIMED]
