"""The commands as a script sees them: exit codes, JSON, words, signals."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

STATES = ("settling", "ready", "claimed", "done", "skipped", "failed", "blocked")
COMMANDS = ["init", "run", "watch", "scan", "work", "publish", "search", "status", "why", "retry", "config", "doctor"]
HOSTILE = b"evil\x1b]0;owned\x07\x1b[31m\xe2\x80\xae\xff\n.txt"


def claims(state: Path) -> int:
    with contextlib.closing(sqlite3.connect(state / "ledger.db", timeout=30)) as db:
        return int(db.execute("SELECT count(*) FROM claim").fetchone()[0])


# --- exit codes ------------------------------------------------------------------------------------------------------


def test_0_all_well(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    done = tidegate("run")
    assert (done.returncode, done.stdout) == (0, "")
    assert "6 new" in done.stderr


def test_1_failed(tidegate: Any) -> None:
    done = tidegate("search", "x")
    assert done.returncode == 1
    assert "try:" in done.stderr


def test_2_usage_or_configuration(tidegate: Any) -> None:
    tidegate.configure("[scan]\nevry = 5\n")
    done = tidegate("run")
    assert done.returncode == 2
    assert "unknown key evry" in done.stderr
    assert "did you mean every?" in done.stderr
    tidegate.configure()
    for words in (
        ["nonsense"],
        ["run", "--nonsense"],
        ["search"],
        ["search", "x", "--since", "yesterday"],
        ["search", '"x'],
    ):
        assert tidegate(*words).returncode in (2, 1 if words[0] == "search" else 2), words
    assert tidegate("retry", "--class", "nonsense").returncode == 2
    assert tidegate("why", "unknown.txt").returncode == 2


def test_3_done_but_some_failed_or_are_blocked(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    (tidegate.pool / "empty.txt").touch()
    done = tidegate("run")
    assert done.returncode == 3
    assert "1 blocked" in done.stderr
    assert "tidegate status --stuck" in done.stderr


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_10_pool_unavailable(tidegate: Any, kind: str) -> None:
    tidegate.pool.rmdir()
    if kind == "file":
        tidegate.pool.write_text("x")
    done = tidegate("run")
    assert done.returncode == 10
    assert str(tidegate.pool) in done.stderr
    assert "try:" in done.stderr
    assert not tidegate.state.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.fault("F13")
def test_130_a_signal_ends_a_run_within_ten_seconds_with_its_claims_released(
    tidegate: Any, fill: Callable[..., None], number: signal.Signals
) -> None:
    fill(1500)
    with tidegate.start("run") as running:
        wait_for(lambda: (tidegate.state / "ledger.db").exists() and claims(tidegate.state) > 0, running)
        running.send_signal(number)
        _, said = running.communicate(timeout=10)
    assert running.returncode == 130
    assert claims(tidegate.state) == 0
    assert "Traceback" not in said
    assert not list((tidegate.state / "owners").iterdir())
    again = tidegate("run", "--json")
    assert again.returncode == 0
    assert json.loads(again.stdout)["processed"] > 0
    assert json.loads(tidegate("status", "--json").stdout)["files"]["done"] == 1500


def wait_for(what: Callable[[], bool], running: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 30
    while True:
        with contextlib.suppress(sqlite3.OperationalError):
            if what():
                return
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)


def test_watch_goes_on_until_a_signal(tidegate: Any, fill: Callable[..., None]) -> None:
    tidegate.configure('[scan]\nevery = "200ms"\n')
    fill(3)
    with tidegate.start("watch") as running:
        wait_for(lambda: (tidegate.state / "index" / "1").exists(), running)
        (tidegate.pool / "late.txt").write_text("a late arrival")
        wait_for(lambda: (tidegate.state / "index" / "2").exists(), running)
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=15)
    assert running.returncode == 130
    assert "Traceback" not in said
    assert json.loads(tidegate("search", "arrival", "--json").stdout)["total"] == 1


# --- JSON ------------------------------------------------------------------------------------------------------------


def test_run_json_is_one_object_of_the_design(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    said = json.loads(tidegate("run", "--json").stdout)
    assert list(said) == [
        "scanned", "new", "changed", "unchanged", "processed", "skipped", "failed", "blocked", "seconds",
    ]  # fmt: skip
    assert (said["scanned"], said["new"], said["processed"], said["failed"]) == (6, 6, 6, 0)
    for command in ("scan", "work", "publish"):
        assert list(json.loads(tidegate(command, "--json").stdout)) == list(said)


def test_status_json_is_the_object_of_the_design_and_its_states_add_up(
    tidegate: Any, fill: Callable[..., None]
) -> None:
    tidegate.configure('[[pool.folder]]\nmatch = "d0/**"\n')
    fill()
    (tidegate.pool / "empty.txt").touch()
    tidegate("run")
    said = json.loads(tidegate("status", "--json").stdout)
    assert list(said) == ["files", "bytes", "done_files_ratio", "done_bytes_ratio", "snapshot", "folders", "lease"]
    assert list(said["files"]) == ["total", *STATES, "suspected", "missing"]
    assert sum(said["files"][state] for state in STATES) == said["files"]["total"] == 7
    assert set(said["bytes"]) == {"total", "done"}
    assert set(said["snapshot"]) == {"id", "published_at", "documents"}
    assert {folder["match"]: folder["files"] for folder in said["folders"]} == {"": 5, "d0/**": 2}
    assert said["done_files_ratio"] == round(6 / 7, 6)
    stuck = json.loads(tidegate("status", "--json", "--stuck").stdout)["stuck"]
    assert [(one["path"], one["state"]) for one in stuck] == [("empty.txt", "blocked")]


def test_search_json_is_the_object_of_the_design(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    tidegate("run")
    said = json.loads(tidegate("search", "合同", "--json", "--limit", "2").stdout)
    assert list(said) == ["snapshot", "total", "hits"]
    assert (said["snapshot"], said["total"], len(said["hits"])) == (1, 6, 2)
    assert list(said["hits"][0]) == ["path", "score", "snippet"]
    below = json.loads(tidegate("search", "合同", "--json", "--folder", "d1").stdout)
    assert {hit["path"] for hit in below["hits"]} == {"d1/1.txt", "d1/4.txt"}


def test_why_json_is_the_object_of_the_design(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    tidegate("run")
    said = json.loads(tidegate("why", "d1/1.txt", "--json").stdout)
    assert list(said) == ["path", "state", "presence", "reason", "attempts", "digest", "stamp", "history", "next"]
    assert (said["path"], said["state"], said["presence"], said["attempts"]) == ("d1/1.txt", "done", "present", 1)
    assert set(said["stamp"]) == {"size", "mtime_ns", "ctime_ns", "inode"}
    assert said["digest"].startswith("sha256:")
    assert said["reason"]
    assert [event["event"] for event in said["history"]] == ["done"]


def test_retry_and_config_and_doctor_speak_json(tidegate: Any) -> None:
    (tidegate.pool / "empty.txt").touch()
    tidegate("run")
    assert json.loads(tidegate("retry", "--json", "--class", "corrupt").stdout) == {"retried": 0}
    assert json.loads(tidegate("retry", "--json").stdout) == {"retried": 1}
    said = json.loads(tidegate("config", "--json").stdout)
    assert said["source"] == str(tidegate.config)
    assert said["settings"]["pool.settle"] == 0.05
    assert said["settings"]["work.workers"] == 2
    doctor = tidegate("doctor", "--json")
    assert doctor.returncode == 0
    assert {"pool", "state", "python", "landlock"} <= {one["name"] for one in json.loads(doctor.stdout)}


# --- names -----------------------------------------------------------------------------------------------------------


def test_hostile_names_and_texts_reach_no_terminal_and_break_no_json(tidegate: Any) -> None:
    root = os.fsencode(tidegate.pool)
    Path(os.fsdecode(root + b"/" + HOSTILE)).write_text("findable \x1b]0;owned\x07 text")
    Path(os.fsdecode(root + b"/" + HOSTILE + b".pdf")).write_bytes(b"%PDF-1.4 \x1b[31m")
    tidegate("run")
    for words in (["search", "findable"], ["status", "--stuck"], ["why", "evil"], ["run"], ["config"]):
        done = tidegate(*words)
        for stream in (done.stdout, done.stderr):
            assert not set(stream) & {"\x1b", "\x07", "\u202e"}, words
    hit = json.loads(tidegate("search", "findable", "--json").stdout)["hits"][0]
    assert hit["path"] == r"evil\x1b]0;owned\x07\x1b[31m\u202e\xff\x0a.txt"
    assert json.loads(tidegate("why", hit["path"], "--json").stdout)["path"] == hit["path"]
    shown = tidegate("why", hit["path"])
    assert shown.returncode == 0
    assert not set(shown.stdout) & {"\x1b", "\x07", "\u202e"}
    listed = json.loads(tidegate("status", "--stuck", "--json").stdout)["stuck"]
    assert [one["path"] for one in listed] == [hit["path"] + ".pdf"]


def test_a_reason_that_holds_escape_sequences_is_shown_without_them(tidegate: Any) -> None:
    (tidegate.pool / "empty.txt").touch()
    tidegate("run")
    with contextlib.closing(sqlite3.connect(tidegate.state / "ledger.db")) as db:
        db.execute("UPDATE task SET reason = ?", ("\x1b]0;owned\x07\u202ereason",))
        db.execute("UPDATE history SET detail = ?", ("\x1b]0;owned\x07\u202edetail",))
        db.commit()
    for words in (["status", "--stuck"], ["why", "empty.txt"]):
        done = tidegate(*words)
        assert "reason" in done.stdout
        assert not set(done.stdout) & {"\x1b", "\x07", "\u202e"}, words


def test_why_takes_every_name_that_a_person_may_type(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    tidegate("run")
    inside = tidegate.pool / "d1"
    for name, cwd in (
        ("d1/1.txt", tidegate.folder),
        ("pool/d1/1.txt", tidegate.folder),
        (str(inside / "1.txt"), tidegate.folder),
        ("1.txt", inside),
        ("../d1/1.txt", inside),
        ("1.txt", tidegate.folder),
    ):
        done = tidegate("why", name, "--json", cwd=cwd)
        assert done.returncode == 0, (name, done.stderr)
        assert json.loads(done.stdout)["path"] == "d1/1.txt", name


def test_why_says_that_an_unknown_file_is_ignored_and_for_what_reason(tidegate: Any, fill: Callable[..., None]) -> None:
    fill()
    (tidegate.pool / "half.part").touch()
    tidegate("run")
    done = tidegate("why", "half.part")
    assert done.returncode == 2
    assert "still being transferred" in done.stderr


def test_a_pool_path_of_any_bytes_is_worked_off_and_shown(tidegate: Any) -> None:
    pool = Path(os.fsdecode(os.fsencode(tidegate.folder) + b"/caf\xe9\x1b[31m"))
    pool.mkdir()
    (pool / "a.txt").write_text("words")
    elsewhere = tidegate.folder / "elsewhere"
    elsewhere.mkdir()
    more = {"cwd": elsewhere, "text": False}
    tidegate.config.unlink()

    def ask(*words: Any) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*tidegate.arguments(), *words], capture_output=True, timeout=60, env=tidegate.environment, cwd=more["cwd"]
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode("utf-8", "replace")
        assert b"\x1b" not in done.stdout + done.stderr
        return done

    name = os.fsencode(pool)
    assert ask(b"run", name).returncode == 0
    for words in (
        [b"config", b"--pool", name],
        [b"config", b"--json", b"--pool", name],
        [b"status", name],
        [b"doctor", name],
        [b"doctor", b"--json", name],
    ):
        assert ask(*words).returncode == 0, words
    assert ask(b"search", b"words", b"--pool", name).returncode == 0
    assert ask(b"search", b"words").returncode == 0, "the one pool that is known"
    assert ask(b"run", name + b"-missing").returncode == 10
    assert ask(b"init", name).returncode == 2
    assert not (elsewhere / "tidegate.toml").exists()


# --- talk ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_a_sentence_and_two_examples(tidegate: Any, command: str) -> None:
    done = tidegate(command, "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert done.stdout.count(f"tidegate {command}") >= 2 + 1


def test_every_command_of_the_design_is_there(tidegate: Any) -> None:
    said = tidegate("--help").stdout
    assert all(f" {command} " in said for command in COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed(tidegate: Any, shell: str) -> None:
    done = tidegate("--show-completion", shell)
    if done.returncode:  # typer asks the parent process for the shell where it takes no argument
        complete = tidegate.environment | {"_TIDEGATE_COMPLETE": f"source_{shell}"}
        done = tidegate(env=complete)
    assert "_TIDEGATE_COMPLETE" in done.stdout or "tidegate" in done.stdout
    assert done.stdout


@pytest.mark.parametrize(
    "words", [["status"], ["search", "number", "--limit", "1000"], ["config"], ["search", "number", "--json"]]
)
def test_a_pipe_that_closes_early_is_no_error_in_words(
    tidegate: Any, fill: Callable[..., None], words: list[str]
) -> None:
    fill(300)
    tidegate("run")
    with tidegate.start(*words, bufsize=0) as running:
        running.stdout.close()
        said = running.stderr.read()
        running.wait(30)
    assert "Traceback" not in said
    assert "Exception" not in said


def test_a_state_folder_that_cannot_be_used_is_named(tidegate: Any) -> None:
    tidegate.state.write_text("x")
    done = tidegate("run")
    assert done.returncode == 1
    assert str(tidegate.state) in done.stderr
    assert "--state" in done.stderr


def test_outputs_that_cannot_be_written_are_named(tidegate: Any, fill: Callable[..., None]) -> None:
    tidegate.configure('[outputs]\npath = "results"\n')
    (tidegate.folder / "results").write_text("x")
    fill(2)
    done = tidegate("run")
    assert done.returncode == 1
    assert "results" in done.stderr


def test_init_writes_a_file_that_run_uses_and_never_overwrites(tidegate: Any, fill: Callable[..., None]) -> None:
    tidegate.config.unlink()
    fill(2)
    done = tidegate("init", "pool")
    assert done.returncode == 0
    assert done.stdout == ""
    assert tidegate("init", "pool").returncode == 2
    assert tidegate("init", "nowhere", "--config", "x.toml").returncode == 2
    assert tidegate("init", "pool", "--config", "pool/x.toml").returncode == 2
    assert tidegate("run", "--state", "state").returncode == 0
    assert (tidegate.state / "ledger.db").exists()


def test_the_state_folder_comes_from_the_environment_too(tidegate: Any, fill: Callable[..., None]) -> None:
    tidegate.config.unlink()
    fill(1)
    more = tidegate.environment | {"TIDEGATE_STATE": str(tidegate.folder / "told")}
    assert tidegate("run", "pool", env=more).returncode == 0
    assert (tidegate.folder / "told" / "ledger.db").exists()
