"""The text of mail: one message (eml, mht) or a file of many (mbox), with the text of what is attached.

Of the variants of a body the plain one is taken, else the HTML one. Headers are decoded leniently: real mail breaks
every rule. Messages within messages are followed to `mail_nesting`. What the standard library raises on a hopeless
message is the caller's to catch.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from tidegate.processing.text.attachments import ReadPart
from tidegate.processing.text.charsets import decode, decode_as
from tidegate.processing.text.gathering import Gathering, finish, one_line, tidy
from tidegate.processing.text.html import html_text, read_html
from tidegate.processing.text.limits import Text, TextLimits

_SHOWN = ("subject", "from", "to", "cc", "date")
_MESSAGE_START = re.compile(rb"(?:\A|\n\r?\n)From [^\r\n]{1,200}\r?\n(?=>?[A-Za-z][A-Za-z-]{1,50}[: ])")
_DEEPEST_PART = 40


def read_mail(data: bytes, limits: TextLimits, read_part: ReadPart) -> Text:
    """The text of one message; its subject is the title."""
    out = Gathering(limits)
    subject = _Reader(out, limits, read_part).message(_parsed(data), 0)
    return finish(tidy(out.join()), "eml", limits, title=subject, is_cut=out.is_cut or out.is_full)


def read_mailbox(data: bytes, limits: TextLimits, read_part: ReadPart) -> Text:
    """The text of all messages in a mailbox file."""
    out = Gathering(limits)
    reader = _Reader(out, limits, read_part)
    is_cut = False
    for number, message in enumerate(_messages(data)):
        if out.is_full or number == limits.mail_parts * 10:
            is_cut = True
            break
        reader.message(_parsed(message), 0)
        out.add("\n\n")
    return finish(tidy(out.join()), "mbox", limits, is_cut=is_cut or out.is_cut)


def _messages(data: bytes) -> Iterator[bytes]:
    begun = None
    for start in _MESSAGE_START.finditer(data):
        if begun is not None:
            yield data[begun : start.start()]
        begun = start.end()
    if begun is not None:
        yield data[begun:]


def _parsed(data: bytes) -> Message:
    return BytesParser(policy=compat32).parsebytes(data)


class _Reader:
    def __init__(self, out: Gathering, limits: TextLimits, read_part: ReadPart) -> None:
        self._out, self._limits, self._read_part = out, limits, read_part
        self._parts = limits.mail_parts

    def message(self, message: Message, level: int) -> str:
        """Gather one message; answers its subject."""
        headers: dict[str, list[str]] = {}
        for name, value in message.raw_items():
            if name.lower() in _SHOWN:
                headers.setdefault(name.lower(), []).append(_decoded_header(str(value)))
        for name in _SHOWN:
            for value in headers.get(name, []):
                self._out.add(f"{name.capitalize()}: {value}\n")
        self._out.add("\n")
        self._part(message, level, 0)
        return next(iter(headers.get("subject", [])), "")

    def _part(self, part: Message, level: int, depth: int) -> None:
        self._parts -= 1
        if self._parts < 0 or depth > _DEEPEST_PART or self._out.is_full:
            self._out.is_cut = True
            return
        kind, payload = part.get_content_type(), part.get_payload()
        if kind == "message/rfc822" and isinstance(payload, list):
            for inner in payload:
                if isinstance(inner, Message) and level < self._limits.mail_nesting:
                    self.message(_unpacked(part, inner), level + 1)
        elif isinstance(payload, list):
            inner_parts = [inner for inner in payload if isinstance(inner, Message)]
            if kind == "multipart/alternative":
                inner_parts = _best(inner_parts)
            for inner in inner_parts:
                self._part(inner, level, depth + 1)
        else:
            self._leaf(part, kind)

    def _leaf(self, part: Message, kind: str) -> None:
        content = part.get_payload(decode=True)
        if not isinstance(content, bytes) or len(content) > self._limits.attachment_bytes:
            return
        name = _file_name(part)
        if name:
            self._out.add(f"\n{name}\n")
        if kind == "text/html":
            self._out.add(_html(content, _charset(part), self._limits))
        elif kind in ("text/plain", "text/calendar", "text/csv") or (kind.startswith("text/") and not name):
            self._out.add(_decoded(content, _charset(part)) or "")
        elif content:
            self._out.add(self._read_part(content, name))
        self._out.mark("\n")


def _unpacked(part: Message, inner: Message) -> Message:
    # A message may not be packed in base64 as a whole; some programs do it all the same.
    packed = inner.get_payload()
    if str(part.get("Content-Transfer-Encoding", "")).strip().lower() != "base64" or not isinstance(packed, str):
        return inner
    try:
        return _parsed(base64.b64decode(packed))
    except ValueError:
        return inner


def _best(variants: list[Message]) -> list[Message]:
    """Of the variants of one body, the one that is easiest to read; of unknown ones the last, which is the richest."""
    for kind in ("text/plain", "text/html"):
        for variant in variants:
            if variant.get_content_type() == kind and str(variant.get_payload()).strip():
                return [variant]
    return variants[-1:]


def _html(content: bytes, charset: str, limits: TextLimits) -> str:
    text = decode_as(content, charset) if charset else None
    return read_html(content, limits).text if text is None else html_text(text, limits)[0]


def _decoded(content: bytes, charset: str) -> str | None:
    if charset and charset.lower() not in ("us-ascii", "ascii", "unknown-8bit"):
        text = decode_as(content, charset)
        if text is not None:
            return text
    return decode(content)


def _charset(part: Message) -> str:
    try:
        return str(part.get_content_charset() or "")
    except (LookupError, ValueError, TypeError, AttributeError):
        return ""


def _file_name(part: Message) -> str:
    try:
        return _decoded_header(str(part.get_filename() or ""))
    except (LookupError, ValueError, TypeError, AttributeError):
        return ""


def _decoded_header(raw: str) -> str:
    if not raw.isascii():
        octets = raw.encode("utf-8", "surrogateescape")
        raw = decode(octets) or octets.decode("latin-1")
    if "=?" not in raw:
        return one_line(raw)
    try:
        words = decode_header(raw)
    except (MessageError, ValueError):
        return one_line(raw)
    return one_line("".join(_decoded_word(word, charset) for word, charset in words))


def _decoded_word(word: bytes | str, charset: str | None) -> str:
    if isinstance(word, str):
        return word
    if charset and charset != "unknown-8bit":
        text = decode_as(word, charset)
        if text is not None:
            return text
    return decode(word) or word.decode("latin-1")
