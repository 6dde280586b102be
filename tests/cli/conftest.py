"""The program `tidegate` in a process of its own, on a pool whose files settle at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Program:
    """Runs commands; configuration, state and pool are the test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.pool, self.state = folder, folder / "pool", folder / "state"
        self.config = folder / "tidegate.toml"
        self.configure()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder / "home"),
            "LC_ALL": "C.UTF-8",
            "COLUMNS": "200",
        }

    def configure(self, more: str = "") -> None:
        self.config.write_text(f'[pool]\npath = "pool"\nstate = "state"\nsettle = "50ms"\n{more}')

    def arguments(self, *words: str) -> list[str]:
        return [sys.executable, "-P", "-m", "tidegate", *words]

    def start(self, *words: str, **more: Any) -> subprocess.Popen[str]:
        given = {"cwd": self.folder, "env": self.environment, "text": True} | more
        pipe = subprocess.PIPE
        return subprocess.Popen(self.arguments(*words), stdout=pipe, stderr=pipe, **given)

    def __call__(self, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """Run to the end. No command may ever show a traceback."""
        given = {"cwd": self.folder, "env": self.environment, "text": True, "timeout": 60} | more
        done = subprocess.run(self.arguments(*words), capture_output=True, check=False, **given)
        assert "Traceback" not in done.stderr, done.stderr
        return done


@pytest.fixture
def tidegate(tmp_path: Path) -> Program:
    (tmp_path / "pool").mkdir()
    return Program(tmp_path)


@pytest.fixture
def fill(tidegate: Program) -> Callable[..., None]:
    def write(count: int = 6, text: str = "合同 report number {}") -> None:
        for number in range(count):
            path = tidegate.pool / f"d{number % 3}" / f"{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text.format(number))

    return write
