"""Real processes that tests of the SQLite ledger start: each says what it did, one line of JSON an event.

python ledger_processes.py work STATE TASKS   claim up to TASKS at a time and finish them until nothing is left
python ledger_processes.py claim STATE        claim and finish one by one until killed, telling after each commit
python ledger_processes.py own STATE          be an owner until killed
python ledger_processes.py hold STATE         hold a write transaction until a line comes on standard input
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

from tidegate.ledger import Claim, Clock, End, Finish, Owner, SqliteLedger, Terms, Want
from tidegate.ledger.sqlite_store import FILE

TERMS = Terms(settle_s=0.0, attempts=1000)
EVERYTHING = 1 << 60


def say(event: object) -> None:
    print(json.dumps(event), flush=True)


def work(state: Path, tasks: int) -> None:
    """Says the paths that it finished, at the end."""
    ledger, owner = _participant(state)
    finished: list[int] = []
    claims: tuple[Claim, ...] = ()
    say("ready")
    sys.stdin.readline()
    while True:
        committed = ledger.commit(owner.id, [Finish(claim, End.DONE) for claim in claims], Want(tasks, EVERYTHING))
        finished += [claim.task for claim in claims if claim.task not in committed.stale]
        claims = committed.claims
        if not claims:
            break
    say(finished)


def claim_until_killed(state: Path) -> None:
    """Says every task whose end was acknowledged."""
    ledger, owner = _participant(state)
    claims: tuple[Claim, ...] = ()
    while True:
        finishes = [Finish(claim, End.DONE, digest=claim.path.raw.ljust(32)) for claim in claims]
        claims = ledger.commit(owner.id, finishes, Want(1, EVERYTHING)).claims
        say([finish.claim.task for finish in finishes])
        if not claims:
            return


def own(state: Path) -> None:
    owner = Owner(state, Clock.of_host())
    say(owner.id)
    sys.stdin.readline()


def hold(state: Path) -> None:
    db = sqlite3.connect(state / FILE, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    say("held")
    sys.stdin.readline()
    db.execute("ROLLBACK")


def _participant(state: Path) -> tuple[SqliteLedger, Owner]:
    clock = Clock.of_host()
    return SqliteLedger(state, TERMS, clock), Owner(state, clock)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", state, tasks]:
            work(Path(state), int(tasks))
        case ["claim", state]:
            claim_until_killed(Path(state))
        case ["own", state]:
            own(Path(state))
        case ["hold", state]:
            hold(Path(state))
