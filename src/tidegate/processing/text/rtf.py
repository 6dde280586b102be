"""The text of RTF through striprtf.

striprtf looks for hyperlinks and fonts with patterns that can take quadratic time, and trips over embedded objects:
what it is given is prepared by linear passes first. Characters beyond the basic plane come as halves and are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tidegate.processing.text.gathering import finish, tidy
from tidegate.processing.text.limits import Text, TextLimits, damaged

_BINARY = re.compile(rb"\\bin(\d{1,9}) ?")
_HEX_DATA = re.compile(rb"[0-9a-fA-F\s]{256,}")
_LINK = re.compile(r"\\fldinst\s*\{")
_FONT_TABLE = re.compile(r"\{\s*\\fonttbl")
_CODEPAGE = re.compile(rb"\\ansicpg(\d{3,5})")
_TITLE = re.compile(r"\{\\title\s([^{}]{1,500})\}")
_LEAD = re.compile(r"(\\'[89a-fA-F][0-9a-fA-F])(?:\\'[0-9a-fA-F]{2}|((?![{}\\])[@-~]))?")
_NOTE = re.compile(r"\\(?:footnote|annotation|header[lrf]?|footer[lrf]?)(?![a-z])")
_STRAY_STAR = re.compile(r"(?<=[^{\s\\])\\\*")  # means something only where a group begins
_CELL = re.compile(r"\\(?:nest)?cell(?![a-z])")
_LARGE_FONT_TABLE = 200_000
_DOUBLE_BYTE = frozenset({b"932", b"936", b"949", b"950", b"1361"})


def read_rtf(data: bytes, limits: TextLimits) -> Text:
    """The text of an RTF document; raises ProcessingError where striprtf cannot follow it."""
    source = _prepared(data)
    try:
        text = _converted(source)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, LookupError) as error:
        raise damaged("RTF document", error) from error
    return finish(tidy(text), "rtf", limits, title=_title(source[:20_000]))


def _title(head: str) -> str:
    found, page = _TITLE.search(head), re.search(r"\\ansicpg\d{3,5}", head)
    title = _converted(f"{{\\rtf1{page[0] if page else ''} {found[1]}}}") if found else ""
    return title if title.strip("? ") else ""


def _converted(source: str) -> str:
    from striprtf import striprtf

    convert: Callable[..., str] = striprtf.rtf_to_text
    return convert(source, encoding="cp1252", errors="replace")


def _prepared(data: bytes) -> str:
    data = _HEX_DATA.sub(b"", _without_binary(data))
    source = data.decode("latin-1")
    if not data.isascii():
        source = "".join(character if character < "\x80" else f"\\'{ord(character):02x}" for character in source)
    page = _CODEPAGE.search(data[:4096])
    if page is not None and page[1] in _DOUBLE_BYTE:
        source = _hex_trails(source)
    # striprtf leaves out headers and notes by their names: renamed they are paragraphs.
    source = _NOTE.sub(r"\\par", _without_large_fonts(source))
    source = _CELL.sub(r"\\tab", _STRAY_STAR.sub("", source))
    return _LINK.sub(r"\\fldinst {", source).replace("\\bin", "\\nobin")


def _without_binary(data: bytes) -> bytes:
    parts, at = [], 0
    for found in _BINARY.finditer(data):
        if found.start() >= at:
            parts.append(data[at : found.start()])
            at = found.end() + int(found[1])
    return b"".join((*parts, data[at:])) if parts else data


def _without_large_fonts(source: str) -> str:
    found = _FONT_TABLE.search(source)
    if found is None:
        return source
    depth, at = 0, found.start()
    for brace in re.finditer(r"[{}]", source[at:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            end = at + brace.end()
            return source if end - at <= _LARGE_FONT_TABLE else source[:at] + source[end:]
    return source[:at]


def _hex_trails(source: str) -> str:
    # Some writers give the second byte of a Chinese character as the letter that it looks like.
    return _LEAD.sub(lambda found: f"{found[1]}\\'{ord(found[2]):02x}" if found[2] else found[0], source)
