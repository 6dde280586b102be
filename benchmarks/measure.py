"""What every benchmark here shares: rounds that interleave, medians, a child's wall time, CPU and peak RSS, a table.

Absolute figures belong to one machine and one day; compare only what ran interleaved in one go. Standard library only,
Linux only. Ends only processes that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

Measured = TypeVar("Measured")
_MIB: Final = 1024.0  # ru_maxrss counts KiB


@dataclass(frozen=True)
class Run:
    """One finished command. `cpu_s` is user + system time, `peak_mb` the largest resident size in MiB, both with the
    descendants it waited for. Linux never reports a peak below that of the process that started it: keep this one
    small."""

    code: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    output: str = ""


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    keep_output: bool = False,
) -> Run:
    """Run `command` to its end and measure it; `env` is added to this environment. Its standard output is dropped
    unless `keep_output`; its standard error is shown."""
    with tempfile.TemporaryFile() as sink:
        began = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command],
            stdout=sink if keep_output else subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            cwd=cwd,
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        sink.seek(0)
        text = sink.read().decode("utf-8", "replace")
    return Run(child.returncode, wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / _MIB, text)


def interleaved(cases: Mapping[str, Callable[[], Measured]], rounds: int) -> dict[str, list[Measured]]:
    """Every case once per round, in an order that turns by one each round, so that no case always follows the same
    one. What each returned, by case, in order of rounds."""
    names = list(cases)
    answers: dict[str, list[Measured]] = {name: [] for name in names}
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            note(f"round {number + 1} of {rounds}: {name}")
            answers[name].append(cases[name]())
    return answers


def median(values: Sequence[float]) -> float:
    """The median; of an even number the mean of the middle two."""
    return float(statistics.median(values))


def median_run(runs: Sequence[Run]) -> Run:
    """Each figure's own median; the worst exit code."""
    return Run(
        max((one.code for one in runs), key=abs),
        median([one.wall_s for one in runs]),
        median([one.cpu_s for one in runs]),
        median([one.peak_mb for one in runs]),
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns padded to their widest cell, the first to the left, the others to the right. Numbers are rounded."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(head))]
    lines = [_line(line, widths) for line in cells]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if not column else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def parser(doc: str, rounds: int = 3) -> argparse.ArgumentParser:
    """An argument parser that shows the script's docstring and knows --rounds, --work and --json."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--rounds", type=int, default=rounds, help=f"rounds to take the median of (default {rounds})")
    made.add_argument("--work", type=Path, help="folder for everything written (default: a temporary one, removed)")
    made.add_argument("--json", action="store_true", help="one JSON object on standard output instead of the table")
    return made


@contextmanager
def work_folder(given: Path | None) -> Iterator[Path]:
    """The folder to write in: the given one, or a temporary one that is removed afterwards."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given.resolve()
        return
    made = Path(tempfile.mkdtemp(prefix="tidegate-bench-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def fresh(folder: Path) -> Path:
    """An empty folder at that path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def note(text: str) -> None:
    """Talk, to standard error."""
    print(text, file=sys.stderr, flush=True)


def say(answer: object) -> None:
    """One JSON object on one line of standard output."""
    print(json.dumps(answer, ensure_ascii=False), flush=True)
