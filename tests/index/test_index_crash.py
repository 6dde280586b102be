"""Dying and failing anywhere, and readers beside a publisher: old or new, never half. Every harness that looks for
violations is first shown one."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from index_processes import KILLED, LAST_CHANGES, LETTERS, act, read_until
from index_samples import document, names_found, publish_next

from tidegate.index import Change, Searcher, Since, collect, current, publish, start_change
from tidegate.pool import disk

CHILD = [sys.executable, str(Path(__file__).with_name("index_processes.py"))]
OLD = {b"file-1.txt", b"file-2.txt"}
NEW = {b"file-2.txt", b"file-3.txt"}


def violation(root: Path, states: dict[int, tuple[str, set[bytes]]]) -> str:
    """What is wrong with the index, empty where it is one of `states`: by change, a query and all that it finds."""
    snapshot = current(root)
    if snapshot is None:
        return "there is no snapshot"
    if snapshot.change not in states:
        return f"change {snapshot.change} is half applied"
    word, names = states[snapshot.change]
    with Searcher(root) as searcher:
        if searcher.snapshot != snapshot:
            return "the current snapshot does not open"
        if not names_found(searcher, word) == names_found(searcher, "-nothing") == names:
            return f"snapshot {snapshot.number} holds {names_found(searcher, '-nothing')}"
    return ""


STATES = {2: ("old", OLD), 12: ("new", NEW)}


def template(root: Path) -> Path:
    publish_next(root, document(1, "old"), document(2, "old"))
    return root


def finish(root: Path) -> None:
    """What the next participant does: publish again, from where the index says it is."""
    since = start_change(root)
    rest = [change for change in (*LAST_CHANGES, (20, document(4, "next"))) if change[0] > since]
    assert publish(root, rest, now_ns=3, since=Since(since)) is not None
    assert not [name for name in disk.list_names(root) if name.startswith(("build-", "dropped-"))]
    with Searcher(root) as searcher:
        assert names_found(searcher, "new OR next OR old") == NEW | {b"file-4.txt"}


def crash_everywhere(what: str, model: Path, work: Path) -> list[Path]:
    """The folders that processes left which died at their first, second, … operation; the last one's did not die."""
    work.mkdir()
    done = subprocess.run([*CHILD, "crash", what, model, work], capture_output=True, text=True, check=True)
    codes = [int(line) for line in done.stdout.split()]
    assert codes[-1] == 0
    assert set(codes[:-1]) == {KILLED}
    return [work / str(number) for number in range(1, len(codes) + 1)]


def test_publisher_killed_at_any_operation_leaves_the_old_or_the_new_snapshot(quick_path: Path) -> None:
    roots = crash_everywhere("publish", template(quick_path / "model"), quick_path / "work")
    reached = set()
    for root in roots:
        assert violation(root, STATES) == "", root
        reached.add(start_change(root))
        finish(root)
    assert len(roots) > 50
    assert reached == {2, 12}


def test_collector_killed_at_any_operation_removes_only_what_may_go(quick_path: Path) -> None:
    model = template(quick_path / "model")
    publish_next(model, document(9, "between"))
    act("publish", model)
    (model / "build-dead").mkdir()
    states = {12: ("new OR between", NEW | {b"file-9.txt"})}
    roots = crash_everywhere("collect", model, quick_path / "work")
    for root in roots:
        assert violation(root, states) == "", root
        collect(root, keep=1)
        assert violation(root, states) == "", root
        assert disk.list_names(root) == ["3", "publish.lock"]
    assert len(roots) > 10


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
def test_publish_that_fails_at_any_operation_leaves_the_old_or_the_new_snapshot(quick_path: Path, code: int) -> None:
    model, failed = template(quick_path / "model"), True
    step = 1 if code == errno.EIO else 7
    number = 1
    while failed:
        root, operations = quick_path / str(number), 0

        def hook(operation: str, target: object, at: int = number) -> None:
            nonlocal operations
            operations += 1
            if operations == at:
                raise OSError(code, "as the harness wished")

        shutil.copytree(model, root)
        failed = False
        with disk.watch_operations(hook):
            try:
                act("publish", root)
            except OSError:
                failed = True
        assert violation(root, STATES) == "", f"operation {number}"
        if number % 4 == 0 or not failed:
            finish(root)
        shutil.rmtree(root, ignore_errors=True)  # a thread of tantivy may still be closing what it had open
        number += step
    assert number > 50


def test_harness_sees_a_half_applied_a_lost_and_a_broken_snapshot(quick_path: Path) -> None:
    root = template(quick_path / "model")
    assert violation(root, STATES) == ""
    publish(root, [(11, document(2, "new"))], now_ns=1)
    assert "half applied" in violation(root, STATES)
    publish(root, [(12, document(3, "new"))], now_ns=1)
    assert "holds" in violation(root, STATES)
    next((root / "3").glob("*.term")).unlink()
    assert "does not open" in violation(root, STATES)
    shutil.rmtree(root, ignore_errors=True)  # a thread of tantivy may still be closing what it had open
    assert "no snapshot" in violation(root, STATES)


# --- a reader beside a publisher -------------------------------------------------------------------------------------


def generation(number: int) -> list[Change]:
    return [(number, document(file, "letter", title=str(number))) for file in range(LETTERS)]


def torn(lines: list[str]) -> list[str]:
    """The observations that show a half generation, or one older than the one before."""
    wrong, before = [], (0, 0)
    for line in lines:
        snapshot, *titles = map(int, line.split())
        if len(titles) != LETTERS or len(set(titles)) != 1 or (snapshot, titles[0]) <= before:
            wrong.append(line)
        before = (snapshot, titles[0] if titles else 0)
    return wrong


def test_looping_reader_sees_only_whole_generations_and_never_goes_back(quick_path: Path) -> None:
    publish(quick_path, generation(1), now_ns=1)
    with subprocess.Popen([*CHILD, "read", quick_path, "100"], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        for number in range(2, 101):
            assert publish(quick_path, generation(number), now_ns=1, memory_bytes=15_000_000) is not None
            collect(quick_path, keep=1)
        lines = reader.stdout.read().splitlines()
    assert reader.returncode == 0
    assert torn(lines) == []
    assert len(lines) > 10
    assert lines[-1] == f"100{' 100' * LETTERS}"


def test_that_reader_would_see_a_torn_generation(quick_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(quick_path, generation(1), now_ns=1)
    publish(quick_path, generation(2)[:3], now_ns=1)
    read_until(quick_path, 2)
    assert torn(capsys.readouterr().out.splitlines()[1:]) == ["2 1 1 2 2 2"]
    assert torn(["1 1 1 1 1", "2 2 2 2 2 2", "1 1 1 1 1 1"]) == ["1 1 1 1 1", "1 1 1 1 1 1"]
