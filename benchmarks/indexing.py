"""How long does it take to make a folder of office documents searchable, and to look again when nothing changed, beside
Recoll?

  python benchmarks/indexing.py
  python benchmarks/indexing.py --files 20000 --rounds 1 --json

The documents come from documents.py, the same for both. Tidegate runs as `tidegate run` with its own defaults and 1 or
2 workers: the 2 s for which new files must rest is part of its wall time, as are its start, its ledger's fsyncs and the
published snapshot. Recoll runs as `recollindex` with its own defaults (it uses threads) and a folder of its own. Each
then runs again over the unchanged folder. Every index is asked for a word that all documents hold; the benchmark ends
where it does not find them all.
Needs: apt install recollcmd poppler-utils python3-lxml
"""

from __future__ import annotations

import argparse
import compileall
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import documents
import family
import measure

import tidegate
from tidegate.gate import Gate

WORK: Final = Path(".bench/indexing")
RECOLL: Final = "recollindex"
LIMIT_S: Final = 1800.0
SETTLE_S: Final = 2.0
TARGETS: Final = {"full, 1 worker": 2.0, "full, 2 workers": 3.0, "unchanged": 4.0}


@dataclass(frozen=True)
class Pair:
    """The first indexing, and the one after it that finds nothing changed."""

    full: family.FamilyRun
    unchanged: family.FamilyRun
    index_mb: float


# --- the two sides ---------------------------------------------------------------------------------------------------


def index_with_tidegate(folder: Path, files: int, workers: int, work: Path) -> Pair:
    state = measure.fresh(work / f"state-{workers}")
    config = work / f"tidegate-{workers}.toml"
    config.write_text(f'[pool]\nname = "bench"\npath = "{folder}"\n\n[work]\nworkers = {workers}\n', encoding="utf-8")
    command = [sys.executable, "-m", "tidegate", "run", "--config", config, "--state", state, "--json"]
    full = family.run_family(command, limit_s=LIMIT_S)
    _check_tidegate(full, "processed", files)
    unchanged = family.run_family(command, limit_s=LIMIT_S)
    _check_tidegate(unchanged, "unchanged", files)
    with Gate.open(folder, config=config, state=state) as gate:
        found = gate.search(documents.PROBE).total
    if found != files:
        sys.exit(f"tidegate finds {found} of {files} documents")
    return Pair(full, unchanged, _size_mb(state / "index"))


def _check_tidegate(run: family.FamilyRun, what: str, files: int) -> None:
    answer = json.loads(run.output) if run.code == 0 and run.is_ended else {}
    if answer.get(what) != files:
        sys.exit(f"`tidegate run` ended with {run.code}: {run.output.strip()}; wanted {files} {what}")


def index_with_recoll(folder: Path, files: int, work: Path) -> Pair:
    own = measure.fresh(work / "recoll")
    (own / "recoll.conf").write_text(f"topdirs = {folder}\nloglevel = 2\nfollowLinks = 0\n", encoding="utf-8")
    command: Sequence[str | Path] = [need("recollindex"), "-c", own]
    runs = [family.run_family(command, limit_s=LIMIT_S) for _ in range(2)]
    for run in runs:
        if run.code != 0 or not run.is_ended:
            sys.exit(f"recollindex ended with {run.code}")
    asked = subprocess.run(
        [need("recollq"), "-c", str(own), "-n", "0-1", documents.PROBE], capture_output=True, text=True, check=False
    )
    total = re.search(r"(\d+) results", asked.stdout)
    if total is None or int(total[1]) != files:
        sys.exit(f"recoll finds {total[1] if total else 'none'} of {files} documents: are its filters installed?")
    return Pair(runs[0], runs[1], _size_mb(own / "xapiandb"))


def need(program: str) -> str:
    """The path of a program; ends with what to install where it is missing."""
    found = shutil.which(program)
    if found is None:
        sys.exit(f"{program} is missing: apt install recollcmd poppler-utils python3-lxml")
    return found


def _size_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


