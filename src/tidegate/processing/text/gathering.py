"""Gathers pieces of text up to a cap and makes of them one clean string.

The string that comes out holds no control characters but newline, tab and form feed (a page's end), no soft hyphens,
no lone surrogates and no noncharacters, and is at most `text_bytes` long in UTF-8.
"""

from __future__ import annotations

import re

from tidegate.processing.text.limits import Text, TextLimits

PAGE_END = "\f"

_LINE_ENDS = re.compile("\r\n?|[\x0b\x85]")
_UNWANTED = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\ufdd0-\ufdef\ufffe\uffff]")
_CONTROLS = bytes(sorted({*range(32), 127} - {9, 10, 12}))
_SURROGATES = re.compile("[\ud800-\udfff]")
_BROKEN_WORD = re.compile("[\x02\ufffe]\r?\n")  # how PDFium marks a hyphen that only the line's end called for
_BLANK_LINES = re.compile("\n{3,}")


class Gathering:
    """Pieces of one document's text, in order. Adding to a full one drops the piece and sets `is_cut`."""

    __slots__ = ("_room", "is_cut", "pieces")

    def __init__(self, limits: TextLimits) -> None:
        self.pieces: list[str] = []
        self.is_cut = False
        self._room = limits.text_bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more will be kept, so that reading on is of no use."""
        return self._room <= 0

    def add(self, piece: str) -> None:
        """Keep the piece; characters are counted here, which is never more than bytes."""
        if self._room <= 0:
            self.is_cut = self.is_cut or bool(piece.strip())
            return
        self._room -= len(piece)
        self.pieces.append(piece)

    def mark(self, sign: str) -> None:
        """Add a sign (newline, tab, page end) that does not repeat: a newline after a newline says nothing."""
        if self.pieces and self.pieces[-1] != sign:
            self.add(sign)

    def close_cell(self, begun: int) -> None:
        """Make of the pieces since number `begun` one cell of a table: one line, and a tab after it."""
        cell = " ".join("".join(self.pieces[begun:]).split())
        del self.pieces[begun:]
        self.add(cell)
        self.add("\t")

    def close_row(self) -> None:
        """End a row of a table."""
        while self.pieces and self.pieces[-1] in ("\t", ""):
            self.pieces.pop()
        self.mark("\n")

    def join(self) -> str:
        """Everything gathered."""
        return "".join(self.pieces)


def clean(text: str) -> str:
    """`text` with one kind of line end and without the characters that no reader and no index wants."""
    if "\x02" in text or "\ufffe" in text:
        text = _BROKEN_WORD.sub("", text)
    if "\r" in text or "\x0b" in text or "\x85" in text:
        text = _LINE_ENDS.sub("\n", text)
    if text.isascii():
        return text.encode("ascii").translate(None, _CONTROLS).decode("ascii")
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _UNWANTED.sub("", text).removeprefix("\ufeff")


def tidy(text: str) -> str:
    """`text` without blanks around line ends and with at most one empty line in a row; for text that was laid out."""
    return PAGE_END.join(_tidy_page(page) for page in text.split(PAGE_END))


def _tidy_page(page: str) -> str:
    lines = "\n".join(line.rstrip(" \t\xa0").lstrip(" \xa0") for line in page.split("\n"))
    return _BLANK_LINES.sub("\n\n", lines).strip("\n ")


def cut(text: str, room: int) -> tuple[str, bool]:
    """The start of `text` that takes at most `room` bytes of UTF-8, and whether anything was lost."""
    if len(text) * 4 <= room or (text.isascii() and len(text) <= room):
        return text, False
    raw = text.encode("utf-8")
    if len(raw) <= room:
        return text, False
    return raw[:room].decode("utf-8", "ignore"), True


def one_line(text: str) -> str:
    """`text` as a title: one line, blanks collapsed, at most 500 characters."""
    return " ".join(clean(text).split())[:500]


def finish(text: str, kind: str, limits: TextLimits, *, title: str = "", is_cut: bool = False) -> Text:
    """The result for a format without pages."""
    kept, is_over = cut(clean(text), limits.text_bytes)
    return Text(kept, kind, one_line(title), 0, 0, is_cut or is_over)
