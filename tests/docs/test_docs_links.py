"""What a page points at is there: files, headings, modules, functions, tests, make targets."""

from __future__ import annotations

import ast
import importlib
import re
from functools import lru_cache
from pathlib import Path

import pytest
from docs_pages import ROOT, blocks, page, pages, spans

EVERY_PAGE = pytest.mark.parametrize("file", pages(), ids=lambda file: file.relative_to(ROOT).as_posix())
PATH = re.compile(
    r"(?:src|docs|tests|examples|requirements|benchmarks|\.ci)/[\w.*/-]*|[A-Z]+\.md|pyproject\.toml|Makefile"
)


@EVERY_PAGE
def test_links_lead_somewhere(file: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", file.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        there = (file.parent / name).resolve() if name else file
        assert there.exists(), target
        if anchor:
            assert anchor in _anchors(there), target


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@EVERY_PAGE
def test_symbols_exist(file: Path) -> None:
    for span in spans(file.read_text(encoding="utf-8")):
        if re.fullmatch(r"tidegate(\.\w+)+", span) and span.rpartition(".")[2] not in ("toml", "service", "timer"):
            assert _resolves(span), span


def _resolves(name: str) -> bool:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, part, None)
        return True
    return False


@EVERY_PAGE
def test_files_exist(file: Path) -> None:
    for span in spans(file.read_text(encoding="utf-8")):
        if PATH.fullmatch(span) and not list(ROOT.glob(span)):
            assert (file.parent / span).exists(), span


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    """Every function, class and method of the product, and every test: `f`, `C`, `C.f`."""
    found = set()
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
    return frozenset(found)


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_functions_and_tests_exist(name: str) -> None:
    """`f()`, `Class.f()` and `test_…` as they stand in the text."""
    named = [span for span in spans(page(name)) if re.fullmatch(r"[\w.]+\(\)|test_\w+", span)]
    assert not [span for span in named if span.removesuffix("()") not in _names()]


def test_architecture_names_rooms_and_files_that_exist() -> None:
    text = page("ARCHITECTURE.md")
    for span in spans(text):
        if not PATH.fullmatch(span) and re.fullmatch(r"[a-z_]+(/[a-z_]+)*(/|\.py|\.sql)", span):
            assert list((ROOT / "src/tidegate").rglob(span.rstrip("/"))), span
    for room in (ROOT / "src/tidegate").iterdir():
        if (room / "__init__.py").exists():
            assert f"`{room.name}/`" in text, room.name


def test_every_absence_has_a_test_that_is_there() -> None:
    tests = re.findall(r"^def (test_\w+)", page("tests/house/test_absences.py"), re.MULTILINE)
    assert not [name for name in tests if f"`{name}`" not in page("ARCHITECTURE.md")]


# --- commands of the project itself ----------------------------------------------------------------------------------


def _targets() -> set[str]:
    return set(re.findall(r"^(\w+):(?!=)", page("Makefile"), re.MULTILINE))


@EVERY_PAGE
def test_make_targets_exist(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    lines = [*spans(text), *(line for block in blocks(text, "console", "sh") for line in block.splitlines())]
    for line in lines:
        if found := re.match(r"(?:\$ )?make (\w+)", line):
            assert found[1] in _targets(), line


def test_ci_calls_what_the_readme_names() -> None:
    called = re.findall(r"^make (\w+)$", page(".ci/run"), re.MULTILINE)
    assert called == ["demo", "test", "check"]
    for target in called:
        assert f"make {target}" in page("README.md")


def test_every_target_is_phony_and_explained() -> None:
    makefile = page("Makefile")
    phony = set(re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[0].split())
    assert phony == _targets()
    assert not [target for target in phony if f"#   make {target}" not in makefile]


def test_decisions_have_context_choice_and_cost() -> None:
    decisions = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
    assert len(decisions) >= 6
    for one in decisions:
        assert re.findall(r"^## (\w+)$", one.read_text(encoding="utf-8"), re.MULTILINE) == ["Context", "Choice", "Cost"]
