"""Every file operation of a round fails once: afterwards a clean round reaches the full and right result."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from seam_round import FAULTS, Small, play, quick

from tidegate.pool import disk


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with quick(monkeypatch):
        yield


@pytest.fixture
def in_memory() -> Iterator[Path]:
    """A folder in memory: syncs would only wait for a disk that proves nothing more."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


def sweep(folder: Path, kind: str, *, first: int = 1, step: int = 1) -> tuple[int, list[str]]:
    """Plays with the fault ever later, until one ends before it strikes: how many struck, and all that was wrong."""
    at, struck, wrong = first, 0, []
    while True:
        one = folder / f"{at}"
        one.mkdir()
        has_struck, found = play(one, kind, at)
        shutil.rmtree(one)
        wrong += found
        if not has_struck:
            return struck, wrong
        struck, at = struck + 1, at + step


def test_without_a_fault_a_round_reaches_the_full_result(in_memory: Path) -> None:
    assert play(in_memory, "crash", 1 << 30) == (False, [])


@pytest.mark.proof
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.fault("F1 F13 F39 F52 F53 F57")
def test_every_operation_of_a_round_may_fail_once(in_memory: Path, kind: str) -> None:
    struck, wrong = sweep(in_memory, kind)
    print(f"{kind}: {struck} operations failed, {len(wrong)} violations")
    assert struck > 10
    assert wrong == []


@pytest.mark.parametrize(("kind", "first"), [(kind, 2 + 3 * number) for number, kind in enumerate(FAULTS)])
def test_a_sample_of_the_operations_of_a_round_may_fail_once(in_memory: Path, kind: str, first: int) -> None:
    struck, wrong = sweep(in_memory, kind, first=first, step=29 if kind != "short" else 5)
    assert struck > 2
    assert wrong == []


def test_the_sweep_goes_red_when_a_short_write_is_ignored(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    def write_once(descriptor: int, data: bytes | memoryview) -> None:
        cap = disk._seam("write", descriptor)
        os.write(descriptor, memoryview(data)[:cap])

    monkeypatch.setattr(disk, "write_all", write_once)
    _, wrong = sweep(in_memory, "short")
    assert wrong


def test_the_judge_sees_a_touched_source_and_a_second_acceptance(in_memory: Path) -> None:
    small = Small(in_memory)
    small.run()
    assert small.violations(0) == []
    (small.pool / "a.txt").touch()
    assert any(one.startswith("I1") for one in small.violations(0))
