"""The settle gate's side of the ledger: whose look is due, and what each verdict does."""

from __future__ import annotations

import pytest
from ledger_samples import TEXT, Item, World

from tidegate.errors import Failure
from tidegate.ledger import End, Look, Presence, State, TaskPlan
from tidegate.pool.settle import Verdict

BOTH = (TEXT, TaskPlan("checksum", "1"))


def test_no_look_is_due_before_the_window_has_passed(world: World) -> None:
    world.find(b"x")
    world.time.move(1.9)
    assert world.ledger.unsettled(10) == []
    world.time.move(0.1)
    (due,) = world.ledger.unsettled(10)
    assert (due.path.raw, due.stamp, due.since_s, due.moves) == (b"x", Item(b"x").stamp, 2.0, 0)


def test_longest_due_comes_first_and_no_more_than_the_limit(world: World) -> None:
    world.find(b"a/first")
    world.time.move(1)
    world.find(b"b/second")
    world.time.move(5)
    assert [file.path.raw for file in world.ledger.unsettled(10)] == [b"a/first", b"b/second"]
    assert [file.path.raw for file in world.ledger.unsettled(1)] == [b"a/first"]


def test_file_with_two_tasks_is_looked_at_once(world: World) -> None:
    world.find(Item(b"x", tasks=BOTH))
    world.time.move(2)
    (due,) = world.ledger.unsettled(10)
    assert world.ledger.settle([Look(due.file, Verdict.RESTS, due.stamp)]) == {State.READY: 1}
    assert [task.state for task in world.view(b"x").tasks] == [State.READY, State.READY]


@pytest.mark.parametrize(
    ("verdict", "state", "failure"),
    [
        (Verdict.RESTS, State.READY, None),
        (Verdict.MOVES, State.SETTLING, None),
        (Verdict.UNKNOWN, State.SETTLING, None),
        (Verdict.GROWING, State.BLOCKED, Failure.GROWING),
        (Verdict.GONE, State.BLOCKED, Failure.VANISHED),
    ],
)
def test_each_verdict_leads_to_its_state(world: World, verdict: Verdict, state: State, failure: Failure | None) -> None:
    world.find(b"x")
    world.time.move(2)
    known = world.ledger.unsettled(1)[0]
    counts = world.ledger.settle([Look(known.file, verdict, known.stamp)])
    assert {one: count for one, count in counts.items() if count} == {state: 1}
    (task,) = world.view(b"x").tasks
    assert (task.state, task.failure) == (state, failure)


def test_every_verdict_has_a_row_above() -> None:
    (mark,) = [one for one in test_each_verdict_leads_to_its_state.pytestmark if one.name == "parametrize"]
    assert {row[0] for row in mark.args[1]} == set(Verdict)


def test_moving_file_is_looked_at_again_under_its_new_stamp_a_window_later(world: World) -> None:
    world.find(b"x")
    world.time.move(2)
    world.look(b"x", Verdict.MOVES, Item(b"x", size=300, mtime_ns=9).stamp)
    assert world.ledger.unsettled(10) == []
    world.time.move(2)
    (due,) = world.ledger.unsettled(10)
    assert (due.stamp, due.since_s, due.moves) == (Item(b"x", size=300, mtime_ns=9).stamp, 4.0, 1)
    world.rest()
    assert world.take()[0].stamp.size == 300


def test_size_seen_last_decides_the_order(world: World) -> None:
    world.find(Item(b"grew", size=1), Item(b"small", size=50))
    world.time.move(2)
    world.look(b"grew", Verdict.MOVES, Item(b"grew", size=300, mtime_ns=9).stamp)
    world.rest()
    assert [claim.path.raw for claim in world.take()] == [b"small", b"grew"]


def test_share_that_does_not_answer_changes_no_stamp(world: World) -> None:
    world.find(b"x")
    world.time.move(2)
    world.look(b"x", Verdict.UNKNOWN)
    world.time.move(2)
    (due,) = world.ledger.unsettled(10)
    assert (due.stamp, due.moves) == (Item(b"x").stamp, 0)


