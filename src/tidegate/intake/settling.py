"""The settle gate in batches: take the files whose look is due, look at all of them, write what that decided.

One batch is one reading of the ledger, one pass over the share, one transaction; ten thousand files settle in one
window. If the process dies between, the looks are taken again.
"""

from __future__ import annotations

from typing import Final

from tidegate.ledger import Ledger, State
from tidegate.ledger.records import Look
from tidegate.pool.settle import Patience, judge, look_at_all
from tidegate.pool.stamps import Stamp

BATCH: Final = 10_000


def settle_due(root: int, ledger: Ledger, patience: Patience) -> int:
    """Look at every file whose look is due, at most one batch; how many became ready."""
    due = ledger.unsettled(BATCH)
    if not due:
        return 0
    seen = look_at_all(root, [file.path for file in due])
    looks = []
    for file, now in zip(due, seen, strict=True):
        verdict = judge(file.stamp, now, file.since_s, patience)
        looks.append(Look(file.file, verdict, now if isinstance(now, Stamp) else file.stamp))
    return ledger.settle(looks).get(State.READY, 0)
