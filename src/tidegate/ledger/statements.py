"""Named SQL: one file a store, each statement under a line `-- :name NAME` and a line of purpose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources

_NAME = re.compile(r"^-- :name (\w+)\n-- .+$", re.MULTILINE)


def load(file: str) -> Mapping[str, str]:
    """The statements of `file` in this room, by name."""
    text = resources.files("tidegate.ledger").joinpath(file).read_text(encoding="utf-8")
    parts = _NAME.split(text)
    return {name: sql.strip().rstrip(";") for name, sql in zip(parts[1::2], parts[2::2], strict=True)}
