"""A participant that lost its claim writes nothing more: no pack, no row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidegate.config import Environment, load
from tidegate.errors import DiskFull
from tidegate.intake import Rules, Scanner, settle_due
from tidegate.ledger import NOTHING, Clock, End, SqliteLedger, Terms, Want
from tidegate.pool import open_pool
from tidegate.pool.settle import Patience
from tidegate.processing.children import ChildTerms
from tidegate.processing.drafts import Batch, Draft, Press, content_key, served_by_earlier
from tidegate.processing.messages import Extracted
from tidegate.processing.processors import VERSIONS
from tidegate.processing.supervisor import Supervisor, WorkTerms

CLAIM_FOR_S = 300.0


@dataclass
class Stage:
    """A pool of three ready text files, a ledger whose clock can be moved, and a supervisor named `ours`."""

    path: Path
    offset_ns: int = 0

    def __post_init__(self) -> None:
        pool = self.path / "pool"
        pool.mkdir()
        for number in range(3):
            (pool / f"{number}.txt").write_text(f"text number {number}")
        self.clock = Clock(lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) + self.offset_ns, time.time_ns, "boot")
        self.ledger, _ = SqliteLedger.open(self.path / "state", Terms(CLAIM_FOR_S, settle_s=0.0), self.clock)
        self.root = open_pool(pool)
        config = load(Environment(self.path, self.path), pool=pool, state=self.path / "state")
        Scanner(self.root, self.ledger, Rules(config, VERSIONS), lambda: False).run()
        settle_due(self.root, self.ledger, Patience(0.0, 60.0))
        terms = WorkTerms(1, ChildTerms(60.0, 2 * 10**9, 100), CLAIM_FOR_S)
        target = Press(self.path / "outputs", "pool", "host:1:boot:ours", "ours0000")
        self.supervisor = Supervisor(self.ledger, self.root, target, terms, self.clock, give_up)

    def packs(self) -> list[Path]:
        return [path for path in (self.path / "outputs").rglob("*") if path.is_file()]


def give_up(error: DiskFull) -> None:
    raise error


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.supervisor.stop()
    made.ledger.close()


def step_until(stage: Stage, drafts: int) -> None:
    """Step until that many drafts wait for the commit; bounded."""
    for _ in range(600):
        if len(stage.supervisor._batch.drafts) >= drafts:
            return
        stage.supervisor._feed()
        stage.supervisor._hear(0.1)
    raise AssertionError("the child did not finish")


def test_results_of_claims_that_another_took_over_write_no_pack_and_no_row(stage: Stage) -> None:
    stage.supervisor._commit()
    step_until(stage, 3)
    stage.offset_ns = int(CLAIM_FOR_S * 1.5e9)
    stage.ledger.recover([])
    theirs = stage.ledger.commit("host:2:boot:theirs", [], Want(32, 10**9))
    assert len(theirs.claims) == 1, "a task that may have killed a participant is claimed alone"
    others = stage.ledger.backlog().ready
    stage.supervisor._write(NOTHING)
    assert stage.supervisor.tallies.stale == 3
    assert stage.packs() == []
    assert (stage.ledger.backlog().claimed, stage.ledger.backlog().ready) == (1, others)


def test_results_of_claims_that_are_late_but_still_held_are_kept(stage: Stage) -> None:
    stage.supervisor._commit()
    step_until(stage, 3)
    stage.offset_ns = int(CLAIM_FOR_S * 1.5e9)
    stage.supervisor._commit()
    assert stage.supervisor.tallies.stale == 0
    assert stage.supervisor.tallies.ends[End.DONE] == 3
    assert len(stage.packs()) == 1


def test_a_file_that_counts_on_a_dropped_text_is_released(stage: Stage) -> None:
    first, second, _ = stage.ledger.commit("host:1:boot:ours", [], Want(32, 10**9)).claims
    batch, digest = Batch(), b"d" * 32
    text = Extracted(first.task, "text", "plain", "", 0, 0, False)
    batch.add(Draft(first, End.DONE, digest=digest, text=text))
    batch.add(served_by_earlier(second, digest))
    batch.drop(frozenset({first.task}))
    assert [(draft.claim, draft.end) for draft in batch.drafts] == [(second, End.RELEASED)]
    assert not batch.has_text(content_key(first, digest))
