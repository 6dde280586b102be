"""How many do-nothing tasks per second does the SQLite ledger hand out and finish, beside huey's SQLite queue?

  python benchmarks/claims.py
  python benchmarks/claims.py --workers 1 2 4 --rounds 3 --json

Both sides get the same paths, run real worker processes, and are counted from 5 % done to all done, so that starting
processes does not count. Ours: batches of 32, one transaction that finishes a batch and claims the next, under
synchronous=FULL, sizes in no order; `with results` also records digest and result of every file. huey: its own
consumer with process workers, results off and SQLite's own default, which is FULL too; it takes and removes one task
a transaction. `fairness` is the least busy worker's work as a part of its fair share.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import measure

from tidegate.ledger import (
    Claim,
    Clock,
    End,
    FilePlan,
    Finish,
    FolderChange,
    Look,
    Owner,
    Result,
    SeenFile,
    SqliteLedger,
    TaskPlan,
    Terms,
    Want,
)
from tidegate.pool import Kind, PoolPath, Stamp
from tidegate.pool.settle import Verdict
from tidegate.results.packs import TextRef

WARM_UP: Final = 0.05
BATCH: Final = 32
PLAN: Final = TaskPlan("text", "1")
TERMS: Final = Terms(settle_s=0.0)
HUEY_APP: Final = '''"""huey on SQLite, results off."""
import os
from huey import SqliteHuey
huey = SqliteHuey("bench", filename=os.path.join(os.environ["BENCH_DATA"], "huey.db"), results=False)
@huey.task()
def noop(number, path):
    return None
'''


@dataclass(frozen=True)
class Rate:
    """Tasks per second, and the least busy worker's part of its fair share (0 where it cannot be seen)."""

    per_s: float
    fairness: float = 0.0


def file_path(number: int) -> str:
    return f"vol/cam{number % 40:02d}/2025/{number:07d}.mp4"


# --- ours ------------------------------------------------------------------------------------------------------------


def folder_changes(files: int) -> list[FolderChange]:
    """New files in forty folders, with sizes and days in no order."""
    chance = random.Random(files)
    inside: dict[bytes, list[SeenFile]] = {}
    for number in range(files):
        path = PoolPath(file_path(number).encode())
        stamp = Stamp(chance.randrange(1, 1 << 22), number, number, number)
        plan = FilePlan((PLAN,), priority=1, urgency=chance.randrange(30), folder="vol/**")
        inside.setdefault(path.folder.raw, []).append(SeenFile(path.name, Kind.FILE, stamp, plan))
    return [FolderChange(PoolPath(raw), None, b"1", new=tuple(seen)) for raw, seen in inside.items()]


def filled(state: Path, jobs: int) -> None:
    """A ledger with this many ready tasks."""
    ledger, _ = SqliteLedger.open(measure.fresh(state), TERMS, Clock.of_host())
    ledger.register(folder_changes(jobs))
    ledger.settle([Look(file.file, Verdict.RESTS, file.stamp) for file in ledger.unsettled(jobs)])
    ledger.close()


def work(state: Path, with_results: bool) -> None:
    """One worker process: waits for a line on standard input, then claims and finishes until nothing is left."""
    clock = Clock.of_host()
    ledger, owner = SqliteLedger(state, TERMS, clock), Owner(state, clock)
    finish = _finish_with_result if with_results else _finish
    times: list[tuple[float, int]] = []
    print("ready", flush=True)
    sys.stdin.readline()
    claims: Sequence[Claim] = ()
    while True:
        committed = ledger.commit(owner.id, [finish(claim) for claim in claims], Want(BATCH, 1 << 40))
        times.append((time.monotonic(), len(claims) - len(committed.stale)))
        claims = committed.claims
        if not claims:
            break
    owner.close()
    print(json.dumps(times))


def _finish(claim: Claim) -> Finish:
    return Finish(claim, End.DONE)


def _finish_with_result(claim: Claim) -> Finish:
    digest = hashlib.sha256(claim.path.raw).digest()
    result = Result(
        digest, claim.plan, TextRef("2025-01/0123456789abcdef01234567.jsonl.gz", claim.task, 900), "mp4", ""
    )
    return Finish(claim, End.DONE, digest=digest, result=result)


