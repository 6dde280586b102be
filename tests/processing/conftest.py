"""A workshop: a pool, a ledger and a supervisor with real children, some of whose files do planted things."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from workshop import PLANTS, Workshop


@pytest.fixture
def open_workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Workshop]]:
    """A workshop under given terms; its children know the plants."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(PLANTS)
    monkeypatch.syspath_prepend(str(site))
    made: list[Workshop] = []

    def make(**terms: Any) -> Workshop:
        made.append(Workshop(tmp_path, **terms))
        return made[-1]

    yield make
    for workshop in made:
        workshop.close()
