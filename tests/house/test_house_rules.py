"""Sizes, names and shape of the source: what a reader may rely on before opening a file."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from house_sources import ROOT, Module, functions, modules

LONGEST_FILE = 600
LONGEST_FUNCTION = 80
MOST_PARAMETERS = 6
NO_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
EVERY_MODULE = pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)


@EVERY_MODULE
def test_file_is_short(module: Module) -> None:
    assert module.text.count("\n") < LONGEST_FILE


@EVERY_MODULE
def test_functions_are_short(module: Module) -> None:
    long = [one.name for one in functions(module) if (one.end_lineno or 0) - one.lineno + 1 >= LONGEST_FUNCTION]
    assert not long


@EVERY_MODULE
def test_functions_have_few_parameters(module: Module) -> None:
    """Commands are excepted: one has as many parameters as options."""
    many = []
    for function in functions(module):
        given = function.args
        names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        if len([name for name in names if name not in ("self", "cls")]) > MOST_PARAMETERS:
            many.append(function.name)
    assert not many or module.name == "cli/app.py"


@EVERY_MODULE
def test_module_says_what_it_promises(module: Module) -> None:
    assert ast.get_docstring(module.tree)


@EVERY_MODULE
def test_name_says_what_it_holds(module: Module) -> None:
    assert not NO_NAMES & set(module.name.removesuffix(".py").split("/"))


def test_rooms_hold_no_logic_in_their_init() -> None:
    """A room's `__init__` names its public face; the package's own has one function, which imports Gate late."""
    allowed = (ast.Expr, ast.Import, ast.ImportFrom, ast.Assign, ast.AnnAssign)
    for module in modules():
        if not module.name.endswith("__init__.py"):
            continue
        body = module.tree.body
        if module.name == "__init__.py":
            body = [one for one in body if not (isinstance(one, ast.FunctionDef) and one.name == "__getattr__")]
            body = [one for one in body if not (isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING")]
        assert all(isinstance(one, allowed) for one in body), module.name


def test_public_functions_say_what_comes_back() -> None:
    silent = [
        f"{module.name}:{function.lineno} {function.name}"
        for module in modules()
        for function in _public(module.tree)
        if not ast.get_docstring(function)
    ]
    assert not silent


def _public(tree: ast.Module) -> list[ast.FunctionDef]:
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef) and not one.name.startswith("_")]
    bodies = [tree.body, *(one.body for one in classes)]
    found = [one for body in bodies for one in body if isinstance(one, ast.FunctionDef)]
    return [one for one in found if not one.name.startswith("_")]


def test_imports_point_down() -> None:
    """The contracts in pyproject.toml: floors, and no cycles inside a room."""
    beside = Path(sys.executable).parent / "lint-imports"
    program = str(beside) if beside.exists() else shutil.which("lint-imports")
    if program is None:
        pytest.skip("import-linter is not installed")
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
