"""The modules of the product as syntax trees, for tests that look at how it is built."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidegate"


@dataclass(frozen=True)
class Module:
    """One module: its path below `src/tidegate`, its text, its tree."""

    name: str
    text: str
    tree: ast.Module


@lru_cache(maxsize=1)
def modules() -> tuple[Module, ...]:
    """Every module of the product."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(SOURCE).as_posix(), text, ast.parse(text)))
    return tuple(found)


def calls(module: Module) -> Iterator[tuple[str, ast.Call]]:
    """Every call in a module with what is called, as it is written: `os.open`, `path.read_text`, `open`."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones too."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
