"""Whatever the bytes and the name are: a text or a ProcessingError comes out, nothing else."""

from __future__ import annotations

import random
import struct
import zipfile
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_documents import docx, epub, odf, ole, pdf, pptx, word_line, xlsx, zipped

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text import Text, TextLimits, extract

LIMITS = TextLimits()
ALLOWED = frozenset({Failure.CORRUPT, Failure.ENCRYPTED, Failure.EMPTY, Failure.TOO_LARGE})


def outcome(data: bytes, name: str, limits: TextLimits = LIMITS, *, is_whole: bool = True) -> Failure | Text:
    """What comes of it; anything but a text or an allowed failure raises."""
    try:
        found = extract(data, name, limits, is_whole=is_whole)
    except ProcessingError as error:
        if error.failure not in ALLOWED:
            raise
        return error.failure
    found.text.encode("utf-8")
    assert not any(ord(character) < 32 and character not in "\n\t\f" for character in found.text)
    assert len(found.text.encode()) <= limits.text_bytes
    return found


def message() -> bytes:
    letter = EmailMessage()
    letter["From"], letter["To"], letter["Subject"] = "a@example.org", "b@example.org", "潮汐"
    letter.set_content("plain")
    letter.add_alternative("<p>rich</p>", subtype="html")
    letter.add_attachment(docx(word_line("x")), maintype="application", subtype="x", filename="a.docx")
    return letter.as_bytes()


VALID = {
    "docx": docx(word_line("潮汐 at the gate")),
    "pptx": pptx(["one", "two"], [1, 2]),
    "xlsx": xlsx('<row r="1"><c r="A1" t="s"><v>0</v></c></row>', ["潮汐"]),
    "odt": odf("text", "<text:p>a</text:p>"),
    "epub": epub(["a"], [1]),
    "pdf": pdf(["one", "two"], title="T"),
    "locked pdf": pdf(["one"], passwords=("", "o")),
    "eml": message(),
    "msg": ole({"__properties_version1.0": b"\0" * 32, "__substg1.0_0037001E": b"x", "__substg1.0_10130102": b"<p>y"}),
    "rtf": rb"{\rtf1\ansi\ansicpg936{\fonttbl{\f0 A;}}\u28526?\'b0\'a1{\footnote n}\par}",
    "html": "<html><head><meta charset=gbk></head><body><p>潮汐</p></body></html>".encode("gbk"),
    "xml": b"<?xml version='1.0' encoding='big5'?><a b='c'><d>text</d></a>",
    "gbk": "闸门管理办法，请各部门认真执行".encode("gbk"),
    "utf-16": "闸门管理办法\n".encode("utf-16"),
}


def stored(name: str) -> bytes:
    """The valid document with its zip parts unpacked, so that a mutation reaches the XML."""
    if name not in ("docx", "pptx", "xlsx", "odt", "epub"):
        return VALID[name]
    import io

    with zipfile.ZipFile(io.BytesIO(VALID[name])) as archive:
        return zipped({part: archive.read(part) for part in archive.namelist()}, zipfile.ZIP_STORED)


@given(data=st.binary(max_size=300), name=st.text(max_size=12), is_whole=st.booleans())
@settings(max_examples=300, deadline=None)
def test_random_bytes_of_any_name_give_a_text_or_a_processing_error(data: bytes, name: str, is_whole: bool) -> None:
    outcome(data, name, is_whole=is_whole)


MAGIC = [
    b"%PDF-1.4\n",
    b"PK\x03\x04",
    b"{\\rtf1 ",
    b"<html>",
    b"<?xml version='1.0'?>",
    b"From: a\nTo: b\nSubject: c\n\n",
]


