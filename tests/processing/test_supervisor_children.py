"""Children that crash, hang, grow or never start: what it costs the file in hand, and nobody else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from workshop import PLANTS, Workshop, is_alive, wait_until

from tidegate.errors import StateError
from tidegate.ledger import End
from tidegate.processing.messages import Extracted

Open = Callable[..., Workshop]


@pytest.mark.parametrize(("plant", "words"), [("crash", "SIGSEGV"), ("exit", "exit status 7")])
def test_a_crash_charges_only_the_file_in_hand(open_workshop: Open, plant: str, words: str) -> None:
    shop = open_workshop()
    shop.ready(a=f"PLANT {plant}", **{f"f{number}": f"{number} " * 40 for number in range(6)})
    shop.work()
    assert shop.end("a") == ("failed", "crash", 1)
    assert words in shop.task("a").reason
    assert {shop.end(f"f{number}") for number in range(6)} == {("done", None, 1)}
    assert shop.supervisor.tallies.crashed_children == 1


def test_last_words_of_a_child_are_its_reason_without_what_steers_terminals(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT words")
    shop.work()
    assert shop.task("a").reason == "the child ended with exit status 7: \\x1b[31mtold at the end"


@pytest.mark.fault("F8")
def test_rc07_a_file_that_kills_its_child_each_time_is_blocked_after_its_attempts(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT crash", b="longer than that")
    shop.retry_all(4)
    assert shop.end("a") == ("blocked", "crash", 3)
    assert shop.end("b") == ("done", None, 1)
    assert shop.supervisor.tallies.crashed_children == 3


def test_a_child_killed_from_outside_charges_only_the_file_in_hand(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT sleep", b="words that wait behind it")
    child = shop.child_asleep()
    os.kill(child.process.pid, signal.SIGKILL)
    shop.work()
    assert shop.end("a")[:2] == ("failed", "memory")
    assert shop.end("b") == ("done", None, 1)


@pytest.mark.fault("F9")
def test_a_child_that_hangs_is_ended_at_the_deadline(open_workshop: Open) -> None:
    shop = open_workshop(deadline_s=3.0)
    shop.ready(a="PLANT sleep", b="words that wait behind it")
    child = shop.child_asleep()
    shop.work()
    assert shop.end("a")[:2] == ("failed", "timeout")
    assert "no progress within the deadline" in shop.task("a").reason
    assert not is_alive(child.process.pid)
    assert shop.end("b") == ("done", None, 1)


@pytest.mark.fault("F4")
def test_a_stopped_child_is_ended_at_the_deadline(open_workshop: Open) -> None:
    shop = open_workshop(deadline_s=3.0)
    shop.ready(a="PLANT sleep")
    child = shop.child_asleep()
    os.kill(child.process.pid, signal.SIGSTOP)
    shop.work()
    assert shop.end("a")[:2] == ("failed", "timeout")
    assert not is_alive(child.process.pid)


@pytest.mark.fault("F10")
def test_what_a_child_started_dies_with_it(open_workshop: Open) -> None:
    shop = open_workshop(deadline_s=3.0)
    shop.ready(a="PLANT grandchild")
    child = shop.child_asleep()
    (grandchild,) = Path(f"/proc/{child.process.pid}/task/{child.process.pid}/children").read_text().split()
    assert is_alive(int(grandchild))
    shop.work()
    assert shop.end("a")[:2] == ("failed", "timeout")
    wait_until(lambda: not is_alive(int(grandchild)))


@pytest.mark.fault("F8")
def test_a_file_that_needs_too_much_memory_fails_alone(open_workshop: Open) -> None:
    shop = open_workshop(memory=600_000_000)
    shop.ready(a="PLANT memory", **{f"f{number}": f"{number} " * 40 for number in range(4)})
    shop.work()
    assert shop.end("a") == ("failed", "memory", 1)
    assert {shop.end(f"f{number}") for number in range(4)} == {("done", None, 1)}
    assert shop.supervisor.tallies.crashed_children == 0


def test_an_error_in_a_parser_is_that_files_and_the_child_goes_on(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT error", b="longer than that")
    shop.work()
    assert shop.end("a") == ("failed", "crash", 1)
    assert shop.task("a").reason == "ValueError: planted"
    assert shop.supervisor.tallies.crashed_children == 0


def test_a_child_that_talks_nonsense_costs_its_file_only(open_workshop: Open) -> None:
    shop = open_workshop(deadline_s=5.0)
    shop.ready(a="PLANT garbage", b="longer than that")
    shop.work()
    assert shop.end("a")[0] == "failed"
    assert shop.end("b") == ("done", None, 1)


def test_children_that_cannot_start_are_an_error_in_words_and_no_files_fault(
    open_workshop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_workshop(workers=2)
    files = {f"f{number}": f"text {number}" for number in range(8)}
    shop.ready(**files)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(StateError, match="child processes cannot start") as caught:
        shop.work()
    assert "doctor" in caught.value.hint
    shop.supervisor.stop()
    assert {shop.end(name) for name in files} == {("ready", None, 0)}
    monkeypatch.undo()
    shop.hire()
    shop.work()
    assert {shop.end(name) for name in files} == {("done", None, 1)}


def test_a_child_is_replaced_after_its_share_of_files(open_workshop: Open) -> None:
    shop = open_workshop(replace_after=3)
    shop.ready(**{f"f{number}": f"PLANT pid {number}" for number in range(9)})
    shop.work()
    pids = list(shop.texts().values())
    assert len(pids) == 9
    assert {pids.count(pid) for pid in pids} == {3}
    assert shop.supervisor.tallies.crashed_children == 0


def test_while_one_extracts_a_content_the_death_of_one_that_waits_for_it_starts_no_second_extraction(
    open_workshop: Open,
) -> None:
    shop = open_workshop(workers=2)
    shop.ready(**{f"f{number}": "PLANT slow 4" for number in range(4)})
    shop.work(until=lambda: any(one.waiting for one in shop.supervisor._extracting.values()))
    (extraction,) = shop.supervisor._extracting.values()
    ((waiting, _),) = extraction.waiting
    os.kill(waiting.process.pid, signal.SIGKILL)
    shop.retry_all(2)
    assert len(shop.entries()) == 1
    assert sorted(shop.end(f"f{number}")[0] for number in range(4)) == ["done", "skipped", "skipped", "skipped"]


def test_when_an_extraction_fails_one_that_waited_for_it_takes_over(open_workshop: Open) -> None:
    shop = open_workshop(workers=2)
    shop.ready(**{f"f{number}": "PLANT slow 3" for number in range(3)})
    shop.work(until=lambda: any(one.waiting for one in shop.supervisor._extracting.values()))
    (extraction,) = shop.supervisor._extracting.values()
    busy = next(child for child in shop.supervisor._children if child.queue[0] is extraction.by)
    os.kill(busy.process.pid, signal.SIGKILL)
    shop.retry_all(2)
    assert len(shop.entries()) == 1
    assert sorted(shop.end(f"f{number}")[0] for number in range(3)) == ["done", "skipped", "skipped"]


def test_children_inherit_no_secret_and_no_variable_of_the_parent(
    open_workshop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEGATE_LEASE_TOKEN", "canary-6f1e")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary-6f1e")
    shop = open_workshop()
    shop.ready(a="PLANT environ")
    shop.work()
    seen = json.loads(shop.texts()["a.txt"])
    assert set(seen) <= {"LC_ALL", "PATH", "PYTHONPATH", "LC_CTYPE"}
    assert "canary-6f1e" not in json.dumps(seen)


def test_children_may_not_import_from_the_folder_that_the_program_was_started_in(
    open_workshop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_workshop()
    monkeypatch.chdir(shop.pool)
    monkeypatch.syspath_prepend(str(shop.pool))
    shop.ready(a="PLANT environ")
    shop.work()
    seen = json.loads(shop.texts()["a.txt"])
    assert str(shop.pool) not in seen["PYTHONPATH"].split(os.pathsep)


PARENT = """
import sys, time
from pathlib import Path
sys.path[:0] = [sys.argv[2], sys.argv[3]]
from workshop import Workshop
shop = Workshop(Path(sys.argv[1]))
shop.ready(a="PLANT sleep")
print(shop.child_asleep().process.pid, flush=True)
time.sleep(3600)
"""


@pytest.mark.fault("F1")
def test_children_die_with_a_killed_parent(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(PLANTS)
    here = str(Path(__file__).parent)
    arguments = [sys.executable, "-c", PARENT, str(tmp_path), here, str(tmp_path / "site")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_alive(child)
        parent.kill()
    wait_until(lambda: not is_alive(child), 5.0)


def test_an_answer_for_no_file_in_hand_is_passed_over(open_workshop: Open) -> None:
    shop = open_workshop()
    shop.ready(a="PLANT sleep")
    child = shop.child_asleep()
    shop.supervisor._take(child, Extracted(999_999, "forged", "plain", "", 0, 0, False))
    assert len(child.queue) == 1
    assert shop.supervisor.tallies.ends[End.DONE] == 0
