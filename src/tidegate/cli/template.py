"""The commented `tidegate.toml` that `init` writes, made from the settings themselves."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec

from tidegate.config import REPEATED, SECTIONS, FolderConfig, settings_of


def template(pool: Path) -> str:
    """A configuration for `pool` in which every other setting stands as a comment with its default."""
    lines = ["# Configuration of Tidegate; see docs/config.md. What is commented out is the default.", ""]
    for name, section in SECTIONS.items():
        lines += _section(name, section, pool)
        if name == "pool":
            lines += _section("pool.folder", FolderConfig, pool)
    return "\n".join(lines)


def _section(name: str, section: type, pool: Path) -> list[str]:
    is_live = name == "pool"
    header = f"[[{name}]]" if name in REPEATED else f"[{name}]"
    lines = [header if is_live else f"# {header}"]
    for key, entry in settings_of(section).items():
        if is_live and key == "path":
            lines.append(f"path = {_toml(str(pool))}")
        else:
            lines.append(f"# {key} = {shown_default(entry)}  # {entry.metadata['doc']}")
    return [*lines, ""]


def shown_default(entry: dataclasses.Field[Any]) -> str:
    """A setting's default as TOML, or a word that says there is none."""
    value = entry.default
    if value is dataclasses.MISSING or value is None or value == "":
        return '"…"'
    if entry.metadata["read"].__name__ == "duration":
        return f'"{span(value)}"'
    return _toml(value)


def span(seconds: float) -> str:
    """Seconds as a duration that the configuration takes: `1h`, `5m`, `2s`."""
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:g}s"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # TOML's escapes are JSON's, and TOML wants one for DEL as well.
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    return str(value)
