"""Snippets: the right piece, the right marks, in bounded time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from index_samples import document

from tidegate.index import layout, query, snippets, terms


def cut(text: str, asked: str) -> tuple[str, list[str]]:
    snippet = snippets.cut([text], tuple(query.needles(query.parse(asked))))
    return snippet.text, [snippet.text[start:end] for start, end in snippet.marks]


@pytest.mark.parametrize(
    ("text", "asked", "marked"),
    [
        ("数据安全管理办法", "安全", ["安全"]),
        ("数据安全管理办法", "法", ["法"]),
        ("数据安全,数据安全", "数据安全", ["数据安全", "数据安全"]),
        ("running runs ran outrun RUN", "run", ["running", "runs", "RUN"]),
        ("happy happiness unhappy", "happy", ["happy", "happiness"]),
        ("hoping hope hop", "hope", ["hoping", "hope"]),
        ("running run", '"run"', ["run"]),
        ("re review preview", "re*", ["re", "review"]),
        ("昨晚重跑gen-itgc后来", "重跑gen-itgc后", ["重跑gen-itgc后"]),
        ("gen itgc gen, x itgc", "gen-itgc", ["gen itgc"]),
        ("secret 东京 bill", "东京 -secret OR bill", ["东京", "bill"]),
        ("Straße STRASSE", "strasse", ["Straße", "STRASSE"]),
        (unicodedata.normalize("NFD", "un café noir"), "café", [unicodedata.normalize("NFD", "café")]),
        (unicodedata.normalize("NFD", "é" * 500 + " café"), "café", [unicodedata.normalize("NFD", "café")]),
        ("ＡＢＣ and con\u00adtract", "abc contract", ["ＡＢＣ", "con\u00adtract"]),
        ("ß" * 900 + " end", "end", ["end"]),
        ("合同v2", "v2", ["v2"]),
        ("ab2 2", "2", ["2"]),
        ("nothing here", "合同", []),
        ("", "合同", []),
    ],
)
def test_marks_are_what_was_asked_for(text: str, asked: str, marked: list[str]) -> None:
    assert cut(text, asked)[1] == marked


def test_piece_is_about_the_densest_cluster() -> None:
    text = "alpha " + "filler " * 100 + "alpha beta alpha " + "filler " * 100 + "beta"
    piece, marked = cut(text, "alpha beta")
    assert marked == ["alpha", "beta", "alpha"]
    assert piece.startswith("…filler")
    assert piece.endswith("…")
    assert 100 <= len(piece) <= snippets.WIDTH + 2


def test_blanks_collapse_and_control_characters_cannot_reach_a_terminal() -> None:
    piece, marked = cut("one \r\n\t  two\x1b[31m\u202e three\x00", "two three")
    assert piece == "one two [31m three "
    assert marked == ["two", "three"]


def test_beginning_serves_where_only_the_name_matched() -> None:
    assert cut("word " * 100, "合同") == (("word " * 32) + "…", [])


def test_portions_are_read_only_as_far_as_needed() -> None:
    read = []

    def portions() -> Iterator[str]:
        for number in range(5):
            read.append(number)
            yield f"portion {number}"

    assert snippets.cut(portions(), [found for found in [terms.needle("2")] if found]).text == "portion 2"
    assert read == [0, 1, 2]


def test_long_text_is_kept_packed_and_unpacked_in_portions() -> None:
    text = "数据安全 word " * 20_000
    record = layout.record_of(layout.to_stored(document(1, text)).get_first("record"))
    assert len(record.packed) < len(text) / 10
    portions = list(record.texts(1 << 16))
    assert len(portions) > 5
    assert "".join(portions).replace("\ufffd", "") in text or len("".join(portions)) > len(text) - 20


def test_needle_at_the_end_of_a_large_text_is_found_in_what_is_stored() -> None:
    text = "filler " * 100_000 + "合同"
    record = layout.record_of(layout.to_stored(document(1, text)).get_first("record"))
    snippet = snippets.cut(record.texts(1 << 16), [found for found in [terms.needle("合同")] if found])
    assert [snippet.text[a:b] for a, b in snippet.marks] == ["合同"]


ANY_TEXT = st.text(st.sampled_from("合同数据abeé\u0301ßＡ９ \n,\u00ad\u200b\x00"), max_size=400)


@given(ANY_TEXT, st.sampled_from(["合同", "数", "ab", "a*", "é", "ss", "a9 合", '"b 合"']))
@settings(max_examples=400, deadline=None)
def test_marks_lie_in_the_snippet_in_order_and_fold_to_what_was_asked(text: str, asked: str) -> None:
    needles = tuple(query.needles(query.parse(asked)))
    snippet = snippets.cut([text], needles)
    places = [place for mark in snippet.marks for place in mark]
    assert places == sorted(set(places))
    assert all(0 <= place <= len(snippet.text) for place in places)
    for start, end in snippet.marks:
        marked = terms.fold(snippet.text[start:end])
        assert any(needle.runs[0].text[:1] in marked for needle in needles)
