"""The settings in force, one by one, under the names of the configuration file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from tidegate.config import REPEATED, SECTIONS, Config, FolderConfig, settings_of
from tidegate.pool import display


def in_force(config: Config) -> dict[str, Any]:
    """`section.key` to value; durations in seconds, sizes in bytes, sections that may repeat numbered from 0."""
    shown: dict[str, Any] = {}
    for name, section in SECTIONS.items():
        shown |= dict(_values(name, section, getattr(config, name)))
    return shown | dict(_values("pool.folder", FolderConfig, config.pool.folder))


def _values(name: str, section: type, value: Any) -> Iterator[tuple[str, Any]]:
    if name in REPEATED:
        for number, entry in enumerate(value):
            yield from _plain(f"{name}.{number}", section, entry)
    else:
        yield from _plain(name, section, value)


def _plain(name: str, section: type, value: Any) -> Iterator[tuple[str, Any]]:
    for key, entry in settings_of(section).items():
        given = getattr(value, entry.name)
        is_plain = given is None or isinstance(given, bool | int | float)
        yield f"{name}.{key}", given if is_plain else display(os.fsencode(given))
