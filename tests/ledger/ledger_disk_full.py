"""Run on a tmpfs of two megabytes: fill it through the ledger, free some room, go on. Says what it saw as JSON."""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ledger_samples import EVERYTHING, OWNER, HandClock, Item, World

from tidegate.errors import DiskFull
from tidegate.ledger import End, Finish, SqliteLedger, Terms, Want
from tidegate.ledger.sqlite_store import FILE

Answer = TypeVar("Answer")
MOUNT = Path(sys.argv[1])


def registered(world: World) -> int:
    return sum(tally.files for tally in world.ledger.counts().states.values())


def again(act: Callable[[], Answer]) -> Answer:
    """What a participant does: what met a full disk is tried once more."""
    try:
        return act()
    except DiskFull:
        return act()


def main() -> None:
    ballast = MOUNT / "ballast"
    ballast.write_bytes(bytes(900_000))
    time = HandClock()
    state = MOUNT / "state"
    SqliteLedger.open(state, Terms(), time.clock)[0].close()
    world = World(SqliteLedger(state, Terms(), time.clock, random.Random(1)), time, Terms())
    acknowledged = 0
    try:
        while True:
            world.find(*(Item(b"%d/%d" % (acknowledged, number)) for number in range(50)))
            acknowledged += 50
    except DiskFull:
        pass
    told = {"acknowledged": acknowledged, "registered_after_full": registered(world)}
    ballast.unlink()
    again(lambda: world.find(*(Item(b"later/%d" % number) for number in range(50))))
    again(world.rest)
    finished = 0
    while claims := again(lambda: world.take(32, EVERYTHING)):
        finishes = [Finish(one, End.DONE) for one in claims]
        stale = again(lambda finishes=finishes: world.ledger.commit(OWNER, finishes, Want(0, 0))).stale
        finished += len(claims) - len(stale)
    told |= {"finished_later": finished, "registered_at_end": registered(world)}
    world.ledger.close()
    db = sqlite3.connect(state / FILE)
    print(json.dumps(told | {"check": db.execute("PRAGMA integrity_check").fetchone()[0]}))
    db.close()


main()
