"""What the ledger answers: results by content, changes in pages, counts, one file, what is stuck; and freeing it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from ledger_samples import EVERYTHING, OWNER, TEXT, Item, World, result_of

from tidegate.errors import Failure
from tidegate.ledger import End, Finish, Presence, Selection, State, Tally, TaskPlan, Terms, Want
from tidegate.pool import PoolPath
from tidegate.pool.settle import Verdict

DIGEST = b"d" * 32
KEY = ("text", "1", "")


def test_note_is_remembered_and_replaced(world: World) -> None:
    assert world.ledger.get_note("files") is None
    world.ledger.set_note("files", "12")
    world.ledger.set_note("files", "13")
    with closing(world.ledger.another()) as other:
        assert other.get_note("files") == "13"


# --- results ---------------------------------------------------------------------------------------------------------


def test_result_is_found_by_content_processor_version_and_settings(world: World) -> None:
    result = result_of(DIGEST)
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST, result=result)
    assert world.ledger.find_result(DIGEST, KEY) == result
    for other in (("ocr", "1", ""), ("text", "2", ""), ("text", "1", "fast")):
        assert world.ledger.find_result(DIGEST, other) is None
    assert world.ledger.find_result(b"e" * 32, KEY) is None


def test_second_file_of_the_same_content_shares_the_first_result(world: World) -> None:
    first, second = result_of(DIGEST, pack="one"), result_of(DIGEST, pack="two")
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST, result=first)
    world.finish(world.held(b"y/y"), End.SKIPPED, digest=DIGEST, result=second)
    assert [file.result for file in world.ledger.changes_after(0, 0, 10)] == [first, first]
    assert world.view(b"y/y").digest == DIGEST


def test_claim_of_a_changed_file_knows_the_digest_of_before(world: World) -> None:
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST)
    world.rescan(Item(b"x", mtime_ns=9))
    world.rest()
    assert world.take()[0].digest == DIGEST


def test_result_of_a_new_version_takes_the_place_of_the_old_one(world: World) -> None:
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST, result=result_of(DIGEST))
    world.rescan(Item(b"x", size=9))
    world.rest()
    newer = result_of(b"e" * 32)
    world.finish(world.take()[0], End.DONE, digest=b"e" * 32, result=newer)
    assert [(file.stamp.size, file.result) for file in world.ledger.changes_after(0, 0, 10)] == [(9, newer)]


def test_changed_content_that_is_blocked_does_not_keep_the_result_of_before(world: World) -> None:
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST, result=result_of(DIGEST))
    world.rescan(Item(b"x", size=9))
    world.rest()
    world.fail(world.take()[0], Failure.CORRUPT)
    assert [file.result for file in world.ledger.changes_after(0, 0, 10)] == [None]
    assert world.view(b"x").history[-1].event == State.BLOCKED


def test_file_that_vanished_keeps_its_result(world: World) -> None:
    result = result_of(DIGEST)
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST, result=result)
    world.rescan(Item(b"x", mtime_ns=9))
    world.rest()
    world.fail(world.take()[0], Failure.VANISHED)
    assert [file.result for file in world.ledger.changes_after(0, 0, 10)] == [result]


def test_adopted_results_are_found_and_known_ones_left_alone(world: World) -> None:
    known = result_of(DIGEST, pack="one")
    world.finish(world.held(b"x"), End.DONE, digest=DIGEST, result=known)
    new = result_of(b"e" * 32)
    assert world.ledger.adopt_results([result_of(DIGEST, pack="two"), new, new]) == 1
    assert world.ledger.find_result(DIGEST, KEY) == known
    assert world.ledger.find_result(b"e" * 32, KEY) == new


# --- changes ---------------------------------------------------------------------------------------------------------


def test_files_nobody_finished_are_no_changes(world: World) -> None:
    world.held(b"x")
    assert world.ledger.changes_after(0, 0, 10) == []


def test_changes_come_in_pages_in_order_and_each_file_once(world: World) -> None:
    world.ready(*(b"%02d" % number for number in range(25)))
    while claims := world.take(10):
        world.ledger.commit(OWNER, [Finish(claim, End.DONE) for claim in claims], Want(0, 0))
    pages, at = [], (0, 0)
    while page := world.ledger.changes_after(*at, 7):
        pages.append(page)
        at = (page[-1].change, page[-1].file)
    rows = [(file.change, file.file) for page in pages for file in page]
    assert [len(page) for page in pages] == [7, 7, 7, 4]
    assert rows == sorted(set(rows))
    assert len({file for _, file in rows}) == 25


@pytest.mark.parametrize("end", [End.DONE, End.SKIPPED, End.FAILED])
def test_finished_file_moves_to_the_end_of_the_changes(world: World, end: End) -> None:
    world.ready(b"a", b"b")
    first, second = world.take()
    world.finish(first, End.DONE)
    world.finish(second, End.DONE)
    seen = world.ledger.changes_after(0, 0, 10)[-1]
    world.rescan(Item(b"a", size=9))
    world.rest()
    (again,) = world.take()
    world.finish(again, end, failure=Failure.CORRUPT if end is End.FAILED else None)
    (after,) = world.ledger.changes_after(seen.change, seen.file, 10)
    assert (after.path.raw, after.stamp.size) == (b"a", 9)


def test_file_with_two_tasks_is_one_change(world: World) -> None:
    world.ready(Item(b"x", tasks=(TEXT, TaskPlan("checksum", "1"))))
    first, second = world.take()
    world.finish(first, End.DONE, digest=DIGEST, result=result_of(DIGEST))
    world.finish(second, End.DONE)
    (file,) = world.ledger.changes_after(0, 0, 10)
    assert file.result == result_of(DIGEST)


def test_task_blocked_by_recovery_is_a_change(world_of: Callable[[Terms], World]) -> None:
    world = world_of(Terms(attempts=1))
    world.held(b"x")
    assert world.ledger.recover([OWNER]).blocked == 1
    assert [file.path.raw for file in world.ledger.changes_after(0, 0, 10)] == [b"x"]


# --- counts ----------------------------------------------------------------------------------------------------------


def test_counts_count_every_file_once_by_its_least_finished_task(world: World) -> None:
    world.ready(
        Item(b"a/1", size=1, folder="a/**"),
        Item(b"a/2", size=2, folder="a/**", tasks=(TEXT, TaskPlan("checksum", "1"))),
        Item(b"b/4", size=4, folder="b/**"),
    )
    one, two, three, four = sorted(world.take(), key=lambda claim: (claim.path.raw, claim.task))
    world.finish(one, End.DONE)
    world.finish(two, End.DONE)
    world.fail(four, Failure.ENCRYPTED)
    counts = world.ledger.counts()
    assert {state: tally for state, tally in counts.states.items() if tally.files} == {
        State.DONE: Tally(1, 1),
        State.CLAIMED: Tally(1, 2),
        State.BLOCKED: Tally(1, 4),
    }
    assert counts.presence == {Presence.PRESENT: 3, Presence.SUSPECTED: 0, Presence.MISSING: 0}
    assert [(folder.match, sum(t.files for t in folder.states.values())) for folder in counts.folders] == [
        ("a/**", 2),
        ("b/**", 1),
    ]
    assert counts.failures == {Failure.ENCRYPTED: 1}
    assert three.path.raw == b"a/2"


def test_counts_of_an_empty_ledger_are_zero(world: World) -> None:
    counts = world.ledger.counts()
    assert set(counts.states) == set(State)
    assert not any(tally.files for tally in counts.states.values())
    assert world.ledger.backlog().next_due_s is None


def test_backlog_counts_what_is_left_and_when_it_is_due(world: World) -> None:
    world.ready(b"a", b"b", b"c")
    first, second, _ = world.take()
    world.fail(first)
    world.finish(second, End.RELEASED)
    world.find(b"new/x")
    backlog = world.ledger.backlog()
    assert (backlog.settling, backlog.ready, backlog.claimed, backlog.failed, backlog.moving) == (1, 1, 1, 1, 0)
    assert backlog.next_due_s is not None
    assert 1.0 <= backlog.next_due_s <= 2.0
    world.time.move(10)
    assert world.ledger.backlog().next_due_s == 0.0


def test_file_that_moved_several_times_is_known_to_be_still_written(world: World) -> None:
    world.find(b"x")
    for size in (1, 2, 3):
        assert world.ledger.backlog().moving == 0
        world.time.move(2)
        world.look(b"x", Verdict.MOVES, Item(b"x", size=size, mtime_ns=size).stamp)
    assert world.ledger.backlog().moving == 1
    world.rest()
    assert world.ledger.backlog().moving == 0


# --- one file --------------------------------------------------------------------------------------------------------


def test_unknown_file_is_none(world: World) -> None:
    world.find(b"a/x")
    assert world.ledger.find_file(PoolPath(b"a/y")) is None
    assert world.ledger.find_file(PoolPath(b"b/x")) is None


def test_history_tells_failures_and_the_last_end(world: World) -> None:
    claim = world.held(b"x")
    world.fail(claim)
    world.time.move(60)
    world.finish(world.take()[0], End.DONE, reason="42 pages")
    history = world.view(b"x").history
    assert [(event.event, event.detail) for event in history] == [
        ("failed", "transient: as planned"),
        ("done", "42 pages"),
    ]
    assert [event.at_ns for event in history] == sorted(event.at_ns for event in history)


def test_displayed_name_finds_the_path_by_its_ending_in_either_spelling(world: World) -> None:
    world.find(b"a/\xff.pdf", b"a/x.pdf", "b/e\u0301.pdf".encode())
    ledger = world.ledger
    assert ledger.find_displayed("a/x.pdf", 10) == [PoolPath(b"a/x.pdf")]
    assert ledger.find_displayed("\\xff.pdf", 10) == [PoolPath(b"a/\xff.pdf")]
    assert ledger.find_displayed("b/é.pdf", 10) == [PoolPath("b/e\u0301.pdf".encode())]
    assert len(ledger.find_displayed(".pdf", 10)) == 3
    assert len(ledger.find_displayed(".pdf", 2)) == 2
    assert ledger.find_displayed("y.pdf", 10) == []


# --- stuck and retry -------------------------------------------------------------------------------------------------


def stuck_world(world: World) -> World:
    """Files that failed or are blocked in several folders, one that is done and one that is ready."""
    names = {
        b"top": Failure.ENCRYPTED,
        b"a/1": Failure.ENCRYPTED,
        b"a/b/2": Failure.CORRUPT,
        b"a0/3": Failure.CORRUPT,
        b"a-/4": Failure.TRANSIENT,
    }
    world.ready(*names, b"a/fine")
    for claim in reversed(world.take()):
        if claim.path.raw in names:
            world.time.move(1)
            world.fail(claim, names[claim.path.raw])
        else:
            world.finish(claim, End.DONE)
    world.ready(b"c/waiting")
    return world


def test_stuck_lists_failed_and_blocked_files_newest_first(world: World) -> None:
    stuck_world(world)
    views = world.ledger.stuck(10)
    assert {view.path.raw for view in views} == {b"top", b"a/1", b"a/b/2", b"a0/3", b"a-/4"}
    at = [view.history[-1].at_ns for view in views]
    assert at == sorted(at, reverse=True)
    assert world.ledger.stuck(2) == views[:2]


def test_stuck_file_with_two_tasks_is_listed_once(world: World) -> None:
    world.ready(Item(b"x", tasks=(TEXT, TaskPlan("checksum", "1"))), b"y")
    for claim in world.take():
        world.fail(claim, Failure.CORRUPT)
    assert len(world.ledger.stuck(10)) == 2
    assert len(world.ledger.stuck(1)) == 1


@pytest.mark.parametrize(
    ("selection", "freed"),
    [
        (Selection(), {b"top", b"a/1", b"a/b/2", b"a0/3", b"a-/4"}),
        (Selection(below=PoolPath(b"")), {b"top", b"a/1", b"a/b/2", b"a0/3", b"a-/4"}),
        (Selection(below=PoolPath(b"a")), {b"a/1", b"a/b/2"}),
        (Selection(below=PoolPath(b"a/b")), {b"a/b/2"}),
        (Selection(below=PoolPath(b"a/1")), {b"a/1"}),
        (Selection(below=PoolPath(b"top")), {b"top"}),
        (Selection(below=PoolPath(b"a/fine")), set()),
        (Selection(below=PoolPath(b"nowhere")), set()),
        (Selection(failure=Failure.ENCRYPTED), {b"top", b"a/1"}),
        (Selection(failure=Failure.TRANSIENT), {b"a-/4"}),
        (Selection(below=PoolPath(b"a"), failure=Failure.ENCRYPTED), {b"a/1"}),
    ],
)
def test_retry_frees_what_was_selected(world: World, selection: Selection, freed: set[bytes]) -> None:
    stuck_world(world)
    assert world.ledger.retry(selection) == len(freed)
    for path in (b"top", b"a/1", b"a/b/2", b"a0/3", b"a-/4"):
        assert (world.state(path) is State.SETTLING) == (path in freed)
    assert (world.state(b"a/fine"), world.state(b"c/waiting")) == (State.DONE, State.READY)


def test_retried_task_passes_the_gate_and_has_all_its_attempts(world: World) -> None:
    world.ready(b"x")
    for _ in range(3):
        world.fail(world.take()[0])
        world.time.move(3600)
    assert world.state(b"x") is State.BLOCKED
    assert world.ledger.retry(Selection()) == 1
    assert world.take() == ()
    world.rest()
    (claim,) = world.take(1, EVERYTHING)
    assert claim.attempts == 1


def test_retried_poison_is_still_claimed_alone(world: World) -> None:
    world.ready(b"x")
    for _ in range(3):
        world.take()
        world.ledger.recover([OWNER])
    world.ledger.retry(Selection())
    world.rest()
    assert world.take(with_risky=False) == ()


def test_retry_is_told_in_the_history(world: World) -> None:
    world.fail(world.held(b"x"), Failure.CORRUPT)
    world.ledger.retry(Selection())
    assert world.view(b"x").history[-1].detail == "retried by a person"


def test_another_instance_sees_and_does_the_same(world: World) -> None:
    world.held(b"x")
    other = world.ledger.another()
    assert other.claiming_owners() == [OWNER]
    other.recover([OWNER])
    assert world.state(b"x") is State.READY
    other.close()
