"""What stands in `examples/` works as it is written, and `make demo` finds what it promises."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import Gate

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state folder of one run over the samples."""
    return tmp_path_factory.mktemp("examples") / "state"


def test_scan_and_search_prints_the_files_that_say_the_word(state: Path) -> None:
    command = [sys.executable, "scan_and_search.py", "samples", "合同", str(state)]
    said = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, timeout=60, check=True).stdout
    found = {line.split(" ")[0] for line in said.splitlines()}
    assert {"contracts/采购合同.docx", "contracts/invoice.pdf", "notes/说明.txt", "mail/delivery.eml"} <= found


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("harbour", "notes/harbour-meeting.txt"),
        ("合同编号", "contracts/invoice.pdf"),
        ("水泵修复", "accounts/2024.xlsx"),
        ("storm", "handbook.md"),
        ("潮汐", "web/tide-table.html"),
        ("交货", "mail/delivery.eml"),
    ],
)
def test_every_kind_of_sample_is_found_by_its_text(word: str, path: str, state: Path) -> None:
    with Gate.open(EXAMPLES / "samples", state=state) as gate:
        gate.run()
        assert path in {hit.path for hit in gate.search(word).hits}


def test_every_sample_ends_done(state: Path) -> None:
    with Gate.open(EXAMPLES / "samples", state=state) as gate:
        gate.run()
        assert not list(gate.stuck(10))
        assert gate.counts().states["done"].files == len(
            [one for one in EXAMPLES.glob("samples/**/*") if one.is_file()]
        )


def test_samples_are_what_their_script_writes(tmp_path: Path) -> None:
    made = runpy.run_path(str(EXAMPLES / "make_samples.py"))
    made["main"](tmp_path)
    for name in made["files"]():
        assert (tmp_path / name).read_bytes() == (EXAMPLES / "samples" / name).read_bytes(), name


def test_samples_are_small() -> None:
    assert all(one.stat().st_size < 20_000 for one in EXAMPLES.glob("samples/**/*") if one.is_file())
