"""What an OLE container holds: doc, ppt, xls, msg, an encrypted modern document, or nothing with text.

The container is opened by olefile; doc and ppt are read by office_oxide, the others by their own modules. Old files
that ask for a password are told by their own flags, since the readers would call them damaged. Raises ProcessingError.
"""

from __future__ import annotations

import io
import re
import struct
from typing import Any, Literal

from tidegate.processing.text.attachments import ReadPart
from tidegate.processing.text.charsets import decode
from tidegate.processing.text.gathering import finish, one_line, tidy
from tidegate.processing.text.limits import Text, TextLimits, damaged, encrypted, too_large
from tidegate.processing.text.plain import NO_TEXT

_DOC_ENCRYPTED = 0x01  # in byte 11 of the document's header
_PPT_ENCRYPTED = b"\xdf\xc4\xd1\xf3"  # the token in the stream "Current User"
_XLS_FILEPASS, _XLS_BOF = 0x2F, frozenset({0x809, 0x409, 0x209, 0x009})
_FIELDS = dict.fromkeys((0x13, 0x14, 0x15, 0x01, 0x08))
_PLACE_HOLDERS = re.compile(r"^\[Embedded [A-Za-z ]{1,60}\]$", re.MULTILINE)
_PROPERTIES = "\x05SummaryInformation"
_TITLE, _CODEPAGE = 2, 1
_UNICODE = {1200: "utf-16-le", 65001: "utf-8", 10000: "mac-roman"}


def read_ole(data: bytes, limits: TextLimits, read_part: ReadPart) -> Text:
    """The text of whatever document the container holds."""
    ole = _open(data)
    try:
        return _read(ole, data, limits, read_part)
    finally:
        ole.close()


def _open(data: bytes) -> Any:
    import olefile

    try:
        return olefile.OleFileIO(io.BytesIO(data))
    except (OSError, ValueError, IndexError, TypeError, KeyError, AttributeError) as error:
        raise damaged("OLE container", error) from error


def _read(ole: Any, data: bytes, limits: TextLimits, read_part: ReadPart) -> Text:
    if ole.exists("EncryptedPackage") or ole.exists("EncryptionInfo"):
        raise encrypted("office document")
    if ole.exists("WordDocument"):
        header = _stream(ole, "WordDocument", 12)
        if len(header) == 12 and header[11] & _DOC_ENCRYPTED:
            raise encrypted("Word document")
        return _read_binary(ole, data, "doc", limits)
    if ole.exists("PowerPoint Document"):
        if _stream(ole, "Current User", 16)[12:16] == _PPT_ENCRYPTED:
            raise encrypted("presentation")
        return _read_binary(ole, data, "ppt", limits)
    if ole.exists("Workbook") or ole.exists("Book"):
        if _asks_password(_stream(ole, "Workbook" if ole.exists("Workbook") else "Book", 4_000)):
            raise encrypted("workbook")
        from tidegate.processing.text.spreadsheets import read_xls

        return read_xls(data, limits)
    if ole.exists("__properties_version1.0"):
        from tidegate.processing.text.outlook import read_msg

        return read_msg(ole, limits, read_part)
    return NO_TEXT


def _read_binary(ole: Any, data: bytes, kind: Literal["doc", "ppt"], limits: TextLimits) -> Text:
    import office_oxide

    what = "Word document" if kind == "doc" else "presentation"
    if len(data) > limits.part_bytes * 4:
        raise too_large(what, f"{len(data)} bytes, part_bytes = {limits.part_bytes}")
    try:
        with office_oxide.Document.from_bytes(data, kind) as document:
            text = document.plain_text()
    except office_oxide.OfficeOxideError as error:
        if "encrypt" in str(error).lower() or "password" in str(error).lower():
            raise encrypted(what) from error
        raise damaged(what, error) from error
    return finish(tidy(_PLACE_HOLDERS.sub("", text.translate(_FIELDS))), kind, limits, title=_title(ole))


def _stream(ole: Any, name: str, length: int) -> bytes:
    try:
        return bytes(ole.openstream(name).read(length))
    except (OSError, ValueError, IndexError, TypeError) as error:
        raise damaged("OLE container", error) from error


def _asks_password(head: bytes) -> bool:
    at = 0
    for _ in range(16):
        if at + 4 > len(head):
            return False
        record, length = int.from_bytes(head[at : at + 2], "little"), int.from_bytes(head[at + 2 : at + 4], "little")
        if record == _XLS_FILEPASS:
            return True
        if at == 0 and record not in _XLS_BOF:
            return False
        at += 4 + length
    return False


def _title(ole: Any) -> str:
    if not ole.exists(_PROPERTIES):
        return ""
    try:
        found = ole.getproperties(_PROPERTIES)
    except (OSError, ValueError, IndexError, TypeError, KeyError, AttributeError, struct.error, OverflowError) as error:
        raise damaged("document properties", error) from error
    title = found.get(_TITLE)
    if isinstance(title, bytes):
        page = found.get(_CODEPAGE, 1252) & 0xFFFF
        return one_line(
            title.decode(_UNICODE.get(page, f"cp{page}"), "replace") if _is_known(page) else decode(title) or ""
        )
    return one_line(title) if isinstance(title, str) else ""


def _is_known(page: int) -> bool:
    import codecs

    try:
        codecs.lookup(_UNICODE.get(page, f"cp{page}"))
    except LookupError:
        return False
    return True
