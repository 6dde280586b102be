"""Claims that are lost, released or cannot be written: what becomes of results."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from workshop import OWNER, Workshop

from tidegate.errors import DiskFull
from tidegate.ledger import Want
from tidegate.pool import disk

Open = Callable[..., Workshop]


@pytest.mark.fault("F2")
def test_rc02_the_result_of_a_lost_claim_is_dropped_and_counted(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT slow 1")
    shop.work(until=lambda: shop.supervisor._extracting)
    other = shop.ledger.another()
    assert other.recover([OWNER]).ready == 1
    (claim,) = other.commit("host:2:boot:bbbbbbbb", [], Want(1, 100)).claims
    shop.work()
    assert shop.supervisor.tallies.stale == 1
    assert shop.supervisor.tallies.ends == {}
    view = shop.task("a")
    assert (view.state, view.owner) == ("claimed", "host:2:boot:bbbbbbbb")
    assert claim.attempts == 2
    other.close()


def test_renewal_moves_the_lease_and_a_lost_claim_ends_its_child(open_workshop: Open) -> None:
    shop = open_workshop(claim_for_s=3.0)
    shop.ready(a="PLANT sleep", b="words that wait behind it")
    shop.child_asleep()
    other = shop.ledger.another()
    other.recover([OWNER])
    other.commit("host:2:boot:bbbbbbbb", [], Want(1, 100))
    shop.work(until=lambda: not shop.supervisor._is_busy)
    assert shop.supervisor.tallies.ends.total() == 0 or shop.task("a").owner == "host:2:boot:bbbbbbbb"
    other.close()


def test_a_claim_that_is_worked_on_for_longer_than_its_lease_is_not_taken_by_others(open_workshop: Open) -> None:
    shop = open_workshop(claim_for_s=1.0)
    shop.ready(a="PLANT slow 3")
    shop.work()
    assert shop.end("a") == ("done", None, 1)
    assert shop.supervisor.tallies.stale == 0


@pytest.mark.fault("F13")
def test_a_stop_releases_what_is_in_hand_with_its_attempt(open_workshop: Open) -> None:
    shop = open_workshop(workers=2)
    shop.ready(a="PLANT sleep", b="PLANT sleep ", **{f"f{number}": f"{number} " * 40 for number in range(5)})
    shop.child_asleep()
    pids = [child.process.pid for child in shop.supervisor._children]
    shop.supervisor.stop()
    ends = {shop.end(name) for name in ("a", "b")}
    assert ends == {("ready", None, 0)}
    for number in range(5):
        assert shop.end(f"f{number}") in {("ready", None, 0), ("done", None, 1)}
    assert shop.ledger.claiming_owners() == []
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    shop.hire()


@pytest.mark.fault("F52")
@pytest.mark.parametrize("operation", ["create_new", "write", "sync", "rename_new", "make_folder"])
def test_rf26_a_full_disk_while_packing_pauses_and_goes_on(open_workshop: Open, operation: str) -> None:
    shop = open_workshop()
    shop.ready(a="one", b="two")
    left = [3]

    def full(done: str, target: object) -> None:
        if done == operation and left[0]:
            left[0] -= 1
            raise OSError(errno.ENOSPC, "No space left on device")

    with disk.watch_operations(full):
        shop.work()
    assert left == [0]
    assert len(shop.waited) == 3
    assert {shop.end("a"), shop.end("b")} == {("done", None, 1)}
    assert len(shop.entries()) == 2
    assert not list(shop.target.outputs.rglob("*.part"))


@pytest.mark.fault("F52")
def test_a_full_disk_under_the_ledger_pauses_and_goes_on(open_workshop: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = open_workshop()
    shop.ready(a="one", b="two")
    shop.work(until=lambda: shop.supervisor._claims or shop.supervisor._is_busy)
    commit, left = shop.ledger.commit, [3]

    def full(*given: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise DiskFull("planted")
        return commit(*given)

    monkeypatch.setattr(shop.ledger, "commit", full)
    shop.work()
    assert len(shop.waited) == 3
    assert {shop.end("a"), shop.end("b")} == {("done", None, 1)}
    assert len(shop.entries()) == 2, "what was packed once is not packed again"


@pytest.mark.fault("F52")
def test_a_stop_while_the_disk_is_full_releases_the_claims_with_their_attempts(open_workshop: Open) -> None:
    def give_up(error: DiskFull) -> None:
        raise error

    shop = open_workshop(wait_for_room=give_up)
    shop.ready(a="one", b="two")

    def full(done: str, target: object) -> None:
        if done == "create_new":
            raise OSError(errno.ENOSPC, "No space left on device")

    with disk.watch_operations(full):
        with pytest.raises(DiskFull):
            shop.work()
        with pytest.raises(DiskFull):
            shop.supervisor.stop()
    assert {shop.end("a"), shop.end("b")} == {("ready", None, 0)}
    shop.hire()
    shop.work()
    assert {shop.end("a"), shop.end("b")} == {("done", None, 1)}
