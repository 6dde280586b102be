"""Words for amounts, times and rounds, and the one way to talk: lines on stderr that cannot steer a terminal.

Imports nothing that draws, so that what only talks starts quickly.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tidegate.pool.paths import display

if TYPE_CHECKING:
    from tidegate.rounds import Summary


def talk(sentence: str) -> None:
    """A line for people, on stderr."""
    print(readable(sentence), file=sys.stderr)


def readable(sentence: str | Path) -> str:
    """A sentence that may name paths of any bytes, without what could steer a terminal."""
    return display(os.fsencode(sentence))


def about_round(done: Summary) -> list[str]:
    """What a round did, in one line; what a person should know beside it, in others."""
    from tidegate.ledger import End

    scan, work = done.scan, done.work
    said = [f"{scan.files:,} files seen", f"{scan.new:,} new", f"{scan.changed:,} changed"]
    said += [f"{work.ends[End.DONE]:,} processed", f"{work.ends[End.SKIPPED]:,} served by an earlier result"]
    if work.changed:
        said.append(f"{work.changed:,} changed while read and put back")
    if done.blocked or done.failed:
        said.append(f"{done.failed:,} failed and {done.blocked:,} blocked (see: tidegate status --stuck)")
    if done.backlog is not None and done.backlog.settling:
        said.append(f"{done.backlog.settling:,} still being written")
    lines = [f"{', '.join(said)}; {duration(done.seconds)}"]
    if done.is_stopped:
        lines.append("stopped; what was done is kept, the next run goes on from here")
    if done.is_confined is False:
        lines.append("this kernel has no Landlock: parsers run without a sandbox around their file access")
    return lines


def amount(size: int) -> str:
    """Bytes for people: `1.2 MB`."""
    value = float(size)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError


def duration(seconds: float) -> str:
    """A time span for people: `45 s`, `12 min`, `3.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
