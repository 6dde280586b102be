"""Placing a file whole: the complete file under its name, or no such name, whatever fails."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from results_faults import FAULTS, at_every_operation, one_byte_at_a_time

from tidegate.pool import disk, place
from tidegate.pool.place import PART, clear_parts, make_durable_folder, place_file

PIECES = [b"first piece, ", memoryview(b"second piece"), b""]
WHOLE = b"first piece, second piece"


def test_file_stands_whole_under_its_name(tmp_path: Path) -> None:
    place_file(tmp_path / "x", PIECES, "n1")
    assert (tmp_path / "x").read_bytes() == WHOLE
    assert os.listdir(tmp_path) == ["x"]  # noqa: PTH208


def test_taken_name_is_refused_and_what_stands_there_stays(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        place_file(tmp_path / "x", PIECES, "n1")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("x", b"theirs")]


def test_order_is_write_sync_close_rename_sync_folder(tmp_path: Path) -> None:
    seen: list[str] = []
    with disk.watch_operations(lambda operation, _: seen.append(operation)):
        place_file(tmp_path / "x", [b"x"], "n1")
    assert seen == ["create_new", "write", "sync", "close", "rename_new", "sync_folder"]


def every_fault(folder: Path, fault: str) -> None:
    """Place at every operation under this fault; raise AssertionError where a half file is seen or one is lost."""
    acknowledged: list[Path] = []

    def act(run: int) -> None:
        target = folder / f"{run}"
        place_file(target, PIECES, f"n{run}")
        acknowledged.append(target)

    def check(run: int, _was_acknowledged: bool) -> None:
        for path in folder.iterdir():
            assert path.name.endswith(PART) or path.read_bytes() == WHOLE, "half a file is visible"
        assert all(path.exists() for path in acknowledged), "an acknowledged file is lost"
        clear_parts(folder)

    at_every_operation(fault, act, check)
    assert acknowledged


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_whatever_fails_at_any_operation_the_file_is_whole_or_absent(tmp_path: Path, fault: str) -> None:
    every_fault(tmp_path, fault)


def test_short_writes_are_continued(tmp_path: Path) -> None:
    with disk.watch_operations(one_byte_at_a_time):
        place_file(tmp_path / "x", PIECES, "n1")
    assert (tmp_path / "x").read_bytes() == WHOLE


def test_harness_goes_red_where_short_writes_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "write_all", lambda descriptor, data: os.write(descriptor, memoryview(data)[:1]))
    with pytest.raises(AssertionError, match="half a file"):
        every_fault(tmp_path, "EIO")


def test_harness_goes_red_where_the_name_is_given_before_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_place(part: Path, content: list[bytes | memoryview]) -> None:
        target = part.with_name(part.name.removeprefix(".").split(".")[0])
        with contextlib.closing(os.fdopen(disk.create_new(target), "wb")) as file:
            for piece in content:
                disk.write_all(file.fileno(), piece)
        part.touch()
        target.unlink()

    monkeypatch.setattr(place, "_write", in_place)
    with pytest.raises(AssertionError, match="half a file"):
        every_fault(tmp_path, "crash")


def test_parts_of_living_writers_stay_and_dead_ones_go(tmp_path: Path) -> None:
    for name in (f".a.dead{PART}", f".b.alive{PART}", "c.part", ".d", "e"):
        (tmp_path / name).touch()
    assert clear_parts(tmp_path, is_alive=frozenset({"alive"})) == 1
    assert {path.name for path in tmp_path.iterdir()} == {f".b.alive{PART}", "c.part", ".d", "e"}


def test_every_new_folder_is_made_durable_in_its_parent(tmp_path: Path) -> None:
    synced: list[object] = []

    def note(operation: str, target: object) -> None:
        if operation == "sync_folder":
            synced.append(target)

    with disk.watch_operations(note):
        make_durable_folder(tmp_path / "a" / "b")
        make_durable_folder(tmp_path / "a" / "b")
    assert synced == [tmp_path, tmp_path / "a"]
