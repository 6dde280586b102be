"""Measures a command together with the processes it starts: peak memory of itself, of its largest descendant, of all at
once. Standard library only, Linux only; looks ten times a second, at peaks that the kernel keeps (VmHWM).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LOOK_EVERY_S: Final = 0.1
_PROC: Final = Path("/proc")


@dataclass(frozen=True)
class FamilyRun:
    """One finished command. `cpu_s` is user + system time with all descendants it waited for; peaks are in MiB:
    `parent_mb` the command itself, `child_mb` its largest descendant, `all_mb` the most that all held at one look (what
    they share counts in each)."""

    code: int
    wall_s: float
    cpu_s: float
    parent_mb: float
    child_mb: float
    all_mb: float
    output: str
    is_ended: bool


@dataclass
class _Peaks:
    highest: dict[int, int] = field(default_factory=dict)
    together: int = 0

    def look(self, parent: int) -> None:
        """Note what the family holds now, in KiB."""
        total = 0
        for process in _family(parent):
            highest, now = _memory(process)
            self.highest[process] = max(highest, self.highest.get(process, 0))
            total += now
        self.together = max(self.together, total)


def run_family(
    command: Sequence[str | Path], *, env: Mapping[str, str] | None = None, limit_s: float = 3600.0
) -> FamilyRun:
    """Run `command` to its end, or for `limit_s` seconds (then it is killed and `is_ended` is false)."""
    peaks, is_ended = _Peaks(), True
    with tempfile.TemporaryFile() as sink:
        began = time.perf_counter()
        child = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=sink, env={**os.environ, **(env or {})}
        )
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.perf_counter() - began > limit_s:
                is_ended = False
                child.kill()
            peaks.look(child.pid)
            time.sleep(LOOK_EVERY_S if peaks.highest else 0.01)
        _, status, usage = os.wait4(child.pid, 0)
        wall_s = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        sink.seek(0)
        output = sink.read().decode("utf-8", "replace")
    parent = peaks.highest.pop(child.pid, 0)
    largest = max(peaks.highest.values(), default=0)
    cpu_s = usage.ru_utime + usage.ru_stime
    sizes = (parent / 1024, largest / 1024, peaks.together / 1024)
    return FamilyRun(child.returncode, wall_s, cpu_s, *sizes, output, is_ended)


def _family(parent: int) -> list[int]:
    """The process and all its descendants."""
    inside: dict[int, list[int]] = {}
    for name in os.listdir(_PROC):
        if name.isdigit():
            with contextlib.suppress(OSError):
                after_name = (_PROC / name / "stat").read_text().rpartition(")")[2].split()
                inside.setdefault(int(after_name[1]), []).append(int(name))
    found = [parent]
    for process in found:
        found += inside.get(process, ())
    return found


def _memory(process: int) -> tuple[int, int]:
    """Peak and present resident size in KiB; zeros where the process is gone."""
    try:
        lines = (_PROC / str(process) / "status").read_text().splitlines()
    except OSError:
        return 0, 0
    values = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith(("VmHWM", "VmRSS"))}
    return int(values.get("VmHWM", 0)), int(values.get("VmRSS", 0))
