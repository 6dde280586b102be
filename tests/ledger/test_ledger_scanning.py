"""Registering what a scan saw: new, changed, refreshed and returned files, and who was first."""

from __future__ import annotations

import pytest
from ledger_samples import TEXT, Item, World

from tidegate.errors import Failure
from tidegate.ledger import End, FolderChange, Presence, State, TaskPlan
from tidegate.pool import Kind, PoolPath

ODD_NAMES = [
    b"\xff\xfe.pdf",
    "é.txt".encode(),
    "e\u0301.txt".encode(),
    b"line\nbreak",
    b"tail ",
    b"dot.",
    b" ",
    b"\x01\x7f",
    "\u202egpj.exe".encode(),
    b"x" * 255,
    b"%s'\";--",
    b"CON",
    "🙂".encode(),
]


def test_unknown_folder_has_no_signature_and_no_files(world: World) -> None:
    assert world.ledger.signature(PoolPath(b"nowhere")) is None
    assert dict(world.ledger.known_files(PoolPath(b"nowhere"))) == {}


def test_new_file_is_known_with_its_stamp_and_settles(world: World) -> None:
    item = Item(b"a/x.pdf", size=7, mtime_ns=-5, ctime_ns=1 << 62, inode=-1)
    world.find(item)
    known = world.ledger.known_files(PoolPath(b"a"))[b"x.pdf"]
    assert (known.kind, known.stamp, known.plan_key) == (Kind.FILE, item.stamp, "text@1")
    assert known.presence is Presence.PRESENT
    assert world.state(b"a/x.pdf") is State.SETTLING


def test_signature_is_the_one_of_the_last_applied_change(world: World) -> None:
    folder = PoolPath(b"a")
    assert world.ledger.register([FolderChange(folder, None, b"one")]) == 1
    assert world.ledger.signature(folder) == b"one"
    assert world.ledger.register([FolderChange(folder, b"one", b"two")]) == 1
    assert world.ledger.signature(folder) == b"two"


def test_folder_that_another_scanner_wrote_first_is_left_to_the_next_scan(world: World) -> None:
    folder, seen = PoolPath(b"a"), Item(b"a/x").seen
    assert world.ledger.register([FolderChange(folder, None, b"one", new=(seen,))]) == 1
    late = [FolderChange(folder, None, b"two", new=(seen,)), FolderChange(PoolPath(b"b"), None, b"one")]
    assert world.ledger.register(late) == 1
    assert world.ledger.signature(folder) == b"one"
    assert len(world.ledger.known_files(folder)) == 1
    assert world.ledger.signature(PoolPath(b"b")) == b"one"


@pytest.mark.fault("F45")
@pytest.mark.parametrize("name", ODD_NAMES)
def test_names_of_any_bytes_come_back_as_they_were(world: World, name: bytes) -> None:
    path = b"odd/" + name
    claim = world.held(path)
    assert claim.path.raw == path
    assert world.finish(claim, End.DONE)
    assert world.view(path).path.raw == path
    assert list(world.ledger.known_files(PoolPath(b"odd"))) == [name]
    assert [file.path.raw for file in world.ledger.changes_after(0, 0, 10)] == [path]


def test_both_spellings_of_one_letter_are_two_files(world: World) -> None:
    world.ready("é".encode(), "e\u0301".encode())
    assert len(world.take()) == 2


@pytest.mark.parametrize("state", list(State))
def test_changed_file_starts_over_from_every_state(world: World, state: State) -> None:
    bring_to(world, b"x", state)
    world.rescan(Item(b"x", size=999))
    (task,) = world.view(b"x").tasks
    assert (task.state, task.attempts, task.failure, task.owner) == (State.SETTLING, 0, None, "")
    assert world.view(b"x").stamp.size == 999


def test_change_takes_the_claim_away(world: World) -> None:
    claim = world.held(b"x")
    world.rescan(Item(b"x", size=999))
    assert not world.finish(claim, End.DONE)
    assert world.ledger.renew("host:1:boot:aaaaaaaa", [claim]) == {claim.task}
    world.rest()
    (again,) = world.take()
    assert again.fence > claim.fence
    assert not world.finish(claim, End.DONE)
    assert world.finish(again, End.DONE)