# --- the table -------------------------------------------------------------------------------------------------------


def rows_of(pairs: Mapping[str, Sequence[Pair]]) -> list[dict[str, object]]:
    """For each case and pass the medians, and how many times faster than Recoll by wall and by CPU."""
    rows: list[dict[str, object]] = []
    for step in ("full", "unchanged"):
        peers = [getattr(pair, step) for pair in pairs[RECOLL]]
        for name, some in pairs.items():
            runs: list[family.FamilyRun] = [getattr(pair, step) for pair in some]
            middle = {
                figure: measure.median([getattr(run, figure) for run in runs])
                for figure in ("wall_s", "cpu_s", "parent_mb", "child_mb", "all_mb")
            }
            times = {
                f"{figure[:-2]}_times": measure.median([getattr(peer, figure) for peer in peers]) / middle[figure]
                for figure in ("wall_s", "cpu_s")
            }
            spread = [round(run.wall_s, 2) for run in runs]
            index_mb = measure.median([pair.index_mb for pair in some])
            rows.append({"pass": step, "case": name, **middle, **times, "index_mb": index_mb, "walls_s": spread})
    return rows


def verdicts(rows: Sequence[Mapping[str, object]]) -> dict[str, dict[str, float | bool]]:
    """Each target, what was reached by wall time, and whether that is enough."""
    reached = {(row["pass"], row["case"]): float(str(row["wall_times"])) for row in rows}
    found = {
        "full, 1 worker": reached.get(("full", "tidegate, 1 worker")),
        "full, 2 workers": reached.get(("full", "tidegate, 2 workers")),
        "unchanged": reached.get(("unchanged", "tidegate, 1 worker")),
    }
    return {
        name: {"target": TARGETS[name], "reached": times, "is_met": times >= TARGETS[name]}
        for name, times in found.items()
        if times is not None
    }


def show(rows: Sequence[Mapping[str, object]], made: documents.Made) -> None:
    print(
        f"{made.files} documents, {made.size / 1e6:.1f} MB; a full pass of Tidegate holds {SETTLE_S:.0f} s of settling"
    )
    figures = ("wall_s", "cpu_s", "wall_times", "cpu_times", "parent_mb", "child_mb", "all_mb", "index_mb")
    head = ("pass, case", "wall s", "CPU s", "x Recoll", "x by CPU", "parent MB", "child MB", "all MB", "index MB")
    cells = [(f"{row['pass']}, {row['case']}", *(row[figure] for figure in figures)) for row in rows]
    print(measure.table(head, cells))
    for name, verdict in verdicts(rows).items():
        print(f"{name}: {verdict['reached']:.2f} x Recoll, target {verdict['target']:.0f} x: ", end="")
        print("met" if verdict["is_met"] else "missed")


def options() -> argparse.ArgumentParser:
    parser = measure.parser(__doc__, rounds=1)
    parser.set_defaults(work=WORK)
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    return parser


def main() -> None:
    args = options().parse_args()
    need("recollindex"), need("recollq"), need("pdftotext")
    compileall.compile_dir(Path(tidegate.__file__).parent, quiet=1)  # as pip does when it installs
    with measure.work_folder(args.work) as work:
        folder = work / f"documents-{args.files}"
        measure.note(f"making {args.files} documents in {folder}")
        made = documents.make(folder, args.files)
        cases: dict[str, Callable[[], Pair]] = {RECOLL: lambda: index_with_recoll(folder, made.files, work)}
        for workers in args.workers:
            name = f"tidegate, {workers} worker{'s' if workers > 1 else ''}"
            cases[name] = lambda workers=workers: index_with_tidegate(folder, made.files, workers, work)  # type: ignore[misc]
        rows = rows_of(measure.interleaved(cases, args.rounds))
    if args.json:
        about = {"files": made.files, "bytes": made.size, "rounds": args.rounds, "settle_s": SETTLE_S}
        measure.say(about | {"rows": rows, "targets": verdicts(rows)})
        return
    show(rows, made)


if __name__ == "__main__":
    main()
