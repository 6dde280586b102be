"""What does a scan cost that finds nothing changed, beside `rsync -an`, `find -printf` and a bare os.scandir + stat?

  python benchmarks/rescan.py
  python benchmarks/rescan.py --files 1000000 --rounds 5 --json

One tree of small files from a fixed seed, kept in the work folder; the page cache is warm. `rsync -an` compares the
tree with itself, which is the no-change case. Two more cases give the fixed costs: `python -c pass`, and `tidegate
scan` of an empty pool. CPU is user + system; peak RSS comes from GNU time, whose own process is too small to hide it.
Needs: apt install rsync findutils time
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import measure

import tidegate

WORK: Final = Path(".bench/rescan")
STEMS: Final = ("scan", "IMG", "report", "invoice", "合同", "录像", "minutes", "draft")
ENDINGS: Final = ("pdf", "docx", "jpg", "mp4", "txt", "xlsx", "md", "tif")
FIRST_S: Final = 1_700_000_000
SPAN_S: Final = 30_000_000
OURS: Final = "tidegate scan"
EMPTY: Final = "tidegate scan, empty pool"
PYTHON: Final = "python -c pass"
RSYNC: Final = "rsync -an"
CPU_TARGET: Final = 1.2
PEAK_TARGET_MB: Final = 75.0
SCANDIR: Final = """
import os, sys
frontier, files, size = [sys.argv[1]], 0, 0
while frontier:
    with os.scandir(frontier.pop()) as listing:
        for entry in listing:
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                frontier.append(entry.path)
            else:
                files += 1
                size += status.st_size
