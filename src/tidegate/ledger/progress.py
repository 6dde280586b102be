"""Progress of a round in files and in bytes, with rates and the time that is left. Pure: the time comes in.

Both counts matter: small files come first, which flatters the file count, and one large file may hold most bytes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

WINDOW_S: Final = 60.0
_ENOUGH: Final = 0.05


@dataclass(frozen=True, slots=True)
class Work:
    """Files and bytes."""

    files: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a round stands. `wanted` grows while the scan goes on; rates are per second over the last minute;
    `left_s` is None while nothing can be said."""

    wanted: Work
    done: Work
    files_per_s: float
    bytes_per_s: float
    left_s: float | None
    is_scan_complete: bool


class Meter:
    """Remembers the last minute of a round."""

    def __init__(self, now_s: float) -> None:
        self._seen: deque[tuple[float, Work]] = deque([(now_s, Work())])

    def read(self, now_s: float, wanted: Work, done: Work, *, is_scan_complete: bool) -> Progress:
        """The progress at `now_s`, which never goes back."""
        self._seen.append((now_s, done))
        while len(self._seen) > 2 and self._seen[1][0] < now_s - WINDOW_S:
            self._seen.popleft()
        began, first = self._seen[0]
        elapsed = max(now_s - began, 1e-6)
        files_per_s = (done.files - first.files) / elapsed
        bytes_per_s = (done.size - first.size) / elapsed
        left = time_left(wanted, done, files_per_s, bytes_per_s)
        return Progress(wanted, done, files_per_s, bytes_per_s, left, is_scan_complete)


def time_left(wanted: Work, done: Work, files_per_s: float, bytes_per_s: float) -> float | None:
    """Seconds until all is done: by files, or by bytes where these will take longer and enough of them were seen."""
    files, size = max(0, wanted.files - done.files), max(0, wanted.size - done.size)
    if files == 0:
        return 0.0
    if files_per_s <= 0:
        return None
    by_files = files / files_per_s
    if bytes_per_s > 0 and done.size >= _ENOUGH * wanted.size:
        return max(by_files, size / bytes_per_s)
    return by_files
