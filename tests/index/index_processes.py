"""What the tests of the index run in processes of their own.

python index_processes.py crash publish|collect TEMPLATE WORK   one copy of TEMPLATE a run, killed at its n-th operation
python index_processes.py read ROOT LAST                         observations of a looping reader, until it sees LAST
"""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from pathlib import Path

from index_samples import document

from tidegate.index import Change, Removal, Searcher, collect, publish
from tidegate.pool import disk

KILLED = 9
LETTERS = 5
LAST_CHANGES: list[Change] = [(10, Removal(1)), (11, document(2, "new")), (12, document(3, "new"))]


def act(what: str, root: Path) -> None:
    if what == "collect":
        collect(root, keep=1)
    else:
        publish(root, LAST_CHANGES, now_ns=2)


def die_at(number: int) -> disk.Hook:
    operations = itertools.count(1)

    def hook(operation: str, target: object) -> None:
        if next(operations) == number:
            os._exit(KILLED)

    return hook


def crash_everywhere(what: str, template: Path, work: Path) -> None:
    for number in itertools.count(1):
        root = work / str(number)
        shutil.copytree(template, root)
        child = os.fork()
        if child == 0:
            with disk.watch_operations(die_at(number)):
                act(what, root)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, flush=True)
        if status != KILLED:
            return


def read_until(root: Path, last: int) -> None:
    """One line a look: the snapshot, then the title of every letter of the generation."""
    with Searcher(root) as searcher:
        print("ready", flush=True)
        lines, seen = [], 0
        while seen < last:
            searcher.refresh()
            found = searcher.search("letter")
            titles = sorted(int(hit.title) for hit in found.hits)
            seen = max(titles, default=0)
            line = f"{found.snapshot} {' '.join(map(str, titles))}"
            if not lines or lines[-1] != line:
                lines.append(line)
        print("\n".join(lines))


if __name__ == "__main__":
    if sys.argv[1] == "crash":
        crash_everywhere(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        read_until(Path(sys.argv[2]), int(sys.argv[3]))
