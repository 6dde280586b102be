"""What `init` writes is a configuration, and says the defaults that are in force."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from tidegate.cli.template import span, template
from tidegate.config import Config, PoolConfig, duration, parse


def read(text: str) -> Config:
    return parse(tomllib.loads(text), "tidegate.toml", Path("/"))


def test_the_template_as_written_means_the_defaults() -> None:
    assert read(template(Path("/srv/share"))) == Config(PoolConfig(Path("/srv/share")))


def test_the_template_with_every_default_uncommented_still_means_the_defaults() -> None:
    lines = template(Path("/srv/share")).splitlines()[1:]
    wanted = [line.removeprefix("# ") for line in lines if '"…"' not in line]
    sections = [line for line in wanted if not line.startswith("[[")]
    text = "\n".join(line for line in sections if not line.startswith(("priority", "match", "run ", "kept_for")))
    assert read(text) == Config(PoolConfig(Path("/srv/share")))


@pytest.mark.parametrize(
    "path", ['/srv/with "quotes"', "/srv/back\\slash", "/srv/新 文件", "/srv/new\nline", "/srv/del\x7f"]
)
def test_a_path_of_any_characters_comes_back_from_the_template(path: str) -> None:
    assert read(template(Path(path))).pool.path == Path(path)


@pytest.mark.parametrize("seconds", [0.5, 2.0, 90.0, 300.0, 3600.0, 86400.0, 31_536_000.0])
def test_a_default_duration_is_shown_as_it_is_read(seconds: float) -> None:
    assert duration(span(seconds)) == seconds


def test_every_setting_says_what_it_is_for() -> None:
    from tidegate.config import SECTIONS, FolderConfig, settings_of

    for section in (*SECTIONS.values(), FolderConfig):
        for key, entry in settings_of(section).items():
            assert entry.metadata["doc"], key
            assert dataclasses.is_dataclass(section)
