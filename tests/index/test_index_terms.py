"""Terms: what becomes of a text, and that whatever is cut out of a run of Chinese is found again."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.index import terms

TEXTS = st.text(st.sampled_from("合同书数据𠮷한국かナabcXYZ19ßéＡ９ ，。-_\u00ad\u0301\n"), max_size=40)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("合同书", ["合同", "同书", "书"]),
        ("合", ["合"]),
        ("合 同", ["合", "同"]),
        ("重跑gen-itgc后", ["重跑", "跑", "gen", "itgc", "后"]),
        ("Don't stop", ["don", "t", "stop"]),
        ("snake_case", ["snake", "case"]),
        ("ＩＭＧ２０，ｘ", ["img20", "x"]),
        ("ｶﾞｲﾄﾞ", ["ガイ", "イド", "ド"]),
        ("Cafe\u0301", ["café"]),
        ("con\u00adtract zero\u200bwidth", ["contract", "zerowidth"]),
        ("⼀二", ["一二", "二"]),
        ("\ufa19社", ["神社", "社"]),
        ("한국어", ["한국", "국어", "어"]),
        (unicodedata.normalize("NFD", "한국"), ["한국", "국"]),
        ("𠮷野", ["𠮷野", "野"]),
        ("Straße", ["strasse"]),
        ("ΣΊΣΥΦΟΣ", ["σίσυφοσ"]),
        ("हिन्दी", ["हिन्दी"]),
        ("a" * 130, ["a" * 64, "a" * 64, "aa"]),
        ("", []),
        (" ,.-_*|", []),
    ],
)
def test_text_becomes_terms(text: str, expected: list[str]) -> None:
    assert terms.split(text) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IMG_2024合同v2.pdf", {"img", "2024", "合同", "同", "v2", "v", "2", "pdf"}),
        ("MyReport2023.xlsx", {"myreport2023", "myreport", "2023", "my", "report", "xlsx"}),
        ("PDFFile.TXT", {"pdffile", "pdf", "file", "txt"}),
        ("plain.txt", {"plain", "txt"}),
    ],
)
def test_name_is_read_in_several_ways(name: str, expected: set[str]) -> None:
    rows = terms.name_rows(name)
    assert {term for row in rows for term in row} == expected
    assert len(rows) <= 3
    assert all(rows.count(row) == 1 for row in rows)


def test_both_unicode_forms_of_a_name_give_the_same_terms() -> None:
    name = "Ångström résumé 가격.pdf"
    assert terms.name_rows(unicodedata.normalize("NFD", name)) == terms.name_rows(unicodedata.normalize("NFC", name))


@pytest.mark.parametrize(
    ("text", "terms_at", "open_end"),
    [
        ("数", (), (0, "数")),
        ("数据", ((0, "数据"),), None),
        ("数据库", ((0, "数据"), (1, "据库")), None),
        ("跑gen", ((0, "跑"), (1, "gen")), None),
        ("gen后", ((0, "gen"),), (1, "后")),
        ("重跑gen-itgc后", ((0, "重跑"), (1, "跑"), (2, "gen"), (3, "itgc")), (4, "后")),
    ],
)
def test_needle_leaves_open_what_the_document_may_continue(
    text: str, terms_at: tuple[tuple[int, str], ...], open_end: tuple[int, str] | None
) -> None:
    needle = terms.needle(text)
    assert needle is not None
    assert (needle.terms, needle.open_end) == (terms_at, open_end)


def test_only_the_last_word_right_before_a_star_is_a_prefix() -> None:
    found = [terms.needle(text, is_prefix=True) for text in ("re*", "a.re*", "a.re.*")]
    assert [needle and needle.open_end for needle in found] == [(0, "re"), (1, "re"), None]


def test_stem_serves_single_english_words_only() -> None:
    stems = [needle.stem for text in ("Running", "gen-itgc", "x1", "合同", "ab") if (needle := terms.needle(text))]
    assert stems == ["run", "", "", "", ""]
    exact = terms.needle("running", is_exact=True)
    assert exact is not None
    assert exact.stem == ""


def test_long_text_gives_the_same_terms_in_slices() -> None:
    text = "数据安全 management, of data。" * 9_000
    assert len(text) > 200_000
    slices = list(terms.slices(text))
    assert len(slices) > 2
    assert [term for part in slices for term in part] == terms.split(text)


def test_endless_run_is_cut_rather_than_held_whole() -> None:
    assert max(map(len, terms.slices("数" * 2_500_000))) <= 1 << 20


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_terms_hold_nothing_that_means_something_in_a_pattern_or_to_the_tokeniser(text: str) -> None:
    for term in terms.split(text):
        assert term
        assert len(term) <= 64
        assert not any(character.isspace() or character in r".^$*+?()[]{}|\/-&~#_" for character in term)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_form_of_unicode_makes_no_difference(text: str) -> None:
    assert terms.split(unicodedata.normalize("NFD", text)) == terms.split(unicodedata.normalize("NFC", text))


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert terms.fold(terms.fold(text)) == terms.fold(text)


@given(TEXTS, st.data())
@settings(max_examples=300, deadline=None)
def test_every_piece_of_a_run_is_a_row_of_its_terms(text: str, data: st.DataObject) -> None:
    paired = [run.text for run in terms.runs(terms.fold(text)) if run.is_paired and len(run.text) > 1]
    for run in paired:
        start = data.draw(st.integers(0, len(run) - 2))
        piece = run[start : data.draw(st.integers(start + 2, len(run)))]
        needle = terms.needle(piece)
        assert needle is not None
        row, wanted = terms.split(run), [term for _, term in needle.terms]
        assert any(row[at : at + len(wanted)] == wanted for at in range(len(row)))
