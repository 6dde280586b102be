"""The text of an Outlook message (msg): subject, sender, recipients, date, body, attachments.

Properties are streams named `__substg1.0_` + id + type, where type 001F is UTF-16, 001E is in the message's code page
and 0102 is bytes. The plain body is taken where there is one, else the HTML one, else the compressed RTF one
([MS-OXRTFCP]). An attached message is a storage of the same shape. Raises ProcessingError.
"""

from __future__ import annotations

from typing import Any

from tidegate.processing.text.attachments import ReadPart
from tidegate.processing.text.charsets import decode, known_encoding
from tidegate.processing.text.gathering import Gathering, finish, tidy
from tidegate.processing.text.html import read_html
from tidegate.processing.text.limits import Text, TextLimits, damaged
from tidegate.processing.text.rtf import read_rtf

_SUBJECT, _BODY, _HTML, _RTF = "0037", "1000", "1013", "1009"
_HEADERS = (("From", ("0C1A", "5D01", "0C1F")), ("To", ("0E04",)), ("Cc", ("0E03",)), ("Bcc", ("0E02",)))
_FILE_NAMES = ("3707", "3704", "3001")
_FILE, _MESSAGE = "3701", "3701000D"
_CODEPAGES = (b"\x03\x00\xfd\x3f", b"\x03\x00\xde\x3f")  # PR_MESSAGE_CODEPAGE, PR_INTERNET_CPID as property tags
_PREBUILT = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript "
    b"\\fdecor MS Sans SerifSymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n"
    b"\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
_COMPRESSED, _STORED = b"LZFu", b"MELA"


def read_msg(ole: Any, limits: TextLimits, read_part: ReadPart) -> Text:
    """The text of the message in an open container."""
    try:
        names = {"/".join(path).lower(): path for path in ole.listdir()}
    except (OSError, ValueError, IndexError, TypeError, RecursionError) as error:
        raise damaged("Outlook message", error) from error
    out = Gathering(limits)
    reader = _Reader(ole, names, limits, read_part)
    subject = reader.message_into(out, "", 0)
    return finish(tidy(out.join()), "msg", limits, title=subject, is_cut=out.is_cut or out.is_full)


class _Reader:
    def __init__(self, ole: Any, names: dict[str, Any], limits: TextLimits, read_part: ReadPart) -> None:
        self._ole, self._names, self._limits, self._read_part = ole, names, limits, read_part

    def message_into(self, out: Gathering, folder: str, level: int) -> str:
        """Gather the message in the storage `folder` ("" or ending in "/"); answers its subject."""
        page = self._codepage(folder)
        subject = self._text(folder, _SUBJECT, page)
        for label, ids in (("Subject", (_SUBJECT,)), *_HEADERS):
            values = list(dict.fromkeys(filter(None, (self._text(folder, key, page) for key in ids))))
            if values:
                out.add(f"{label}: {' '.join(' '.join(values).split())}\n")
        out.add("\n" + self._body(folder, page) + "\n")
        for attachment in self._attachments(folder):
            if out.is_full:
                break
            self._attachment_into(out, attachment, page, level)
        return subject

    def _attachment_into(self, out: Gathering, folder: str, page: str, level: int) -> None:
        name = next(filter(None, (self._text(folder, key, page) for key in _FILE_NAMES)), "")
        if name:
            out.add(f"\n{name}\n")
        inner = f"{folder}__substg1.0_{_MESSAGE}/"
        if any(path.startswith(inner.lower()) for path in self._names):
            if level < self._limits.mail_nesting:
                self.message_into(out, inner, level + 1)
            return
        data = self._bytes(folder, _FILE)
        if data and len(data) <= self._limits.attachment_bytes:
            out.add(self._read_part(data, name) + "\n")

    def _attachments(self, folder: str) -> list[str]:
        start = folder.lower() + "__attach_version1.0_"
        found = {
            path[: path.index("/", len(start))]
            for path in self._names
            if path.startswith(start) and "/" in path[len(start) :]
        }
        return [path + "/" for path in sorted(found)[: self._limits.mail_parts]]

    def _body(self, folder: str, page: str) -> str:
        body = self._text(folder, _BODY, page)
        if body.strip():
            return body
        html = self._bytes(folder, _HTML) or self._text(folder, _HTML, page).encode("utf-8", "replace")
        if html.strip():
            return read_html(html, self._limits).text
        packed = self._bytes(folder, _RTF)
        return read_rtf(unpack_rtf(packed, self._limits.part_bytes), self._limits).text if packed else ""

    def _text(self, folder: str, key: str, page: str) -> str:
        wide = self._stream(f"{folder}__substg1.0_{key}001F")
        if wide:
            return wide.decode("utf-16-le", "replace").rstrip("\0")
        narrow = self._stream(f"{folder}__substg1.0_{key}001E").rstrip(b"\0")
        if not narrow:
            return ""
        if not page or narrow.isascii():
            return decode(narrow) or narrow.decode("latin-1")
        return narrow.decode(page, "replace")

    def _bytes(self, folder: str, key: str) -> bytes:
        return self._stream(f"{folder}__substg1.0_{key}0102")

    def _codepage(self, folder: str) -> str:
        properties = self._stream(folder + "__properties_version1.0")
        for tag in _CODEPAGES:
            at = properties.find(tag)
            if at >= 0:
                number = int.from_bytes(properties[at + 8 : at + 12], "little")
                return known_encoding({65001: "utf-8", 936: "gb18030", 20127: ""}.get(number, f"cp{number}")) or ""
        return ""

    def _stream(self, name: str) -> bytes:
        path = self._names.get(name.lower())
        if path is None:
            return b""
        try:
            return bytes(self._ole.openstream(path).read())
        except (OSError, ValueError, IndexError, TypeError) as error:
            raise damaged("Outlook message", error) from error


def unpack_rtf(packed: bytes, most: int) -> bytes:
    """The RTF in a compressed body; raises ProcessingError where the bytes are not one."""
    method, size = packed[8:12], int.from_bytes(packed[4:8], "little")
    if method == _STORED:
        return packed[16 : 16 + size]
    if method != _COMPRESSED or size > most:
        raise damaged("Outlook message", "its RTF body is not what it claims")
    window = bytearray(_PREBUILT).ljust(4096, b" ")
    at, place, out = 16, len(_PREBUILT), bytearray()
    while at < len(packed) and len(out) < size:
        flags = packed[at]
        at += 1
        for bit in range(8):
            if flags >> bit & 1:
                token = int.from_bytes(packed[at : at + 2], "big")
                at += 2
                start, length = token >> 4, (token & 15) + 2
                if start == place or at > len(packed):
                    return bytes(out[:size])
                run = [(start + step) & 4095 for step in range(length)]
            else:
                window[place : place + 1] = packed[at : at + 1] or b" "
                at, run = at + 1, [place]
            for source in run:
                window[place] = window[source]
                out.append(window[place])
                place = (place + 1) & 4095
    return bytes(out[:size])
