"""Which documents a search finds: exact sets over one small pool."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from index_samples import DAY_NS, document, names_found, publish_next

from tidegate.errors import IndexMissing, QueryError, StateError, UsageError
from tidegate.index import Filters, Searcher

NFC_NAME = unicodedata.normalize("NFC", "Café Ångström.pdf")
NFD_NAME = unicodedata.normalize("NFD", "Café résumé.pdf")

DOCUMENTS = (
    document(1, "东京出差报销单，附发票。", "trips/tokyo.txt", day=1),
    document(2, "The bill for March is secret.", "bills/march.txt", day=2),
    document(3, "东京 secret meeting notes", "trips/secret.md", kind="markdown", day=3),
    document(4, "数据安全管理办法（试行）。本办法自发布之日起施行。", "法规/办法.docx", "管理办法", "docx", day=4),
    document(5, "昨晚重跑gen-itgc后，报表恢复正常。", "ops/log.txt", day=5),
    document(6, "修复 login 之后 ok 了", "ops/fix.txt", day=6),
    document(7, "running contracts were reviewed", "IMG_2024合同v2.pdf", kind="pdf", day=7),
    document(8, "the contract shall run", "invoices/2024/scan.pdf", kind="pdf", day=8),
    document(9, "", "invoices/2024-old/MyReport2023.xlsx", kind="xlsx", day=9),
    document(10, "ＡＢＣ１２３ full width", NFC_NAME, kind="pdf", day=10),
    document(11, "STRASSE Straße ÉCOLE", NFD_NAME, kind="pdf", day=11),
    document(12, "한국어 문서 ひらがな カタカナ ｶﾞｲﾄﾞ 𠮷野家", "misc/asia.txt", day=12),
    document(13, "x" * 70 + " 12345 3.14", b"misc/\xff\xfe broken.bin", kind="", day=13),
)
PATHS = {one.file: one.path.raw for one in DOCUMENTS}
EVERY = set(PATHS)

CASES: list[tuple[str, set[int]]] = [
    # Chinese of one, two, three and more characters
    ("法", {4}),
    ("跑", {5}),
    ("后", {5, 6}),
    ("单", {1}),
    ("东京", {1, 3}),
    ("办法", {4}),
    ("同", {7}),
    ("理办法", {4}),
    ("数据安全", {4}),
    ("数据安全管理办法", {4}),
    ("数据办法", set()),
    ("安全数据", set()),
    # mixed
    ("重跑gen-itgc后", {5}),
    ("重跑gen-itgc", {5}),
    ("跑gen", {5}),
    ("gen后", set()),
    ("itgc后", {5}),
    ("修复 ok", {6}),
    ("修复ok", set()),
    ("合同v2", {7}),
    # boolean
    ("(东京 AND NOT secret) OR bill", {1, 2}),
    ("东京 secret", {3}),
    ("东京 AND secret", {3}),
    ("东京 OR bill", {1, 2, 3}),
    ("东京 OR bill secret", {1, 2, 3}),
    ("东京 -secret", {1}),
    ("secret -东京", {2}),
    ("-东京 -secret type:txt", {5, 6, 12}),
    ("NOT (东京 OR contract)", EVERY - {1, 3, 7, 8}),
    ("-contract", EVERY - {7, 8}),
    ("东京 OR -secret", EVERY - {2}),
    ("NOT NOT 东京", {1, 3}),
    ("（东京 NOT secret） OR bill", {1, 2}),
    ("东京 and secret", set()),
    # phrases
    ('"secret meeting"', {3}),
    ('"meeting secret"', set()),
    ("“the bill”", {2}),
    ('"contract"', {8}),
    ('"管理 办法"', set()),
    ('"bill for" OR “shall run”', {2, 8}),
    # English stems
    ("contract", {7, 8}),
    ("contracting", {7, 8}),
    ("run", {7, 8}),
    ("review", {7}),
    ("reviewing contract", {7}),
    # prefixes
    ("contr*", {7, 8}),
    ("rev*", {7}),
    ("gen-it*", {5}),
    ("xxx*", {13}),
    ("数*", {4}),
    ("数据*", {4}),
    ("12＊", {13}),
    # names: pieces, CamelCase, digits, both forms of Unicode
    ("img", {7}),
    ("2024", {7, 8, 9}),
    ("合同", {7}),
    ("v2", {7}),
    ("pdf", {7, 8, 10, 11}),
    ("IMG_2024合同v2.pdf", {7}),
    ("report", {9}),
    ("my report", {9}),
    ("2023", {9}),
    ("myreport2023", {9}),
    (unicodedata.normalize("NFC", "café"), {10, 11}),
    (unicodedata.normalize("NFD", "café"), {10, 11}),
    (unicodedata.normalize("NFC", "Ångström"), {10}),
    (unicodedata.normalize("NFD", "RÉSUMÉ"), {11}),
    ("broken", {13}),
    # titles and the names of folders
    ("管理办法", {4}),
    ("法规", {4}),
    ("invoices", {8, 9}),
    # folding
    ("abc123", {10}),
    ("ＡＢＣ１２３", {10}),
    ("strasse", {11}),
    ("STRAßE", {11}),
    ("école", {11}),
    ("ガイド", {12}),
    ("국", {12}),
    ("한국", {12}),
    ("らが", {12}),
    ("𠮷", {12}),
    ("𠮷野家", {12}),
    ("x" * 70, {13}),
    ("x" * 69, set()),
    ("3.14", {13}),
    # fields in the query
    ("name:合同", {7}),
    ("name:contract", set()),
    ("name：scan", {8}),
    ('name:"2024 合同"', {7}),
    ("name:my*", {9}),
    ("type:pdf", {7, 8, 10, 11}),
    ("type:.PDF", {7, 8, 10, 11}),
    ("type:md", {3}),
    ("type:markdown", {3}),
    ("folder:invoices/2024", {8}),
    ("folder:Invoices", {8, 9}),
    ("folder:/invoices/2024/*", {8}),
    ('folder:"法规"', {4}),
    ("folder:inv", set()),
    ("contract -folder:invoices", {7}),
    ("http://nowhere", set()),
    # nothing that a pattern would make of it
    ("c.*", set()),
    ("东.", {1, 3}),
    ("[a-z]", set()),
    ("& 东京", {1, 3}),
    ("--contract", {7, 8}),
]


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    root = tmp_path_factory.mktemp("index")
    publish_next(root, *DOCUMENTS)
    with Searcher(root) as opened:
        yield opened


@pytest.mark.parametrize(("query", "expected"), CASES, ids=[query for query, _ in CASES])
def test_query_finds_exactly(searcher: Searcher, query: str, expected: set[int]) -> None:
    assert names_found(searcher, query) == {PATHS[file] for file in expected}


def test_folder_filter_takes_whole_components_of_the_path_as_bytes(searcher: Searcher) -> None:
    assert names_found(searcher, "-nothing", Filters(folder=b"invoices/2024")) == {PATHS[8]}
    assert names_found(searcher, "-nothing", Filters(folder=b"invoices/2024/")) == {PATHS[8]}
    assert names_found(searcher, "-nothing", Filters(folder=b"invoices")) == {PATHS[8], PATHS[9]}
    assert names_found(searcher, "-nothing", Filters(folder=b"Invoices")) == set()
    assert names_found(searcher, "-nothing", Filters(folder="法规".encode())) == {PATHS[4]}
    with pytest.raises(UsageError):
        searcher.search("a", Filters(folder=b"../etc"))


def test_kind_filter_takes_what_the_file_was_found_to_be_or_its_ending(searcher: Searcher) -> None:
    assert names_found(searcher, "-nothing", Filters(kinds=["markdown", "xlsx"])) == {PATHS[3], PATHS[9]}
    assert names_found(searcher, "-nothing", Filters(kinds=["md"])) == {b"trips/secret.md"}
    assert names_found(searcher, "-nothing", Filters(kinds=[""])) == {PATHS[13]}


def test_date_filter_includes_its_start_and_excludes_its_end(searcher: Searcher) -> None:
    assert names_found(searcher, "-nothing", Filters(since_ns=3 * DAY_NS, until_ns=5 * DAY_NS)) == {PATHS[3], PATHS[4]}
    assert names_found(searcher, "-nothing", Filters(since_ns=13 * DAY_NS)) == {PATHS[13]}
    assert names_found(searcher, "-nothing", Filters(until_ns=2 * DAY_NS)) == {PATHS[1]}
    assert names_found(searcher, "-nothing", Filters(since_ns=-(10**30), until_ns=10**30)) == set(PATHS.values())


def test_filters_hold_together_and_beside_the_query(searcher: Searcher) -> None:
    filters = Filters(folder=b"trips", kinds=["plain", "markdown"], since_ns=2 * DAY_NS)
    assert names_found(searcher, "东京 OR bill", filters) == {PATHS[3]}


def test_name_outweighs_text(tmp_path: Path) -> None:
    publish_next(tmp_path, document(1, "budget " * 3, "a.txt"), document(2, "budget", "budget.txt"))
    with Searcher(tmp_path) as opened:
        assert [hit.raw for hit in opened.search("budget").hits] == [b"budget.txt", b"a.txt"]


def test_pages_of_hits_join_without_gap_or_twin(tmp_path: Path) -> None:
    publish_next(tmp_path, *(document(file, "word " * file) for file in range(1, 24)))
    with Searcher(tmp_path) as opened:
        pages = [opened.search("word", limit=5, offset=offset) for offset in range(0, 30, 5)]
        assert [page.total for page in pages] == [23] * 6
        joined = [hit.raw for page in pages for hit in page.hits]
        assert joined == [hit.raw for hit in opened.search("word", limit=100).hits]
        assert len(set(joined)) == 23


@pytest.mark.parametrize(("limit", "offset", "hits"), [(0, 0, 0), (10**18, 0, 13), (5, 10**18, 0), (0, 10**18, 0)])
def test_limits_of_any_size_are_harmless(searcher: Searcher, limit: int, offset: int, hits: int) -> None:
    found = searcher.search("-nothing", limit=limit, offset=offset)
    assert (found.total, len(found.hits)) == (13, hits)


def test_negative_limits_are_refused(searcher: Searcher) -> None:
    for limit, offset in ((-1, 0), (1, -1)):
        with pytest.raises(UsageError):
            searcher.search("a", limit=limit, offset=offset)


def test_hit_says_everything_about_its_file(searcher: Searcher) -> None:
    (hit,) = searcher.search("试行").hits
    assert (hit.path, hit.raw, hit.kind, hit.title) == ("法规/办法.docx", "法规/办法.docx".encode(), "docx", "管理办法")
    assert (hit.size, hit.mtime_ns) == (len(DOCUMENTS[3].text), 4 * DAY_NS)
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["试行"]
    (broken,) = searcher.search("broken").hits
    assert broken.raw == b"misc/\xff\xfe broken.bin"
    assert broken.path == "misc/\\xff\\xfe broken.bin"


def test_marks_show_other_forms_of_an_english_word(searcher: Searcher) -> None:
    marked = {hit.raw: [hit.snippet[a:b] for a, b in hit.marks] for hit in searcher.search("contracted running").hits}
    assert marked == {PATHS[7]: ["running", "contracts"], PATHS[8]: ["contract", "run"]}


def test_prefix_of_too_many_words_still_answers(tmp_path: Path) -> None:
    words = [f"gen a{number}" for number in range(18_000)]
    publish_next(tmp_path, *(document(at, " ".join(words[at::12])) for at in range(12)), document(99, "gen b, a1"))
    with Searcher(tmp_path) as opened:
        assert opened.search("a*").total == 13
        assert opened.search('gen-a* "gen b"').total == 1  # looser than asked, but an answer
        assert opened.search("gen-a1799*").total == 10


HOSTILE = [
    ".*" * 500,
    "(?s).*[[[{1,99999}",
    "a" * 9_999,
    "数" * 9_999,
    "a " * 999,
    "-a " * 999,
    "\ud800 \x00 \u202e x",
    "name:\ud800x",
    "a\\*b",
    "^$|\\p{L}+",
    "(((a)))" * 90,
    '""',
    "*",
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_query_is_answered_or_refused_in_words(searcher: Searcher, query: str) -> None:
    try:
        answer = f"{searcher.search(query).total} found"
    except QueryError as error:
        answer = error.hint
    assert "character" in answer or "found" in answer


def test_searching_before_the_first_publish_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(IndexMissing) as caught:
        Searcher(tmp_path / "none")
    assert "run" in caught.value.hint


def test_closed_searcher_refuses(tmp_path: Path) -> None:
    publish_next(tmp_path, document(1))
    searcher = Searcher(tmp_path)
    searcher.close()
    searcher.close()
    with pytest.raises(StateError):
        searcher.search("a")
