"""Word documents, presentations, workbooks, OpenDocument files and books, built by hand in each test."""

from __future__ import annotations

import pytest
from text_documents import core, docx, epub, odf, pptx, word_line, xlsx, zipped

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text import Text, TextLimits, extract

LIMITS = TextLimits()


def read(data: bytes, name: str = "file") -> Text:
    return extract(data, name, LIMITS)


def failure(data: bytes, name: str = "file", limits: TextLimits = LIMITS) -> Failure:
    with pytest.raises(ProcessingError) as caught:
        extract(data, name, limits)
    return caught.value.failure


def test_word_document_gives_its_paragraphs_and_title_whatever_its_name() -> None:
    data = docx(word_line("潮汐 at the gate") + word_line("second"), {"docProps/core.xml": core("Tide log")})
    for name in ("a.docx", "a.txt", "a", "a.pdf", "潮.doc", "\udcff\udcfe"):
        assert read(data, name) == Text("潮汐 at the gate\nsecond", "docx", "Tide log", 0, 0, False)


def test_runs_of_one_word_are_joined_and_tabs_and_breaks_are_kept() -> None:
    body = (
        "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>Tide</w:t></w:r><w:r><w:t>gate</w:t><w:tab/><w:t>x</w:t>"
        "<w:br/><w:t>y</w:t><w:noBreakHyphen/><w:t>z</w:t></w:r></w:p>"
    )
    assert read(docx(body)).text == "Tidegate\tx\ny-z"


def test_cells_of_a_word_table_are_parted_by_tabs_and_rows_by_newlines() -> None:
    def row(*cells: str) -> str:
        return "<w:tr>" + "".join(f"<w:tc>{word_line(cell)}</w:tc>" for cell in cells) + "</w:tr>"

    assert read(docx(f"<w:tbl>{row('a', 'b')}{row('c', '')}</w:tbl>" + word_line("after"))).text == "a\tb\nc\nafter"


def test_headers_notes_and_comments_follow_the_body() -> None:
    parts = {
        f"word/{name}.xml": f"<w:x>{word_line(name)}</w:x>" for name in ("comments", "footnotes", "header1", "footer1")
    }
    links = {
        "c": ("comments", "comments.xml"),
        "n": ("footnotes", "/word/footnotes.xml"),
        "h": ("header", "header1.xml"),
        "f": ("footer", "footer1.xml"),
    }
    assert read(docx(word_line("body"), parts, links)).text == "body\nheader1\nfooter1\nfootnotes\ncomments"


def test_deleted_text_fallback_copies_and_phonetic_guides_are_left_out() -> None:
    body = (
        "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>kept</w:t></w:r>"
        "<x:AlternateContent xmlns:x='x'><x:Choice><w:t> once</w:t></x:Choice><x:Fallback><w:t>twice</w:t></x:Fallback>"
        "</x:AlternateContent><w:ruby><w:rt><w:r><w:t>とう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東</w:t></w:r>"
        "</w:rubyBase></w:ruby></w:p>"
    )
    assert read(docx(body)).text == "kept once東"


def test_slides_come_in_the_order_of_the_show_with_their_notes_and_page_ends() -> None:
    found = read(pptx(["one", "two", "three"], [3, 1, 2], {1: "say slowly"}))
    assert (found.kind, found.text, found.pages) == ("pptx", "three\fone\nsay slowly\ftwo", 3)


def test_workbook_gives_sheet_names_cells_and_comments() -> None:
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1"><v>42</v></c></row><row r="3"><c r="B3"><v>2.5</v></c></row>'
    )
    found = read(xlsx(rows, ["潮汐"]), "numbers.bin")
    assert (found.kind, found.text) == ("xlsx", "Log\n潮汐\t42\n\t2.5\nchecked twice")


def test_sparse_sheet_is_streamed_instead_of_laid_out() -> None:
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c></row><row r="1048576"><c r="XFD1048576" t="inlineStr">'
        "<is><t>last</t></is></c>"
        "</row>"
    )
    assert read(xlsx(rows, ["first"])).text == "first\nlast\nchecked twice"


