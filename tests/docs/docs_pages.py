"""The pages of the project, and the program that they speak of, for tests that hold one against the other."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import typer.main

from tidegate.cli.app import app

ROOT = Path(__file__).parents[2]


@lru_cache(maxsize=1)
def pages() -> tuple[Path, ...]:
    """Every page."""
    return (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted(ROOT.glob("examples/**/*.md")))


def page(name: str) -> str:
    """The text of one page."""
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """What stands below a heading of the second level, up to the next one; empty where there is no such heading."""
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def blocks(text: str, *languages: str) -> Iterator[str]:
    """The fenced blocks in these languages."""
    for language, content in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL):
        if language in languages:
            yield content


def spans(text: str) -> Iterator[str]:
    """What stands between single backticks, outside fenced blocks."""
    yield from re.findall(
        r"(?<!`)`([^`\n]+)`(?!`)", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    )


@lru_cache(maxsize=1)
def commands() -> Mapping[str, Any]:
    """The commands of the program by name."""
    group: Any = typer.main.get_command(app)
    found: Mapping[str, Any] = group.commands
    return found


def options(name: str) -> set[str]:
    """The long options of a command."""
    return {word for one in commands()[name].params for word in one.opts if word.startswith("--")}


def said_commands(text: str) -> Iterator[str]:
    """Every `tidegate …` that a page shows, in blocks and in the running text."""
    for block in blocks(text, "console", "sh", "bash"):
        for line in block.splitlines():
            shown = line.removeprefix("$ ").strip()
            if shown.startswith("tidegate "):
                yield shown
    yield from (span for span in spans(text) if span.startswith("tidegate ") and "…" not in span)


def parse_command(line: str) -> None:
    """Let the program read a command line without running it; raises where it does not."""
    words = shlex.split(line, comments=True)
    ends = [at for at, word in enumerate(words) if word in ("|", ">", ">>", "&&", "||", ";", "2>", "&")]
    name, *arguments = words[1 : ends[0]] if ends else words[1:]
    if name.startswith("-"):
        return
    commands()[name].make_context(name, [one for one in arguments if one not in ("-h", "--help")])
