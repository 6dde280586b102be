"""From the bytes of one document to its text: `extract` asks what the file is and hands it to the reader for that.

Bytes in, text out: no file, no network, no environment. Nothing escapes but ProcessingError and MemoryError, whatever
the bytes are; what a parser does to the process itself (an abort, endless work) is for the process around it to bear.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text.limits import Text, TextLimits, damaged, too_large
from tidegate.processing.text.plain import NO_TEXT, read_plain
from tidegate.processing.text.sniff import Kind, sniff

VERSION = "1"
"""Changes when the output for some file changes."""

_OFFICE_ENDINGS = frozenset({
    "docx", "docm", "dotx", "dotm", "pptx", "pptm", "potx", "potm", "ppsx", "ppsm", "xlsx", "xlsm", "xltx", "xltm",
    "xlsb", "odt", "ott", "odp", "otp", "ods", "ots", "odg", "epub",
})  # fmt: skip
_NEEDS_WHOLE = frozenset({Kind.PDF, Kind.OLE})


def extract(data: bytes, name: str, limits: TextLimits, *, is_whole: bool = True) -> Text:
    """The text of the document `data`; `name` matters only where the bytes leave its kind open.

    `is_whole` False says that `data` is only the head of the file: text that can be read from a head is marked as cut.
    Raises ProcessingError: ENCRYPTED, CORRUPT, EMPTY, TOO_LARGE.
    """
    if _is_only_nul(data):
        if data and not is_whole:
            return NO_TEXT
        raise ProcessingError(
            Failure.EMPTY,
            "nothing in it: " + (f"{len(data)} NUL bytes" if data else "0 bytes"),
            "see whether whatever writes it has finished",
        )
    kind = sniff(data, name)
    try:
        return _read(data, name, kind, limits, is_whole, 0)
    except (ProcessingError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # Rust parsers panic with a BaseException
        raise damaged(_WORDS.get(kind, "document"), f"{type(error).__name__} {error}") from error


_WORDS = {
    Kind.PDF: "PDF",
    Kind.ZIP: "office document",
    Kind.OLE: "OLE container",
    Kind.RTF: "RTF document",
    Kind.HTML: "HTML",
    Kind.XML: "XML",
    Kind.MAIL: "message",
    Kind.MAILBOX: "mailbox",
}


def _is_only_nul(data: bytes) -> bool:
    # strip() would copy gigabytes of a film, whose first byte is NUL.
    return not data[:4096].strip(b"\0") and data.count(b"\0") == len(data)


def _read(data: bytes, name: str, kind: Kind, limits: TextLimits, is_whole: bool, level: int) -> Text:
    if kind is Kind.NO_TEXT:
        return NO_TEXT
    if not is_whole and kind in _NEEDS_WHOLE:
        raise too_large(_WORDS[kind], "only its head was read, and it is of use only whole")
    if kind is Kind.ZIP:
        return _read_zip(data, name, limits, is_whole)
    if kind is Kind.PLAIN:
        return read_plain(data, limits, is_whole=is_whole)
    found = _read_kind(data, kind, limits, level)
    return found if is_whole else replace(found, is_truncated=True)


def _read_kind(data: bytes, kind: Kind, limits: TextLimits, level: int) -> Text:
    if kind is Kind.PDF:
        from tidegate.processing.text.pdf import read_pdf

        return read_pdf(data, limits)
    if kind is Kind.HTML:
        from tidegate.processing.text.html import read_html

        return read_html(data, limits)
    if kind is Kind.XML:
        from tidegate.processing.text.markup import read_markup

        return read_markup(data, limits)
    if kind is Kind.RTF:
        from tidegate.processing.text.rtf import read_rtf

        return read_rtf(data, limits)
    return _read_nested(data, kind, limits, level)


def _read_nested(data: bytes, kind: Kind, limits: TextLimits, level: int) -> Text:
    def read_part(part: bytes, part_name: str) -> str:
        return _read_attachment(part, part_name, limits, level + 1)

    if kind is Kind.OLE:
        from tidegate.processing.text.ole import read_ole

        return read_ole(data, limits, read_part)
    from tidegate.processing.text.mail import read_mail, read_mailbox

    return (read_mail if kind is Kind.MAIL else read_mailbox)(data, limits, read_part)


def _read_attachment(data: bytes, name: str, limits: TextLimits, level: int) -> str:
    if level > limits.mail_nesting or _is_only_nul(data):
        return ""
    try:
        return _read(data, name, sniff(data, name), limits, True, level).text
    except (MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        if isinstance(error, ProcessingError) or _is_parsers(error):
            return ""
        raise


def _is_parsers(error: BaseException) -> bool:
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _read_zip(data: bytes, name: str, limits: TextLimits, is_whole: bool) -> Text:
    from tidegate.processing.text.archives import Archive, looks_like_document

    is_document = looks_like_document(data) or name.rpartition(".")[2].lower() in _OFFICE_ENDINGS
    if not is_whole:
        if is_document:
            raise too_large(_WORDS[Kind.ZIP], "only its head was read, and it is of use only whole")
        return NO_TEXT
    try:
        archive = Archive(data, limits)
    except ProcessingError:
        if is_document:
            raise
        return NO_TEXT
    from tidegate.processing.text.packages import read_package

    return read_package(data, archive, limits)