def measure_ours(state: Path, jobs: int, workers: int, with_results: bool) -> Rate:
    filled(state, jobs)
    command = [sys.executable, __file__, "--worker", str(state), *(["--with-results"] if with_results else [])]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(workers)
    ]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    ended = [json.loads(child.communicate()[0]) for child in children]
    shares = [sum(count for _, count in times) for times in ended]
    assert sum(shares) == jobs, f"{sum(shares)} of {jobs} finished"
    return Rate(_rate([one for times in ended for one in times], jobs), min(shares) * workers / jobs)


def _rate(times: list[tuple[float, int]], jobs: int) -> float:
    done, began = 0, 0.0
    for at, count in sorted(times):
        done += count
        if done >= jobs * WARM_UP and not began:
            began, warm = at, done
        if done == jobs:
            return (jobs - warm) / (at - began)
    raise AssertionError("not everything was finished")


# --- huey ------------------------------------------------------------------------------------------------------------


def measure_huey(data: Path, jobs: int, workers: int) -> Rate:
    measure.fresh(data)
    (data / "huey_bench_app.py").write_text(HUEY_APP, encoding="utf-8")
    env = {**os.environ, "BENCH_DATA": str(data), "PYTHONPATH": f"{data}{os.pathsep}{Path(__file__).parent}"}
    fill = "import huey_bench_app as a, sys, claims\nfor n in range(int(sys.argv[1])): a.noop(n, claims.file_path(n))"
    subprocess.run([sys.executable, "-c", fill, str(jobs)], env=env, cwd=data, check=True)
    consumer = shutil.which("huey_consumer", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    command = [consumer or "huey_consumer.py", "huey_bench_app.huey", "-k", "process", "-w", str(workers), "-n", "-q"]
    child = subprocess.Popen(command, env=env, cwd=data)
    try:
        return Rate(_watched(data / "huey.db", jobs, child))
    finally:
        child.terminate()
        child.wait(30)


def _watched(path: Path, jobs: int, child: subprocess.Popen[bytes]) -> float:
    import sqlite3

    began, warm = 0.0, 0
    db = sqlite3.connect(path, timeout=30)
    try:
        while True:
            left = int(db.execute("SELECT count(*) FROM task").fetchone()[0])
            now = time.monotonic()
            if left <= jobs * (1 - WARM_UP) and not began:
                began, warm = now, left
            if left == 0:
                return warm / (now - began)
            assert child.poll() is None, "huey's consumer ended early"
            time.sleep(0.02)
    finally:
        db.close()


# --- the table -------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = measure.parser(__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--worker", type=Path, help="used by the script itself")
    parser.add_argument("--with-results", action="store_true", help="used by the script itself")
    args = parser.parse_args()
    if args.worker:
        work(args.worker, args.with_results)
        return
    with measure.work_folder(args.work) as folder:
        report(args.workers, args.jobs, args.rounds, folder, as_json=args.json)


def report(workers: Sequence[int], jobs: int, rounds: int, folder: Path, *, as_json: bool) -> None:
    rows = []
    for count in workers:
        cases = {
            f"tidegate, {count}": lambda count=count: measure_ours(folder / "state", jobs, count, False),
            f"tidegate with results, {count}": lambda count=count: measure_ours(folder / "state", jobs, count, True),
            f"huey SQLite, {count}": lambda count=count: measure_huey(folder / "huey", jobs // 2, count),
        }
        answers = measure.interleaved(cases, rounds)
        peer = measure.median([rate.per_s for rate in answers[f"huey SQLite, {count}"]])
        for name, rates in answers.items():
            per_s = measure.median([rate.per_s for rate in rates])
            fairness = min(rate.fairness for rate in rates)
            rows.append({"case": name, "per_s": per_s, "times_huey": per_s / peer, "fairness": fairness})
    if as_json:
        measure.say({"jobs": jobs, "rounds": rounds, "rows": rows})
        return
    head = ("case, workers", "tasks/s", "x huey", "fairness")
    print(measure.table(head, [(r["case"], r["per_s"], r["times_huey"], r["fairness"]) for r in rows]))


if __name__ == "__main__":
    main()
