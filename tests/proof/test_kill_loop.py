"""Kill anything at any moment, start again: each file one accepted result, readers see whole snapshots only."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kill_loop import Loop, run_loop, violations


@pytest.mark.proof
@pytest.mark.timeout(1200)
@pytest.mark.fault("F1")
def test_fifty_kills_of_a_run_of_five_thousand_files_lose_and_double_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    wrong, line = run_loop(tmp_path, 5000, 50, seed)
    print(line)
    assert wrong == [], line


@pytest.mark.fault("F1")
def test_a_few_kills_of_a_small_run_lose_and_double_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    wrong, line = run_loop(tmp_path, 300, 6, seed, longest_s=2.5)
    assert wrong == [], line


def test_the_kill_loop_goes_red_when_recovery_is_off(tmp_path: Path) -> None:
    loop = Loop(tmp_path, 60, ("--without-recovery",))
    loop.fill()
    loop.prepare()
    before = loop.picture()
    loop.kill_while_claimed()
    loop.finish()
    wrong = violations(loop, before)
    assert any(one.startswith("claims:") for one in wrong), wrong
    assert any(one.startswith("files with one accepted result:") for one in wrong), wrong


def test_the_kill_loop_goes_red_when_a_source_is_touched(tmp_path: Path) -> None:
    loop = Loop(tmp_path, 10)
    loop.fill()
    loop.prepare()
    before = loop.picture()
    loop.finish()
    assert violations(loop, before) == []
    next(loop.pool.rglob("*.txt")).touch()
    assert violations(loop, before) == ["sources untouched: False, not True"]