print(files, size)
"""


@dataclass(frozen=True)
class Places:
    """The tree, an empty pool, and the state folder of each."""

    tree: Path
    empty: Path
    state: Path
    empty_state: Path


def make_tree(root: Path, files: int, folders: int) -> None:
    """A tree of that many files of 0 to 99 bytes; kept where it stands already."""
    if root.exists():
        return
    chance, part = random.Random(7), root.with_name(f"{root.name}.part")
    measure.fresh(part)
    for number in range(folders):
        folder = part / f"dept{number % 20:02d}" / str(2015 + number % 10) / f"case-{number:05d}"
        folder.mkdir(parents=True)
        for index in range(files // folders + (number < files % folders)):
            name = f"{STEMS[index % 8]}_{number:05d}_{index:06d}.{ENDINGS[(number + index) % 8]}"
            _write(folder / name, chance)
    part.rename(root)


def _write(path: Path, chance: random.Random) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY, 0o644)
    os.write(descriptor, b"x" * chance.randrange(100))
    os.close(descriptor)
    moment = (FIRST_S + chance.randrange(SPAN_S)) * 10**9 + chance.randrange(10**9)
    os.utime(path, ns=(moment, moment))


def need(program: str, package: str) -> str:
    """The path of a program; ends with what to install where it is missing."""
    found = shutil.which(program)
    if found is None:
        sys.exit(f"{program} is missing: apt install {package}")
    return found


def timed(command: Sequence[str | Path], report: Path) -> measure.Run:
    """Run under GNU time; peak RSS is that of the command, or of its largest descendant."""
    run = measure.run([need("time", "time"), "-q", "-f", "%M", "-o", report, *command], keep_output=True)
    return replace(run, peak_mb=int(report.read_text().split()[-1]) / 1024)


def scan(pool: Path, state: Path) -> list[str | Path]:
    return [sys.executable, "-m", "tidegate", "scan", pool, "--state", state, "--json"]


def rescan(pool: Path, state: Path, files: int, report: Path) -> measure.Run:
    """One no-change scan; ends the benchmark where it saw anything else than `files` unchanged ones."""
    run = timed(scan(pool, state), report)
    answer = json.loads(run.output)
    if run.code != 0 or answer["unchanged"] != files or answer["new"] or answer["changed"]:
        sys.exit(f"this was no unchanged rescan of {files} files (exit status {run.code}): {answer}")
    return run


def prepared(work: Path, files: int, folders: int) -> Places:
    """The tree made and scanned once, with a state of its own; an empty pool likewise."""
    compileall.compile_dir(Path(tidegate.__file__).parent, quiet=1)  # as pip does when it installs
    places = Places(work / f"tree-{files}-{folders}", work / "empty", work / f"state-{files}", work / "state-empty")
    work.mkdir(parents=True, exist_ok=True)
    measure.note(f"making {files} files in {places.tree}")
    make_tree(places.tree, files, folders)
    places.empty.mkdir(exist_ok=True)
    for pool, state in ((places.tree, places.state), (places.empty, places.empty_state)):
        measure.fresh(state)
        first = measure.run(scan(pool, state))
        if first.code != 0:
            sys.exit(f"the first scan of {pool} ended with {first.code}")
        measure.note(f"first scan of {pool.name}: {first.wall_s:.1f} s, CPU {first.cpu_s:.1f} s")
    return places


def measured(places: Places, files: int, rounds: int, report: Path) -> dict[str, measure.Run]:
    """The median of every case."""
    tree = f"{places.tree}/"
    rsync, find = need("rsync", "rsync"), need("find", "findutils")
    cases = {
        OURS: lambda: rescan(places.tree, places.state, files, report),
        RSYNC: lambda: timed([rsync, "-an", tree, tree], report),
        "find -printf": lambda: timed([find, places.tree, "-type", "f", "-printf", "%s %T@ %P\\n"], report),
        "os.scandir + stat": lambda: timed([sys.executable, "-c", SCANDIR, places.tree], report),
        EMPTY: lambda: rescan(places.empty, places.empty_state, 0, report),
        PYTHON: lambda: timed([sys.executable, "-c", "pass"], report),
    }
    for case in list(cases.values())[:4]:
        case()  # warms the page cache; does not count
    runs = {name: measure.median_run(each) for name, each in measure.interleaved(cases, rounds).items()}
    for name, run in runs.items():
        if run.code:
            sys.exit(f"{name} ended with {run.code}")
    return runs


def options() -> argparse.ArgumentParser:
    parser = measure.parser(__doc__, rounds=5)
    parser.set_defaults(work=WORK)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folders", type=int, default=0, help="default: one for each hundred files")
    return parser


def main() -> None:
    args = options().parse_args()
    folders = args.folders or max(1, args.files // 100)
    with measure.work_folder(args.work) as work:
        runs = measured(prepared(work, args.files, folders), args.files, args.rounds, work / "time")
    ours, rsync, empty = runs[OURS], runs[RSYNC], runs[EMPTY]
    verdict = {
        "cpu_of_rsync": ours.cpu_s / rsync.cpu_s,
        "cpu_of_rsync_without_python": (ours.cpu_s - runs[PYTHON].cpu_s) / rsync.cpu_s,
        "cpu_of_rsync_without_start": (ours.cpu_s - empty.cpu_s) / rsync.cpu_s,
        "peak_mb": ours.peak_mb,
        "is_cpu_met": ours.cpu_s <= CPU_TARGET * rsync.cpu_s,
        "is_peak_met": ours.peak_mb <= PEAK_TARGET_MB,
    }
    rows = [
        {"case": name, "cpu_s": run.cpu_s, "wall_s": run.wall_s, "peak_mb": run.peak_mb} for name, run in runs.items()
    ]
    if args.json:
        measure.say({"files": args.files, "folders": folders, "rounds": args.rounds, "rows": rows} | verdict)
        return
    head = ("no-change rescan", "CPU s", "wall s", "peak MB", "CPU x rsync")
    cells = [(r["case"], r["cpu_s"], r["wall_s"], r["peak_mb"], r["cpu_s"] / rsync.cpu_s) for r in rows]
    print(measure.table(head, cells))
    print(f"CPU without Python's own start: {verdict['cpu_of_rsync_without_python']:.2f} x rsync; without our start as")
    print(f"well (a scan of an empty pool): {verdict['cpu_of_rsync_without_start']:.2f} x rsync.")
    print(f"Target CPU {CPU_TARGET} x rsync: {'met' if verdict['is_cpu_met'] else 'missed'}; ", end="")
    print(f"peak {PEAK_TARGET_MB:.0f} MB: {'met' if verdict['is_peak_met'] else 'missed'}.")


if __name__ == "__main__":
    main()
