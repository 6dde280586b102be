"""Plain text, source code, CSV, JSON and whatever else is characters and nothing more.

Bytes that are not text come out as kind `unknown` without text: that is no failure. Never raises.
"""

from __future__ import annotations

from tidegate.processing.text.charsets import decode
from tidegate.processing.text.gathering import finish
from tidegate.processing.text.limits import Text, TextLimits

NO_TEXT = Text("", "unknown", "", 0, 0, False)
"""What comes of a file that holds no text."""


def read_plain(data: bytes, limits: TextLimits, *, is_whole: bool = True) -> Text:
    """The text of `data`, or NO_TEXT where it is binary; a character cut at the end is dropped."""
    reach = limits.text_bytes * (4 if b"\0" in data[:4096] else 1) + 4
    head = data[:reach]
    is_whole = is_whole and len(head) == len(data)
    text = decode(head, is_whole=is_whole)
    if text is None:
        return NO_TEXT
    return finish(text, "plain", limits, is_cut=not is_whole)
