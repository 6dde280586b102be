"""A round as a person sees it: stop signals, progress in files and bytes on a terminal, plain lines elsewhere.

The first Ctrl-C or SIGTERM asks the round to stop, which it does within seconds; the second ends the process at once,
which is safe too: the next start takes back what was claimed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tidegate.cli.words import about_round, amount, duration, readable, talk
from tidegate.ledger import Progress
from tidegate.rounds import Hooks, Summary

if TYPE_CHECKING:
    from tidegate.cli.bars import Bars

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
        self._stop = stop
        self._began = self._said_at = time.monotonic()
        self._has_estimated = False
        self._bars: Bars | None = None

    def hooks(self) -> Hooks:
        """What the round calls."""
        return Hooks(self._stop.is_set, self._tell, self.say)

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show bars while the block runs, where stderr is a terminal."""
        if not sys.stderr.isatty():
            yield
            return
        from tidegate.cli.bars import Bars

        self._bars = Bars()
        self._bars.start()
        try:
            yield
        finally:
            self._bars.stop()
            self._bars = None

    def say(self, sentence: str) -> None:
        """Say a sentence, above the bars where there are some."""
        if self._bars is None:
            talk(sentence)
        else:
            self._bars.say(readable(sentence))

    def sum_up(self, summary: Summary) -> None:
        """Say what a round did."""
        for line in about_round(summary):
            self.say(line)

    def _tell(self, progress: Progress) -> None:
        now = time.monotonic()
        self._estimate(progress, now)
        if self._bars is None:
            self._line(progress, now)
        else:
            self._bars.show(progress, is_stopping=self._stop.is_set())

    def _estimate(self, progress: Progress, now: float) -> None:
        """Say once, within the first minute, how large the whole is and how long it will take."""
        is_time = now - self._began > ESTIMATE_AFTER_S
        if self._has_estimated or not is_time or progress.left_s is None or not progress.wanted.files:
            return
        self._has_estimated = True
        least = "" if progress.is_scan_complete else "at least "
        self.say(
            f"{least}{progress.wanted.files:,} files, {amount(progress.wanted.size)} to do; "
            f"{least}about {duration(progress.left_s)} at {progress.files_per_s:,.0f} files/s"
        )

    def _line(self, progress: Progress, now: float) -> None:
        if now - self._said_at < LINE_EVERY_S:
            return
        self._said_at = now
        left = f", {duration(progress.left_s)} left" if progress.left_s is not None else ""
        done, wanted = progress.done, progress.wanted
        self.say(
            f"{done.files:,} of {wanted.files:,} files, {amount(done.size)} of {amount(wanted.size)}, "
            f"{progress.files_per_s:,.0f} files/s{left}"
        )
