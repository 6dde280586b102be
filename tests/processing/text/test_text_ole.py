"""Old office files: real ones made by LibreOffice (tests/fixtures/text/README.md), and containers built by hand."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from text_documents import ole

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text import TextLimits, extract

LIMITS = TextLimits()
FIXTURES = Path(__file__).parents[2] / "fixtures" / "text"


def failure(data: bytes) -> Failure:
    with pytest.raises(ProcessingError) as caught:
        extract(data, "file", LIMITS)
    return caught.value.failure


def test_old_word_document_gives_its_text_and_title() -> None:
    found = extract((FIXTURES / "note.doc").read_bytes(), "a.txt", LIMITS)
    assert (found.kind, found.title) == ("doc", "Tide tables")
    for wanted in ("High water at the gate. 潮汐门的记录。", "left cell", "right cell"):
        assert wanted in found.text


def test_old_workbook_gives_its_cells() -> None:
    found = extract((FIXTURES / "sheet.xls").read_bytes(), "a", LIMITS)
    assert (found.kind, found.text) == ("xls", "sheet\nname\tcount\n潮汐\t42\ngate\t2.5")


def test_old_presentation_gives_its_text() -> None:
    found = extract(lzma.decompress((FIXTURES / "deck.ppt.xz").read_bytes()), "a", LIMITS)
    assert found.kind == "ppt"
    assert "High water 潮汐" in found.text
    assert "Low water" in found.text


def test_modern_document_in_an_encrypted_package_is_encrypted() -> None:
    assert failure(ole({"EncryptedPackage": b"x", "EncryptionInfo": b"y"})) is Failure.ENCRYPTED


def test_old_documents_that_ask_for_a_password_are_encrypted() -> None:
    word = b"\xec\xa5\xc1\0" + b"\0" * 7 + b"\x01"
    assert failure(ole({"WordDocument": word, "1Table": b"x"})) is Failure.ENCRYPTED
    show = b"\0" * 12 + b"\xdf\xc4\xd1\xf3"
    assert failure(ole({"PowerPoint Document": b"x", "Current User": show})) is Failure.ENCRYPTED
    book = b"\x09\x08\x04\0\0\x06\x05\0" + b"\x2f\0\x06\0" + b"\0" * 6
    assert failure(ole({"Workbook": book})) is Failure.ENCRYPTED


@pytest.mark.parametrize("name", ["WordDocument", "PowerPoint Document", "Workbook", "Book"])
def test_old_documents_full_of_nonsense_are_corrupt(name: str) -> None:
    assert failure(ole({name: b"nonsense " * 500})) is Failure.CORRUPT


def test_container_of_something_else_holds_no_text() -> None:
    assert extract(ole({"Catalog": b"thumbnails"}), "Thumbs.db", LIMITS).kind == "unknown"


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("name", ["note.doc", "sheet.xls"])
def test_truncated_old_documents_raise_nothing_but_processing_errors(name: str, share: float) -> None:
    data = (FIXTURES / name).read_bytes()
    try:
        found = extract(data[: int(len(data) * share)], name, LIMITS)
    except ProcessingError as error:
        found = error.failure
    assert found is Failure.CORRUPT or getattr(found, "kind", "") in ("doc", "xls", "unknown")


def test_head_of_an_old_document_is_too_large_to_be_read() -> None:
    with pytest.raises(ProcessingError) as caught:
        extract((FIXTURES / "note.doc").read_bytes()[:600], "a.doc", LIMITS, is_whole=False)
    assert caught.value.failure is Failure.TOO_LARGE