@given(head=st.sampled_from(MAGIC), data=st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_random_bytes_behind_a_real_beginning_give_a_text_or_a_processing_error(head: bytes, data: bytes) -> None:
    outcome(head + data, "file")


@given(kind=st.sampled_from(sorted(VALID)), seed=st.integers(0, 2**32), is_unpacked=st.booleans())
@settings(max_examples=600, deadline=None)
def test_mutated_documents_give_a_text_or_a_processing_error(kind: str, seed: int, is_unpacked: bool) -> None:
    numbers = random.Random(seed)
    data = bytearray(stored(kind) if is_unpacked else VALID[kind])
    for _ in range(numbers.randint(1, 8)):
        at = numbers.randrange(len(data))
        match numbers.randrange(4):
            case 0:
                data[at] = numbers.randrange(256)
            case 1:
                del data[at : at + numbers.randrange(1, 40)]
            case 2:
                data[at:at] = numbers.randbytes(numbers.randrange(1, 8))
            case _:
                data[at:at] = data[at : at + numbers.randrange(1, 60)]
        if not data:
            return
    outcome(bytes(data), "file")


@pytest.mark.parametrize("kind", sorted(VALID))
def test_every_document_is_readable_before_it_is_mutated(kind: str) -> None:
    assert isinstance(outcome(VALID[kind], "file"), Text)
    assert isinstance(outcome(stored(kind), "file"), Text)


def test_part_that_unpacks_to_more_than_the_cap_is_too_large() -> None:
    bomb = docx("<w:p>" + " " * 3_000_000 + "</w:p>")
    assert outcome(bomb, "a.docx", TextLimits(part_bytes=1_000_000)) is Failure.TOO_LARGE


def test_part_that_unpacks_to_too_many_times_its_size_is_too_large() -> None:
    bomb = docx("<w:p>" + " " * 3_000_000 + "</w:p>")
    assert outcome(bomb, "a.docx", TextLimits(ratio=100)) is Failure.TOO_LARGE


@pytest.mark.parametrize(
    "build", [lambda body: xlsx(body, []), lambda body: odf("text", body), lambda body: epub([body], [1])]
)
def test_bombs_are_refused_in_every_kind_of_container(build) -> None:  # type: ignore[no-untyped-def]
    assert outcome(build(" " * 5_000_000), "a", TextLimits(ratio=100)) is Failure.TOO_LARGE


def test_parts_that_together_pass_the_cap_are_too_large() -> None:
    assert outcome(VALID["docx"], "a", TextLimits(total_bytes=100)) is Failure.TOO_LARGE


def test_archive_with_too_many_parts_is_too_large() -> None:
    many = {"[Content_Types].xml": "<a/>"} | {f"word/{number}.xml": "" for number in range(300)}
    assert outcome(zipped(many), "a.docx", TextLimits(parts=100)) is Failure.TOO_LARGE


def test_archive_whose_list_is_too_long_is_refused_before_it_is_read() -> None:
    data = bytearray(VALID["docx"])
    at = data.rfind(b"PK\x05\x06")
    data[at + 12 : at + 16] = struct.pack("<I", 0x7FFFFFFF)
    assert outcome(bytes(data), "a.docx") is Failure.TOO_LARGE


def test_part_that_lies_about_its_size_is_corrupt() -> None:
    data = VALID["docx"]
    at = data.find(b"PK\x01\x02", data.find(b"word/document.xml", data.find(b"PK\x01\x02")) - 50)
    lied = bytearray(data)
    lied[at + 24 : at + 28] = struct.pack("<I", 10)
    assert outcome(bytes(lied), "a.docx") is Failure.CORRUPT


def test_entities_in_an_office_document_are_refused() -> None:
    laughs = '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    parts = {"[Content_Types].xml": "<a/>", "word/document.xml": laughs}
    with pytest.raises(ProcessingError, match="declares entities") as caught:
        extract(zipped(parts), "a.docx", LIMITS)
    assert caught.value.failure is Failure.CORRUPT


def test_elements_nested_beyond_the_cap_are_refused() -> None:
    assert outcome(docx("<w:p>" * 10_000), "a.docx") is Failure.TOO_LARGE


def test_message_of_thousands_of_nested_parts_is_read_or_corrupt() -> None:
    parts = "".join(f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(3_000))
    found = outcome(f"From: a\nTo: b\nSubject: c\n{parts}".encode(), "a.eml")
    assert found is Failure.CORRUPT or isinstance(found, Text)


def test_panic_of_a_rust_parser_is_a_damaged_file(monkeypatch: pytest.MonkeyPatch) -> None:
    import python_calamine

    class PanicException(BaseException):
        pass

    def panic(_: object) -> None:
        raise PanicException("no entry found for key")

    monkeypatch.setattr(python_calamine, "load_workbook", panic)
    assert outcome(VALID["xlsx"], "a.xlsx") is Failure.CORRUPT


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_lack_of_memory_and_interrupts_are_not_taken_for_damage(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    import python_calamine

    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr(python_calamine, "load_workbook", fail)
    with pytest.raises(error):
        extract(VALID["xlsx"], "a.xlsx", LIMITS)


def test_messages_say_what_happened_and_what_to_try() -> None:
    with pytest.raises(ProcessingError, match=r"^damaged zip container: ") as caught:
        extract(VALID["docx"][:300], "a.docx", LIMITS)
    assert caught.value.hint