def test_open_document_gives_paragraphs_blanks_tables_and_title() -> None:
    body = (
        "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h>Head</text:h>\n"
        "<text:p>a<text:s text:c='3'/>b<text:tab/>c<text:line-break/>d</text:p><table:table><table:table-row>"
        "<table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell table:number-columns-repeated='9999'>"
        "<text:p>y</text:p></table:table-cell></table:table-row></table:table>"
    )
    styles = "<office:master-styles><text:p>running head</text:p></office:master-styles>"
    assert read(odf("text", body, styles=styles)) == Text(
        "Head\na   b\tc\nd\nx\ty\nrunning head", "odt", "Tides", 0, 0, False
    )


def test_pages_of_an_open_document_presentation_are_parted_by_page_ends() -> None:
    found = read(
        odf("presentation", "<draw:page><text:p>one</text:p></draw:page><draw:page><text:p>two</text:p></draw:page>")
    )
    assert (found.kind, found.text, found.pages) == ("odp", "one\ftwo", 2)


def test_open_document_spreadsheet_gives_what_its_cells_show() -> None:
    row = "<table:table-row><table:table-cell><text:p>1. May</text:p></table:table-cell></table:table-row>"
    found = read(odf("spreadsheet", f"<table:table>{row}{row}</table:table>"))
    assert (found.kind, found.text) == ("ods", "1. May\n1. May")


def test_encrypted_open_document_is_told_by_its_manifest() -> None:
    assert failure(odf("text", "", manifest="<manifest><encryption-data/></manifest>")) is Failure.ENCRYPTED


def test_book_gives_its_chapters_in_reading_order() -> None:
    found = read(epub(["first", "second"], [2, 1]))
    assert (found.kind, found.text, found.title) == ("epub", "second\n\nfirst", "The Gate")


def test_book_with_locked_chapters_is_encrypted_and_one_with_locked_fonts_is_not() -> None:
    def locked(path: str) -> dict[str, str]:
        return {"META-INF/encryption.xml": f"<e><EncryptedData><CipherReference URI='{path}'/></EncryptedData></e>"}

    assert failure(epub(["first"], [1], locked("OPS/text/c 1.xhtml"))) is Failure.ENCRYPTED
    assert read(epub(["first"], [1], locked("OPS/font.otf"))).text == "first"


def test_archive_of_other_files_holds_no_text_of_its_own() -> None:
    found = read(zipped({"photos/readme.txt": "hello", "b.bin": b"\0\1"}), "photos.zip")
    assert found == Text("", "unknown", "", 0, 0, False)


def test_encrypted_parts_of_a_word_document_are_told() -> None:
    data = bytearray(docx(word_line("secret")))
    at = 0
    while (at := data.find(b"PK", at)) >= 0:
        if data[at : at + 4] in (b"PK\x03\x04", b"PK\x01\x02"):
            data[at + (6 if data[at + 2] == 3 else 8)] |= 1
        at += 2
    assert failure(bytes(data)) is Failure.ENCRYPTED


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.99])
def test_truncated_word_document_is_corrupt(share: float) -> None:
    data = docx("".join(word_line(f"line {number}") for number in range(200)))
    assert failure(data[: int(len(data) * share)], "report") is Failure.CORRUPT


def test_word_document_without_its_main_part_is_corrupt() -> None:
    assert failure(zipped({"[Content_Types].xml": "<Types/>", "word/other.xml": "<a/>"})) is Failure.CORRUPT


def test_head_of_an_office_document_is_too_large_to_be_read() -> None:
    with pytest.raises(ProcessingError) as caught:
        extract(docx(word_line("x"))[:200], "a.docx", LIMITS, is_whole=False)
    assert caught.value.failure is Failure.TOO_LARGE


def test_text_beyond_the_cap_is_cut_at_a_character_and_said_to_be() -> None:
    found = extract(docx(word_line("潮" * 100)), "a", TextLimits(text_bytes=100))
    assert (found.text, found.is_truncated) == ("潮" * 33, True)
