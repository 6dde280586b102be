"""docs/config.md says of every setting what the code says of it: key, default, meaning."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from docs_pages import ROOT, blocks, page, pages, section

from tidegate import config
from tidegate.cli.template import shown_default
from tidegate.intake.ignore import BUILT_IN
from tidegate.intake.rules import NO_TEXT

PAGE = "docs/config.md"
SECTIONS = {**config.SECTIONS, "pool.folder": config.FolderConfig}
SETTINGS = [(name, key) for name, kind in SECTIONS.items() for key in config.settings_of(kind)]


def _heading(name: str) -> str:
    return f"`[[{name}]]`" if name in config.REPEATED else f"`[{name}]`"


@pytest.mark.parametrize(("name", "key"), SETTINGS, ids=[f"{name}.{key}" for name, key in SETTINGS])
def test_setting_stands_with_its_default_and_meaning(name: str, key: str) -> None:
    entry = config.settings_of(SECTIONS[name])[key]
    default = shown_default(entry)
    wanted = f"| `{key}` | {'–' if default == chr(34) + '…' + chr(34) else f'`{default}`'} | {entry.metadata['doc']} |"
    assert wanted in section(page(PAGE), _heading(name))


def test_no_setting_is_documented_that_is_not_there() -> None:
    for name, kind in SECTIONS.items():
        rows = re.findall(r"^\| `([a-z_]+)` \|", section(page(PAGE), _heading(name)), re.MULTILINE)
        assert sorted(rows) == sorted(config.settings_of(kind))


def test_every_variable_of_the_environment_is_documented() -> None:
    source = Path(config.__file__).read_text(encoding="utf-8")
    for name in re.findall(r'os\.environ\.get\("(\w+)"', source):
        assert f"`{name}`" in section(page(PAGE), "Environment")


@pytest.mark.parametrize("file", pages(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_configurations_that_a_page_shows_are_read(file: Path) -> None:
    for block in blocks(file.read_text(encoding="utf-8"), "toml"):
        config.parse({"pool": {"path": "pool"}} | tomllib.loads(block), file.name, Path("/"))


@pytest.mark.parametrize(("pattern", "reason"), BUILT_IN, ids=[pattern for pattern, _ in BUILT_IN])
def test_what_is_never_taken_in_is_documented_with_its_reason(pattern: str, reason: str) -> None:
    rows = section(page(PAGE), "What is never taken in").splitlines()
    assert any(f"`{pattern}`" in row and reason in row for row in rows)


def test_endings_without_text_are_documented() -> None:
    words = set(re.findall(r"[a-z0-9]+", section(page(PAGE), "Which processor runs")))
    assert words >= NO_TEXT
