"""A reader that opens the newest snapshot again and again, until a file says stop; prints what it saw as JSON.

python index_poller.py INDEX STOP
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tidegate.errors import IndexMissing
from tidegate.index import Searcher

WORD = "文件"  # in every name: a file that failed is found by its name alone


def main(index: str, stop: str) -> None:
    looks = missing = highest = 0
    numbers: set[int] = set()
    wrong: list[str] = []
    while not Path(stop).exists():
        try:
            with Searcher(Path(index)) as searcher:
                number, documents = searcher.snapshot.number, searcher.snapshot.documents
                found = searcher.search(WORD, limit=1).total
        except IndexMissing:
            missing += 1
            if highest:
                wrong.append(f"no snapshot after snapshot {highest}")
            continue
        except Exception as error:  # noqa: BLE001 - whatever a reader meets is a finding
            wrong.append(f"{type(error).__name__}: {error}")
            continue
        looks += 1
        if number < highest:
            wrong.append(f"snapshot {number} after snapshot {highest}")
        if found != documents:
            wrong.append(f"snapshot {number} answers with {found} of {documents} documents")
        highest = max(highest, number)
        numbers.add(number)
    print(json.dumps({"looks": looks, "snapshots": len(numbers), "highest": highest, "wrong": wrong[:10]}))


if __name__ == "__main__":
    main(*sys.argv[1:])
