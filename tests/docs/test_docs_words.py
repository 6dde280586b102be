"""Every error code, state, presence, failure and format is documented, under its own word."""

from __future__ import annotations

import ast
import re
from enum import StrEnum

import pytest
from docs_pages import ROOT, page

from tidegate import errors
from tidegate.errors import Failure, TidegateError
from tidegate.index.snapshots import Manifest
from tidegate.ledger import End, Presence, State
from tidegate.ledger.sqlite_store import SQL
from tidegate.ledger.states import FOLLOWS
from tidegate.pool.settle import Verdict
from tidegate.results import Receipt

ENUMS: tuple[type[StrEnum], ...] = (State, Presence, Failure, End, Verdict)
WORDS = [(kind.__name__, word.value) for kind in ENUMS for word in kind]
ERRORS = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, TidegateError)]
CODES = sorted({one.code for one in ERRORS} - {"error", "file"} | {f"file.{failure}" for failure in Failure})


@pytest.mark.parametrize("code", CODES)
def test_error_code_has_a_row_that_says_what_to_try(code: str) -> None:
    row = re.search(rf"^\| `{re.escape(code)}` \| (.+) \| (.+) \|$", page("docs/errors.md"), re.MULTILINE)
    assert row
    assert all(len(cell) > 10 for cell in row.groups())


def test_only_codes_that_exist_have_a_row() -> None:
    assert sorted(re.findall(r"^\| `([a-z_.]+)` \|", page("docs/errors.md"), re.MULTILINE)) == CODES


@pytest.mark.parametrize(("kind", "word"), WORDS, ids=[f"{kind}.{word}" for kind, word in WORDS])
def test_word_has_a_row(kind: str, word: str) -> None:
    assert re.search(rf"^\| `{word}` \|", page("docs/states.md"), re.MULTILINE), kind


def test_transitions_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` → ((?:`\w+`(?:, )?)+) \|", page("docs/states.md"), re.MULTILINE)
    documented = {State(before): {State(word) for word in re.findall(r"\w+", after)} for before, after in rows}
    assert documented == {state: set(after) for state, after in FOLLOWS.items()}


@pytest.mark.parametrize("name", Receipt.__struct_fields__)
def test_field_of_a_receipt_is_documented(name: str) -> None:
    assert f"`{name}`" in page("docs/formats.md")


@pytest.mark.parametrize("name", Manifest.__struct_fields__)
def test_field_of_a_snapshot_is_documented(name: str) -> None:
    assert f"`{name}`" in page("docs/formats.md")


def test_tables_and_columns_of_the_ledger_are_documented() -> None:
    text = page("docs/formats.md")
    schema = "\n".join(sql for name, sql in SQL.items() if name.startswith("migration_"))
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)\)(?: WITHOUT ROWID)?;", schema + ";", re.DOTALL)
    assert tables
    for table, body in tables:
        row = re.search(rf"^\| `{table}` \| (.+)$", text, re.MULTILINE)
        assert row, table
        columns = re.findall(r"(?:^|,)\s*([a-z_]+) (?:INTEGER|TEXT|BLOB)", body)
        assert not [column for column in columns if f"`{column}`" not in row[1]], table


def test_keys_of_json_answers_are_documented() -> None:
    tree = ast.parse((ROOT / "src/tidegate/cli/views.py").read_text(encoding="utf-8"))
    dicts = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
    keys = {key.value for one in dicts for key in one.keys if isinstance(key, ast.Constant)}
    assert keys
    text = page("docs/formats.md")
    assert not [key for key in keys if f'"{key}"' not in text and f"`{key}`" not in text]


def test_glossary_has_the_words_of_the_design() -> None:
    words = "Pool Folder PoolPath Stamp Ledger File Task Claim Fence Processor Receipt Snapshot Participant Outputs"
    words += " Owner Site Round Scan Settle Draft Batch Pack Signature Presence Gate Supervisor Child State Result"
    missing = [word for word in words.split() if f"| **{word}** |" not in page("docs/glossary.md")]
    assert not missing
