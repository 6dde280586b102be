"""A round as a person sees it: stop signals, progress in files and bytes on a terminal, plain lines elsewhere.

The first Ctrl-C or SIGTERM asks the round to stop, which it does within seconds; the second ends the process at once,
which is safe too: the next start takes back what was claimed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from tidegate.ledger import Progress
from tidegate.rounds import Hooks

ESTIMATE_AFTER_S: Final = 20.0
LINE_EVERY_S: Final = 30.0


@contextlib.contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """An event that is set by the first SIGINT or SIGTERM; the second one ends the process with 130."""
    stop = threading.Event()

    def ask(number: int, frame: object) -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Live:
    """Shows one round. Talk only: everything goes to stderr."""

    def __init__(self, stop: threading.Event) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._stop = stop
        self._began = self._said_at = time.monotonic()
        self._has_estimated = False
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[amount]}"),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[left]}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._files = self._bars.add_task("files", total=None, amount="", rate="", left="")
        self._size = self._bars.add_task("bytes", total=None, amount="", rate="", left="")

    def hooks(self) -> Hooks:
        """What the round calls."""
        return Hooks(self._stop.is_set, self._tell, self._note)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show bars while the block runs."""
        with self._bars:
            yield

    def _note(self, sentence: str) -> None:
        self.console.print(sentence, markup=False)

    def _tell(self, progress: Progress) -> None:
        now = time.monotonic()
        self._estimate(progress, now)
        if not self.console.is_terminal:
            self._line(progress, now)
            return
        done, wanted = progress.done, progress.wanted
        open_end = "" if progress.is_scan_complete else "+"
        left = f"{duration(progress.left_s)} left" if progress.left_s is not None else ""
        self._bars.update(
            self._files,
            total=wanted.files or None,
            completed=done.files,
            amount=f"{done.files:,}/{wanted.files:,}{open_end}",
            rate=f"{progress.files_per_s:,.0f}/s",
            left="stopping …" if self._stop.is_set() else left,
        )
        self._bars.update(
            self._size,
            total=wanted.size or None,
            completed=done.size,
            amount=f"{amount(done.size)}/{amount(wanted.size)}{open_end}",
            rate=f"{amount(int(progress.bytes_per_s))}/s",
        )

    def _estimate(self, progress: Progress, now: float) -> None:
        """Say once, within the first minute, how large the whole is and how long it will take."""
        is_time = now - self._began > ESTIMATE_AFTER_S
        if self._has_estimated or not is_time or progress.left_s is None or not progress.wanted.files:
            return
        self._has_estimated = True
        least = "" if progress.is_scan_complete else "at least "
        self._note(
            f"{least}{progress.wanted.files:,} files, {amount(progress.wanted.size)} to do; "
            f"{least}about {duration(progress.left_s)} at {progress.files_per_s:,.0f} files/s"
        )

    def _line(self, progress: Progress, now: float) -> None:
        if now - self._said_at < LINE_EVERY_S:
            return
        self._said_at = now
        left = f", {duration(progress.left_s)} left" if progress.left_s is not None else ""
        done, wanted = progress.done, progress.wanted
        self._note(
            f"{done.files:,} of {wanted.files:,} files, {amount(done.size)} of {amount(wanted.size)}, "
            f"{progress.files_per_s:,.0f} files/s{left}"
        )


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
