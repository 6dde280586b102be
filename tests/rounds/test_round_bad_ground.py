"""Pools and states that are missing, damaged, newer or in the wrong place."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate.config import Environment, known_pools
from tidegate.errors import LedgerCorrupt, LedgerNewer, PoolUnavailable, StateError, TidegateError
from tidegate.gate import Gate
from tidegate.ledger import End
from tidegate.ledger.home import remember_pool
from tidegate.pool import disk
from tidegate.processing import supervisor


def fill(pool: Any, count: int = 8) -> None:
    for number in range(count):
        pool.write(f"d{number % 3}/{number}.txt", f"合同 number {number}")


def damage(state: Path, how: str) -> None:
    ledger = state / "ledger.db"
    for ending in ("-wal", "-shm"):
        Path(f"{ledger}{ending}").unlink(missing_ok=True)
    match how:
        case "empty":
            ledger.write_bytes(b"")
        case "noise":
            ledger.write_bytes(b"noise" * 4000)
        case "cut":
            os.truncate(ledger, 5000)
        case "deleted":
            ledger.unlink()


@pytest.mark.fault("F55")
@pytest.mark.parametrize("how", ["empty", "noise", "cut", "deleted"])
def test_a_damaged_ledger_is_put_aside_and_its_results_come_back_without_extraction(
    pool: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(pool)
    with pool.gate() as gate:
        first = gate.run().snapshot
        pool.write("late.txt", "a late one")
        second = gate.run().snapshot
    assert first is not None
    assert second is not None
    damage(pool.state, how)
    extracted: list[object] = []
    take = supervisor.Supervisor._take

    def count(self: Any, child: Any, message: Any) -> None:
        if type(message).__name__ == "Extracted":
            extracted.append(message)
        take(self, child, message)

    monkeypatch.setattr(supervisor.Supervisor, "_take", count)
    pool.write("newest.txt", "came with the crash")
    with pool.gate() as gate:
        summary = gate.run()
        assert (gate.put_aside is not None) == (how != "deleted")
        assert gate.put_aside is None or gate.put_aside.exists()
        assert len(extracted) == 1, "only the new file"
        assert summary.work.ends == {End.SKIPPED: 9, End.DONE: 1}
        assert summary.snapshot is not None
        assert summary.snapshot.number > second.number
        assert summary.snapshot.documents == 10
        assert gate.search("合同").total == 8
        assert {hit.path for hit in gate.search("late").hits} == {"late.txt"}


@pytest.mark.fault("F55")
def test_a_page_damaged_inside_is_noticed_and_the_next_start_rebuilds(pool: Any) -> None:
    for number in range(300):
        pool.write(f"{number:03}{'x' * 100}.txt", f"number {number}")
    with pool.gate() as gate:
        gate.run()
    with pool.gate() as gate:
        gate.counts()
    with (pool.state / "ledger.db").open("r+b") as stream:
        for page in range(3, 40):
            stream.seek(page * 4096)
            stream.write(b"\xff" * 4096)
    for _ in range(3):
        try:
            with pool.gate() as gate:
                summary = gate.run()
            break
        except LedgerCorrupt:
            continue  # said once; the next start puts it aside
    assert summary.work.ends.total() == 300
    assert len(list(pool.state.glob("ledger-damaged-*.db"))) == 1
    with pool.gate() as gate:
        assert gate.search("number").total == 300


def test_a_ledger_of_a_newer_tidegate_is_left_alone(pool: Any) -> None:
    fill(pool)
    with pool.gate() as gate:
        gate.run()
    import sqlite3

    db = sqlite3.connect(pool.state / "ledger.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    before = (pool.state / "ledger.db").read_bytes()
    with pool.gate() as gate, pytest.raises(LedgerNewer, match="format 99") as caught:
        gate.run()
    assert "update" in caught.value.hint
    assert (pool.state / "ledger.db").read_bytes() == before


def test_a_pack_that_is_gone_costs_its_text_and_nothing_else(pool: Any) -> None:
    fill(pool)
    with pool.gate(index={"build": False}) as gate:
        gate.run()
    for pack in pool.state.rglob("*.jsonl.gz"):
        pack.unlink()
    with pool.gate() as gate:
        summary = gate.run()
        assert summary.snapshot is not None
        assert summary.snapshot.documents == 8


@pytest.mark.parametrize(
    ("make", "words"), [("missing", "does not exist"), ("file", "is not a folder"), ("dangling", "does not exist")]
)
def test_a_pool_that_is_none_is_refused_before_anything_is_made(pool: Any, make: str, words: str) -> None:
    pool.path.rmdir()
    if make == "file":
        pool.path.write_text("x")
    if make == "dangling":
        pool.path.symlink_to("nowhere")
    with pool.gate() as gate, pytest.raises(PoolUnavailable, match=words):
        gate.run()
    assert not pool.state.exists()


def test_an_empty_pool_is_fine_at_first_and_suspicious_later(pool: Any) -> None:
    said: list[str] = []
    from tidegate.rounds import Hooks

    with pool.gate() as gate:
        assert gate.run(Hooks(note=said.append)).scan.files == 0
        assert any("mounted" in sentence for sentence in said)
        fill(pool)
        gate.run()
        pool.path.rename(pool.path.with_name("moved"))
        pool.path.mkdir()
    with pool.gate() as gate:
        with pytest.raises(PoolUnavailable, match="empty"):
            gate.run()
        assert gate.search("合同").total == 8
    assert set(pool.states().values()) == {"done"}


def test_an_unreadable_pool_is_refused_in_words(pool: Any, as_nobody: Callable[[Callable[[], Any]], int]) -> None:
    open_to_nobody(pool)
    pool.path.chmod(0o000)
    os.chown(pool.path, 65534, 65534)

    def run() -> None:
        with pool.gate() as gate, pytest.raises(PoolUnavailable, match="cannot be opened: Permission denied"):
            gate.run()

    assert as_nobody(run) == 0


def test_an_unwritable_state_folder_is_refused_in_words(
    pool: Any, as_nobody: Callable[[Callable[[], Any]], int]
) -> None:
    open_to_nobody(pool)
    pool.state.mkdir(mode=0o755)

    def run() -> None:
        with pool.gate() as gate, pytest.raises(StateError, match="state") as caught:
            gate.run()
        assert caught.value.hint

    assert as_nobody(run) == 0


def open_to_nobody(pool: Any) -> None:
    for parent in pool.path.parents:
        if parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)


def test_a_state_that_is_a_file_is_refused_in_words(pool: Any) -> None:
    pool.state.write_text("x")
    with pool.gate() as gate, pytest.raises(TidegateError) as caught:
        gate.run()
    assert str(pool.state) in str(caught.value)


@pytest.mark.parametrize("inside", ["", "a", "a/b"])
def test_a_state_inside_the_pool_is_refused_and_nothing_is_made(pool: Any, inside: str) -> None:
    with pool.gate(pool={"state": pool.path / inside}) as gate, pytest.raises(StateError, match="lies inside the pool"):
        gate.run()
    assert list(pool.path.iterdir()) == []


def test_a_state_inside_the_pool_by_way_of_a_link_is_refused(pool: Any, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(pool.path)
    with pool.gate(pool={"state": tmp_path / "link" / "s"}) as gate, pytest.raises(StateError, match="inside the pool"):
        gate.run()


@pytest.mark.parametrize("inside", ["", "results"])
def test_outputs_inside_the_pool_are_refused_and_nothing_is_made(pool: Any, inside: str) -> None:
    pool.write("a.txt")
    with pool.gate(outputs={"path": pool.path / inside}) as gate, pytest.raises(TidegateError, match="inside the pool"):
        gate.run()
    assert [path.name for path in pool.path.iterdir()] == ["a.txt"]


@pytest.mark.fault("F56")
@pytest.mark.parametrize("kind", ["nfs", "cifs", "smb2", "fuse", "0x123456"])
def test_rc13_a_state_on_a_network_mount_is_refused(pool: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.ledger.home.filesystem_of", lambda path: kind)
    with pool.gate() as gate, pytest.raises(StateError, match=f"lies on {kind}") as caught:
        gate.run()
    assert "local" in caught.value.hint
    assert not pool.state.exists()


def test_the_state_of_another_pool_is_refused(pool: Any, tmp_path: Path) -> None:
    fill(pool)
    with pool.gate() as gate:
        gate.run()
    (tmp_path / "other").mkdir()
    with pool.gate(pool={"path": tmp_path / "other"}) as gate, pytest.raises(StateError, match="belongs to the pool"):
        gate.run()


def test_whose_state_it_is_is_written_whole_or_not_at_all(pool: Any) -> None:
    pool.state.mkdir()
    for number in range(1, 30):

        def crash(operation: str, target: object, left: list[int] = [number]) -> None:  # noqa: B006
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

        try:
            with disk.watch_operations(crash):
                remember_pool(pool.state, pool.path)
            break
        except KeyboardInterrupt:
            marker = pool.state / "pool"
            assert not marker.exists() or marker.read_bytes() == os.fsencode(pool.path)
    else:
        pytest.fail("never came to an end")
    assert (pool.state / "pool").read_bytes() == os.fsencode(pool.path)
    assert [path.name for path in pool.state.iterdir() if "part" in path.name] == []


def test_a_marker_that_an_earlier_crash_left_empty_is_written_anew(pool: Any) -> None:
    pool.state.mkdir()
    (pool.state / "pool").touch()
    remember_pool(pool.state, pool.path)
    assert (pool.state / "pool").read_bytes() == os.fsencode(pool.path)


def test_first_starts_at_once_agree_on_the_marker(pool: Any) -> None:
    pool.state.mkdir()
    errors: list[BaseException] = []
    gathered = threading.Barrier(8)

    def start() -> None:
        gathered.wait()
        try:
            remember_pool(pool.state, pool.path)
        except BaseException as error:  # noqa: BLE001 - asserted below
            errors.append(error)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (pool.state / "pool").read_bytes() == os.fsencode(pool.path)


def test_a_pool_whose_name_is_no_utf8_is_worked_off(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    path.mkdir()
    (path / "a.txt").write_text("words")
    from tidegate.config import Config, PoolConfig, load

    environment = Environment(tmp_path, tmp_path / "home", tmp_path / "state")
    config = load(environment, pool=path)
    assert isinstance(config, Config)
    assert isinstance(config.pool, PoolConfig)
    import dataclasses

    quick = dataclasses.replace(config, pool=dataclasses.replace(config.pool, settle_s=0.05))
    with Gate(quick) as gate:
        assert gate.run().work.ends[End.DONE] == 1
        assert gate.search("words").total == 1
    assert known_pools(dataclasses.replace(environment, state_home=tmp_path)) == [path]
