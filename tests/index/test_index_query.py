"""The query's parser: trees, refusals with a place, and nothing that brings it down."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.errors import QueryError
from tidegate.index import query
from tidegate.index.query import All, Below, Either, Kind, Node, Not, Word, parse


def shown(node: Node) -> str:
    """The tree on one line."""
    match node:
        case Word(needle, is_name):
            text = " ".join(run.text for run in needle.runs) + ("…" if needle.open_end else "")
            return f"name={text}" if is_name else text
        case Kind(kind):
            return f"kind={kind}"
        case Below(folder):
            return f"below={folder}"
        case Not(part):
            return f"!{shown(part)}"
        case All(parts):
            return f"({' & '.join(map(shown, parts))})"
        case Either(parts):
            return f"({' | '.join(map(shown, parts))})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one", "one"),
        ("one two", "(one & two)"),
        ("one AND two", "(one & two)"),
        ("one OR two three", "(one | (two & three))"),
        ("(one OR two) three", "((one | two) & three)"),
        ("one -two", "(one & !two)"),
        ("NOT one two", "(!one & two)"),
        ("NOT (one two)", "!(one & two)"),
        ("-(one OR two)", "!(one | two)"),
        ('-"one two"', "!one two"),
        ("NOT NOT one", "!!one"),
        ("(东京 AND NOT secret) OR bill", "((东京 & !secret) | bill)"),
        ("one and two or not", "(one & and & two & or & not)"),
        ('"AND" "OR"', "(and & or)"),
        ("“one two”　＂three＂", "(one two & three)"),
        ("（one OR two）three", "((one | two) & three)"),
        ("one(two)three", "(one & two & three)"),
        ("re* 数", "(re… & 数…)"),
        ("re＊", "re…"),
        ('"re*"', "re"),
        ("name:one two", "(name=one & two)"),
        ("-name:one", "!name=one"),
        ('name:"one two" type:PDF', "(name=one two & kind=pdf)"),
        ("folder:invoices/2024/", "below=invoices/2024"),
        ('folder:"a b//./c"', "below=a b/c"),
        ("other:one", "other one"),
        ("& one --", "one"),
        ("one OR &", "one"),
        ("NOT & one", "one"),
        ("(&) one", "one"),
        ("--one", "one"),
        ("one-two", "one two"),
        ("ONE", "one"),
    ],
)
def test_query_reads_as(text: str, expected: str) -> None:
    assert shown(parse(text)) == expected


@pytest.mark.parametrize(
    ("text", "character"),
    [
        ("", 1),
        ("   ", 1),
        ("&", 1),
        ('""', 1),
        ("*", 1),
        ("(one", 1),
        ("one (two", 5),
        ("one)", 4),
        ("()", 2),
        ("one ()", 6),
        ('one "two', 5),
        ("“one", 1),
        ("OR one", 1),
        ("one OR", 7),
        ("one OR OR two", 8),
        ("one AND", 8),
        ("AND", 1),
        ("one NOT", 8),
        ("(NOT)", 5),
        ("name:", 6),
        ("name: one", 6),
        ("type:(pdf)", 6),
        ("folder:../etc", 8),
        ("folder:/", 8),
    ],
)
def test_refusal_names_the_place(text: str, character: int) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert f"at character {character}:" in caught.value.hint or f"from character {character} on" in caught.value.hint
    assert str(caught.value)


def test_nesting_is_refused_beyond_its_depth_and_fine_up_to_it() -> None:
    assert shown(parse("(" * 100 + "one" + ")" * 100)) == "one"
    for deep in ("(" * 101 + "one" + ")" * 101, "NOT " * 101 + "one", "(" * 9_000, "-(" * 4_000):
        with pytest.raises(QueryError, match="nested too deeply"):
            parse(deep)


def test_sizes_are_refused_beyond_their_limit_and_fine_up_to_it() -> None:
    assert isinstance(parse("a " * query.MOST_WORDS), All)
    for text in ("a " * (query.MOST_WORDS + 1), "a* " * (query.MOST_OPEN + 1), "a" * (query.LONGEST_QUERY + 1)):
        with pytest.raises(QueryError) as caught:
            parse(text)
        assert "at most" in caught.value.hint


def test_only_words_that_are_asked_for_are_marked() -> None:
    tree = parse("one -two (three OR NOT four) name:five NOT (NOT six) type:pdf")
    assert [needle.runs[0].text for needle in query.needles(tree)] == ["one", "three"]


PIECES = st.sampled_from(
    [
        "one",
        "数据",
        "法",
        "AND",
        "OR",
        "NOT",
        "-",
        "(",
        ")",
        "（",
        "）",
        '"',
        "“",
        "”",
        "*",
        "name:",
        "type:",
        "folder:",
        "/",
        " ",
        "　",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_anything_is_either_read_or_refused(text: str) -> None:
    try:
        read = shown(parse(text))
    except QueryError as error:
        read = error.hint if "character" in error.hint else ""
    assert read
