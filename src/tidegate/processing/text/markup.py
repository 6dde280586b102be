"""The text of XML files as such: SVG, feeds, DocBook, FictionBook, configuration; and of flat office documents in XML.

Text stands on lines of its own where an element begins or ends. XML that does not parse, or that declares entities, is
read like HTML instead: no entity is ever expanded, and a reader still finds the words.
"""

from __future__ import annotations

import re
from typing import Protocol

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text.charsets import decode_markup
from tidegate.processing.text.gathering import Gathering, finish, tidy
from tidegate.processing.text.html import html_text
from tidegate.processing.text.limits import Text, TextLimits
from tidegate.processing.text.xml_events import Attributes, Reader, read_xml

_ENCODING = re.compile(rb"""<\?xml[^>]{0,100}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})""")
_SUBSET = re.compile(r"<!DOCTYPE[^\[<>]*\[.*?\]\s*>", re.DOTALL)
_DROPPED = frozenset({"script", "style", "binary", "Binary", "base64Binary", "binaryData", "binData"})
_WORD_ROOT = re.compile(rb"<(?:w:wordDocument|pkg:package)\b")
_ODF_ROOT = re.compile(rb"<office:document\b")


def read_markup(data: bytes, limits: TextLimits) -> Text:
    """The text of an XML file; raises ProcessingError where it nests too deep."""
    if _WORD_ROOT.search(data[:4096]):
        from tidegate.processing.text.office_xml import OfficeReader

        return _read(data, OfficeReader(Gathering(limits)), limits)
    if _ODF_ROOT.search(data[:4096]):
        from tidegate.processing.text.open_document import OdfReader

        return _read(data, OdfReader(Gathering(limits)), limits)
    return _read(data, ElementReader(Gathering(limits)), limits)


class ElementReader:
    """Every element's text, on lines of its own; the first `title` is the document's."""

    def __init__(self, gathering: Gathering) -> None:
        self.out = gathering
        self.is_done = False
        self.title = ""
        self._dropped = 0
        self._in_title = False

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins: so does a line."""
        if self._dropped or name in _DROPPED:
            self._dropped += 1
        self._in_title = not self.title and name in ("title", "book-title")
        self.out.mark("\n")

    def end(self, name: str) -> None:
        """An element ends: so does a line."""
        if self._dropped:
            self._dropped -= 1
        self._in_title = False
        self.out.mark("\n")

    def characters(self, text: str) -> None:
        """Text; blanks between elements are layout, not text."""
        if self._dropped:
            return
        stripped = text.strip()
        if not stripped:
            return
        if self._in_title:
            self.title += text
        self.out.add(text)
        self.is_done = self.out.is_full


class _OutReader(Reader, Protocol):
    out: Gathering
    title: str


def _read(data: bytes, reader: _OutReader, limits: TextLimits) -> Text:
    try:
        read_xml(data, reader, limits, "XML")
    except ProcessingError as error:
        if error.failure is not Failure.CORRUPT:
            raise
        return _read_loosely(data, limits)
    is_cut = reader.out.is_cut or reader.is_done
    return finish(tidy(reader.out.join()), "xml", limits, title=reader.title, is_cut=is_cut)


def _read_loosely(data: bytes, limits: TextLimits) -> Text:
    found = _ENCODING.search(data[:400])
    markup = decode_markup(data, found[1].decode("ascii") if found else "")
    subset = _SUBSET.match(markup, max(0, markup.find("<!DOCTYPE")))
    if subset is not None:
        markup = markup[: subset.start()] + markup[subset.end() :]
    text, title, is_cut = html_text(markup, limits)
    return finish(text, "xml", limits, title=title, is_cut=is_cut)