def test_gone_file_is_suspected_and_counts_as_changed(world: World) -> None:
    world.find(b"x")
    world.look(b"x", Verdict.GONE)
    assert world.view(b"x").presence is Presence.SUSPECTED
    assert [file.presence for file in world.ledger.changes_after(0, 0, 10)] == [Presence.SUSPECTED]


def test_blocked_while_settling_is_told_in_the_history(world: World) -> None:
    world.find(b"x")
    world.look(b"x", Verdict.GROWING)
    assert [(event.event, event.detail) for event in world.view(b"x").history] == [
        ("blocked", "growing: keeps changing")
    ]


@pytest.mark.fault("F26")
def test_grown_file_returns_when_a_scan_sees_it_changed(world: World) -> None:
    world.find(b"x")
    world.look(b"x", Verdict.GROWING)
    world.rescan(Item(b"x", size=12_345))
    world.rest()
    assert world.take()[0].stamp.size == 12_345


@pytest.mark.parametrize("verdict", list(Verdict))
def test_late_look_leaves_a_file_alone_that_is_not_settling_any_more(world: World, verdict: Verdict) -> None:
    claim = world.held(b"x")
    before = world.view(b"x")
    stamp = Item(b"x", size=999, mtime_ns=9).stamp if verdict is Verdict.MOVES else claim.stamp
    counts = world.ledger.settle([Look(claim.file, verdict, stamp)])
    assert not any(counts.values())
    assert world.view(b"x") == before
    assert world.ledger.changes_after(0, 0, 10) == []
    assert world.finish(claim, End.DONE)


def test_look_at_an_older_stamp_does_not_let_a_changed_file_through(world: World) -> None:
    world.find(b"x")
    world.time.move(2)
    (due,) = world.ledger.unsettled(10)
    world.rescan(Item(b"x", size=999))
    world.ledger.settle([Look(due.file, Verdict.RESTS, due.stamp)])
    assert world.state(b"x") is State.SETTLING


def test_file_seen_to_move_starts_its_other_tasks_over(world: World) -> None:
    world.ready(Item(b"x", tasks=BOTH))
    first, second = world.take()
    world.finish(first, End.DONE)
    world.finish(second, End.SETTLING, reason="changed while it was read")
    world.time.move(2)
    world.look(b"x", Verdict.MOVES, Item(b"x", size=300, mtime_ns=9).stamp)
    assert [task.state for task in world.view(b"x").tasks] == [State.SETTLING, State.SETTLING]
    world.rest()
    assert {claim.stamp.size for claim in world.take()} == {300}


def test_claim_on_another_task_is_lost_when_the_file_is_seen_to_move(world: World) -> None:
    world.ready(Item(b"x", tasks=BOTH))
    first, second = world.take()
    world.finish(second, End.SETTLING)
    world.time.move(2)
    world.look(b"x", Verdict.MOVES, Item(b"x", size=300, mtime_ns=9).stamp)
    assert not world.finish(first, End.DONE)


def test_chmod_while_settling_does_not_take_done_tasks_back(world: World) -> None:
    world.ready(Item(b"x", tasks=BOTH))
    first, second = world.take()
    world.finish(first, End.DONE)
    world.finish(second, End.SETTLING)
    world.time.move(2)
    world.look(b"x", Verdict.MOVES, Item(b"x", ctime_ns=77).stamp)
    assert [task.state for task in world.view(b"x").tasks] == [State.DONE, State.SETTLING]


def test_ten_thousand_files_settle_in_one_window(world: World) -> None:
    world.find(*(Item(b"many/%05d" % number) for number in range(10_000)))
    world.time.move(2)
    due = world.ledger.unsettled(10_000)
    assert world.ledger.settle([Look(file.file, Verdict.RESTS, file.stamp) for file in due])[State.READY] == 10_000
    assert world.ledger.backlog().settling == 0