def test_changed_plan_drops_unwanted_tasks_and_adds_wanted_ones(world: World) -> None:
    ocr, text2 = TaskPlan("ocr", "1"), TaskPlan("text", "2", "fast")
    world.ready(Item(b"x", tasks=(TEXT, TaskPlan("checksum", "1"))))
    world.rescan(Item(b"x", tasks=(text2, ocr)))
    tasks = world.view(b"x").tasks
    assert {task.plan for task in tasks} == {text2, ocr}
    assert {task.state for task in tasks} == {State.SETTLING}
    assert world.ledger.known_files(PoolPath(b""))[b"x"].plan_key == "text@2:fast+ocr@1"


def test_claim_of_a_dropped_task_never_finishes_a_later_task(world: World) -> None:
    old = world.held(b"x")
    world.rescan(Item(b"x", tasks=(TaskPlan("ocr", "1"),)))
    world.rest()
    (new,) = world.take()
    assert new.plan.processor == "ocr"
    assert (new.task, new.fence) != (old.task, old.fence)
    assert not world.finish(old, End.DONE)
    assert world.state(b"x") is State.CLAIMED


def test_last_end_is_kept_as_history_when_a_file_starts_over(world: World) -> None:
    world.finish(world.held(b"x"), End.DONE, reason="first version")
    world.rescan(Item(b"x", size=999))
    assert ("done", "first version") in [(event.event, event.detail) for event in world.view(b"x").history]


def test_refreshed_file_keeps_its_result(world: World) -> None:
    world.finish(world.held(b"x"), End.DONE)
    world.refresh(Item(b"x", ctime_ns=50, inode=7))
    assert world.state(b"x") is State.DONE
    assert world.view(b"x").stamp == Item(b"x", ctime_ns=50, inode=7).stamp


@pytest.mark.fault("F34")
def test_chmod_frees_a_task_that_was_blocked_for_permission(world: World) -> None:
    world.fail(world.held(b"x"), Failure.PERMISSION)
    world.fail(world.held(b"y/y"), Failure.ENCRYPTED)
    world.refresh(Item(b"x", ctime_ns=50))
    world.refresh(Item(b"y/y", ctime_ns=50))
    assert world.state(b"x") is State.SETTLING
    assert world.state(b"y/y") is State.BLOCKED
    world.rest()
    (claim,) = world.take()
    assert (claim.path.raw, claim.attempts, claim.stamp.ctime_ns) == (b"x", 1, 50)


def test_claim_that_reads_under_a_refreshed_stamp_is_lost(world: World) -> None:
    claim = world.held(b"x")
    world.refresh(Item(b"x", ctime_ns=50))
    assert not world.finish(claim, End.DONE)
    world.rest()
    (again,) = world.take()
    assert again.stamp.ctime_ns == 50


def test_returned_file_is_present_and_passes_the_gate_again(world: World) -> None:
    world.fail(world.held(b"x"), Failure.VANISHED)
    assert world.view(b"x").presence is Presence.SUSPECTED
    world.see_again(b"x")
    assert world.view(b"x").presence is Presence.PRESENT
    assert world.state(b"x") is State.SETTLING
    world.rest()
    assert len(world.take()) == 1


def test_returned_file_that_was_done_stays_done(world: World) -> None:
    world.finish(world.held(b"x"), End.DONE)
    before = world.ledger.changes_after(0, 0, 10)[0].change
    world.see_again(b"x")
    assert world.state(b"x") is State.DONE
    assert world.ledger.changes_after(0, 0, 10)[0].change > before


def bring_to(world: World, path: bytes, state: State) -> None:
    """A file whose task is in this state."""
    if state is State.SETTLING:
        world.find(path)
        return
    if state is State.READY:
        world.ready(path)
        return
    claim = world.held(path)
    match state:
        case State.FAILED:
            world.fail(claim)
        case State.BLOCKED:
            world.fail(claim, Failure.CORRUPT)
        case State.SKIPPED | State.DONE:
            world.finish(claim, End(state.value))
    assert world.state(path) is state
