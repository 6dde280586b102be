"""Every command, option and exit code is documented, and what is documented exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_pages import ROOT, commands, options, page, pages, parse_command, said_commands, section

from tidegate.cli.exits import Exit

CLI = "docs/cli.md"
EVERY_COMMAND = pytest.mark.parametrize("name", sorted(commands()))


@EVERY_COMMAND
def test_command_has_a_section_with_every_option(name: str) -> None:
    own, everywhere = section(page(CLI), name), section(page(CLI), "Options of every command")
    assert own, f"docs/cli.md has no section on {name}"
    assert not [option for option in options(name) if f"`{option}" not in own + everywhere]


@EVERY_COMMAND
def test_section_names_no_option_that_is_not_there(name: str) -> None:
    named = set(re.findall(r"`(--[a-z-]+)", section(page(CLI), name)))
    assert named <= options(name)


def test_no_section_is_about_a_command_that_is_not_there() -> None:
    others = {"Options of every command", "Exit codes", "Shell completion", "Queries"}
    assert set(re.findall(r"^## (.+)$", page(CLI), re.MULTILINE)) == set(commands()) | others


@EVERY_COMMAND
def test_help_starts_with_one_sentence_and_two_examples(name: str) -> None:
    first, examples = commands()[name].help.split("\n\n", 1)
    assert first.rstrip().endswith(".")
    assert first.count(". ") == 0
    shown = re.findall(r"`(tidegate [^`]+)`", examples)
    assert examples.startswith("Examples: ")
    assert len(shown) == 2
    for line in shown:
        parse_command(line)


@EVERY_COMMAND
def test_section_shows_an_example(name: str) -> None:
    assert f"tidegate {name}" in section(page(CLI), name)


@pytest.mark.parametrize("file", pages(), ids=lambda file: file.relative_to(ROOT).as_posix())
def test_commands_that_a_page_shows_parse(file: Path) -> None:
    for line in said_commands(file.read_text(encoding="utf-8")):
        parse_command(line)


@pytest.mark.parametrize("code", list(Exit), ids=lambda code: code.name)
@pytest.mark.parametrize("file", ["README.md", CLI])
def test_exit_code_is_documented(code: Exit, file: str) -> None:
    assert re.search(rf"^\| {code.value} \|", page(file), re.MULTILINE)


def test_only_exit_codes_that_exist_are_documented() -> None:
    rows = re.findall(r"^\| (\d+) \|", section(page(CLI), "Exit codes"), re.MULTILINE)
    assert {int(row) for row in rows} == {code.value for code in Exit}


def test_completion_is_documented() -> None:
    assert "--install-completion" in section(page(CLI), "Shell completion")
