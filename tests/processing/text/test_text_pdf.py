"""PDFs, built by hand in each test."""

from __future__ import annotations

import pytest
from text_documents import pdf, pdf_with_map

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text import Text, TextLimits, extract
from tidegate.processing.text.glyphs import is_garbage

LIMITS = TextLimits()
PROSE = "The record shows that high water stood at the gate before noon and that nobody was there to see it"


def failure(data: bytes) -> Failure:
    with pytest.raises(ProcessingError) as caught:
        extract(data, "a.pdf", LIMITS)
    return caught.value.failure


def kept(data: bytes) -> Text | Failure:
    try:
        return extract(data, "a.pdf", LIMITS)
    except ProcessingError as error:
        return error.failure


def test_pages_are_parted_by_page_ends_and_empty_ones_are_counted() -> None:
    found = extract(pdf(["first page", "", "third page"], title="Tide log"), "a.txt", LIMITS)
    assert found == Text("first page\f\fthird page", "pdf", "Tide log", 3, 1, False)


def test_chinese_comes_out_of_a_font_with_a_map() -> None:
    found = extract(pdf_with_map(bytes(range(65, 69)), "潮汐之门"), "a", LIMITS)
    assert (found.text, found.pages_without_text) == ("潮汐之门", 0)


def test_pdf_after_some_junk_is_found_and_a_text_that_speaks_of_pdf_is_not_one() -> None:
    assert extract(b"\0junk\n" + pdf(["late"]), "a.bin", LIMITS).kind == "pdf"
    assert extract(b"A PDF begins with %PDF-1.4, they say.", "a.txt", LIMITS).kind == "plain"


def test_pdf_with_a_user_password_is_encrypted() -> None:
    assert failure(pdf(["secret"], passwords=("open", "sesame"))) is Failure.ENCRYPTED


def test_pdf_with_an_owner_password_only_opens() -> None:
    assert extract(pdf(["free to read"], passwords=("", "sesame")), "a.pdf", LIMITS).text == "free to read"


def test_pdf_of_which_nothing_can_be_read_is_corrupt() -> None:
    assert failure(b"%PDF-1.7\n" + b"nothing of the kind " * 40) is Failure.CORRUPT
    with pytest.raises(ProcessingError, match=r"^damaged PDF: "):
        extract(pdf(["a"])[:40], "a", LIMITS)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_truncated_pdf_is_corrupt_or_gives_the_pages_it_has(share: float) -> None:
    whole = pdf([f"page number {number}" for number in range(20)])
    found = kept(whole[: int(len(whole) * share)])
    assert found is Failure.CORRUPT or (isinstance(found, Text) and found.pages <= 20)


def test_head_of_a_pdf_is_too_large_to_be_read() -> None:
    with pytest.raises(ProcessingError) as caught:
        extract(pdf(["a"])[:100], "a.pdf", LIMITS, is_whole=False)
    assert caught.value.failure is Failure.TOO_LARGE


def test_pages_beyond_the_cap_are_left_out_and_said_to_be() -> None:
    found = extract(pdf(["one", "two", "three"]), "a", TextLimits(pages=2))
    assert (found.text, found.pages, found.is_truncated) == ("one\ftwo", 3, True)


def test_page_of_shifted_glyph_numbers_is_a_candidate_for_ocr() -> None:
    shifted = "".join(chr(ord(letter) - 29) if letter != " " else " " for letter in PROSE)
    found = extract(pdf([PROSE, shifted.replace("\\", "")]), "a", LIMITS)
    assert (found.pages, found.pages_without_text) == (2, 1)


def test_garbage_is_told_from_prose_capitals_numbers_and_codes() -> None:
    assert is_garbage("\ue001\ue002\ue003" * 10)
    assert is_garbage("0SVIQMTWYQ HSPSVWMXEQIX 0SVIQMTWYQHSPSVWMXEQIX")
    real = (
        PROSE,
        PROSE.upper(),
        "12 345,67 890.12 " * 9,
        "潮汐之门的记录" * 9,
        "SGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0" * 2,
        "short",
    )
    assert not any(map(is_garbage, real))


def test_damaged_pdf_after_an_encrypted_one_is_called_damaged() -> None:
    with pytest.raises(ProcessingError) as locked:
        extract(pdf(["secret"], passwords=("user", "owner")), "a.pdf", TextLimits())
    assert locked.value.failure is Failure.ENCRYPTED
    for damaged in (b"%PDF-1.7 not much more", pdf(["whole"])[:120]):
        with pytest.raises(ProcessingError) as caught:
            extract(damaged, "b.pdf", TextLimits())
        assert caught.value.failure is Failure.CORRUPT
