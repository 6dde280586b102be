"""What becomes of files that nobody made for a test? Runs `tidegate run` over folders and counts how every file ended.

  python benchmarks/corpus.py /tmp/corpus-tika /tmp/corpus-pdfjs
  python benchmarks/corpus.py ~/documents --workers 2 --limit 1800 --json

Each folder is a pool with a state of its own in the work folder; the folders themselves are only read. Fails (exit 1)
where the program crashed or did not end, or where a file is in no final state (done, skipped, blocked) with a reason.
`stuck` names every file that was not read, with its class and reason; `retried` every failure that was tried again.
"""

from __future__ import annotations

import argparse
import compileall
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

import family
import measure

import tidegate
from tidegate.gate import Gate
from tidegate.ledger import FileView, State

WORK: Final = Path(".bench/corpus")
FINAL: Final = frozenset({State.DONE, State.SKIPPED, State.BLOCKED})
MOST_STUCK: Final = 100_000


@dataclass
class Report:
    """One pool, run once and looked at."""

    folder: str
    files: int = 0
    size: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    files_per_s: float = 0.0
    bytes_per_s: float = 0.0
    parent_mb: float = 0.0
    child_mb: float = 0.0
    states: dict[str, int] = field(default_factory=dict)
    classes: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    stuck: list[tuple[str, str, str]] = field(default_factory=list)
    retried: list[tuple[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def run_over(folder: Path, work: Path, workers: int, limit_s: float) -> Report:
    """One `tidegate run` over the folder, then a look at every file of its ledger."""
    state = measure.fresh(work / f"state-{folder.name}")
    config = work / f"{folder.name}.toml"
    config.write_text(f'[pool]\nname = "corpus"\npath = "{folder}"\n\n[work]\nworkers = {workers}\n', encoding="utf-8")
    command = [sys.executable, "-m", "tidegate", "run", "--config", config, "--state", state, "--json"]
    began = time.monotonic()
    run = family.run_family(command, limit_s=limit_s)
    report = Report(str(folder), wall_s=run.wall_s, cpu_s=run.cpu_s, parent_mb=run.parent_mb, child_mb=run.child_mb)
    if not run.is_ended:
        report.faults.append(f"tidegate did not end within {time.monotonic() - began:.0f} s")
    elif run.code not in (0, 3):
        report.faults.append(f"tidegate ended with {run.code}")
    with Gate.open(folder, config=config, state=state) as gate:
        _look(gate, report)
    report.files_per_s = report.files / run.wall_s
    report.bytes_per_s = report.size / run.wall_s
    return report


def _look(gate: Gate, report: Report) -> None:
    """Take counts and views from the ledger; what contradicts them is a fault."""
    counts = gate.counts()
    report.states = {str(state): tally.files for state, tally in counts.states.items() if tally.files}
    report.files = sum(tally.files for tally in counts.states.values())
    report.size = sum(tally.size for tally in counts.states.values())
    report.classes = {str(failure): count for failure, count in counts.failures.items()}
    stuck = gate.stuck(MOST_STUCK)
    report.stuck = sorted((one.path.display, *_class_and_reason(one)) for one in stuck)
    kinds: Counter[str] = Counter()
    for path in gate.ledger.find_displayed("", MOST_STUCK):
        view = gate.ledger.find_file(path)
        assert view is not None
        task = min(view.tasks, key=lambda task: list(State).index(task.state))
        if task.state not in FINAL:
            report.faults.append(f"{path}: {task.state}, {task.reason}")
        elif not task.reason:
            report.faults.append(f"{path}: {task.state} without a reason")
        kinds[_kind(task.reason) if task.state is State.DONE else str(task.state)] += 1
        report.retried += [(path.display, event.detail) for event in view.history if event.event == State.FAILED]
    report.kinds = dict(kinds.most_common())


def _kind(reason: str) -> str:
    found = re.match(r"read as (\S+?)(?:,|$)", reason)
    return found[1] if found else reason


def _class_and_reason(view: FileView) -> tuple[str, str]:
    task = next(task for task in view.tasks if task.state in (State.FAILED, State.BLOCKED))
    return str(task.failure), task.reason


def show(reports: Sequence[Report]) -> None:
    head = ("folder", "files", "MB", "wall s", "CPU s", "files/s", "MB/s", "parent MB", "child MB")
    rows = [
        (
            one.folder, one.files, one.size / 1e6, one.wall_s, one.cpu_s, one.files_per_s, one.bytes_per_s / 1e6,
            one.parent_mb, one.child_mb,
        )
        for one in reports
    ]  # fmt: skip
    print(measure.table(head, rows))
    for one in reports:
        print(f"\n{one.folder}\n  states:  {_listed(one.states)}\n  classes: {_listed(one.classes)}")
        print(f"  read as: {_listed(one.kinds)}")
        for path, failure, reason in one.stuck:
            print(f"  {failure:10} {path}: {reason}")
        for path, said in one.retried:
            print(f"  tried again: {path}: {said}")
        for fault in one.faults:
            print(f"  FAULT: {fault}")


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def options() -> argparse.ArgumentParser:
    parser = measure.parser(__doc__, rounds=1)
    parser.set_defaults(work=WORK)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for one folder (default 1800)")
    return parser


def main() -> None:
    args = options().parse_args()
    missing = [str(folder) for folder in args.folders if not folder.is_dir()]
    if missing:
        sys.exit(f"no such folder: {', '.join(missing)}")
    compileall.compile_dir(Path(tidegate.__file__).parent, quiet=1)  # as pip does when it installs
    reports = []
    with measure.work_folder(args.work) as work:
        for folder in args.folders:
            measure.note(f"running over {folder}")
            reports.append(run_over(folder.resolve(), work, args.workers, args.limit))
    if args.json:
        measure.say([asdict(report) for report in reports])
    else:
        show(reports)
    sys.exit(1 if any(report.faults for report in reports) else 0)


if __name__ == "__main__":
    main()
