"""Reads XML as a stream of events through expat, within the caps.

Entity declarations are refused, whatever they hold, so nothing can expand and nothing outside is ever looked for.
Nesting beyond the cap is refused. Bytes in encodings that expat does not know are decoded first. Names come without
their prefix (`w:t` is `t`): the formats read here are told apart by their parts, not by their namespaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol
from xml.parsers import expat

from tidegate.errors import Failure, ProcessingError
from tidegate.processing.text.limits import TextLimits, damaged, too_large

Attributes = dict[str, str]

_DECLARED = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_NATIVE = frozenset({"utf-8", "utf8", "utf-16", "us-ascii", "ascii"})


class Reader(Protocol):
    """What takes the events; `is_done` ends the reading early."""

    is_done: bool

    def start(self, name: str, attributes: Attributes) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def characters(self, text: str) -> None:
        """Text within the innermost element."""


class _DoneError(Exception):
    """The reader has had enough."""


def read_xml(data: bytes, reader: Reader, limits: TextLimits, what: str) -> None:
    """Send the events of `data` to `reader`; raises ProcessingError (CORRUPT, TOO_LARGE), naming `what`."""
    source = _as_known_encoding(data)
    parser = expat.ParserCreate("utf-8" if isinstance(source, str) else None)
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = _element_handlers(reader, limits, what)
    parser.CharacterDataHandler = reader.characters
    parser.EntityDeclHandler = _refuser(what)
    parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
    try:
        parser.Parse(source.encode("utf-8", "replace") if isinstance(source, str) else source, True)
    except _DoneError:
        return
    except expat.ExpatError as error:
        raise damaged(what, error) from error


def local_name(name: str) -> str:
    """The name without its prefix."""
    return name.rpartition(":")[2]


def attribute(attributes: Attributes, name: str) -> str:
    """The attribute of that local name, whatever its prefix; empty where there is none."""
    found = attributes.get(name)
    if found is not None:
        return found
    suffix = ":" + name
    return next((value for key, value in attributes.items() if key.endswith(suffix)), "")


def _element_handlers(
    reader: Reader, limits: TextLimits, what: str
) -> tuple[Callable[[str, Attributes], None], Callable[[str], None]]:
    depth, deepest = 0, limits.nesting
    on_start, on_end = reader.start, reader.end

    def start(name: str, attributes: Attributes) -> None:
        nonlocal depth
        depth += 1
        if depth > deepest:
            raise too_large(what, f"its elements nest deeper than nesting = {deepest}")
        if reader.is_done:
            raise _DoneError
        on_start(name.rpartition(":")[2], attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        on_end(name.rpartition(":")[2])

    return start, end


def _refuser(what: str) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise ProcessingError(
            Failure.CORRUPT, f"{what} refused: it declares entities", "save it anew without a document type declaration"
        )

    return refuse


def _as_known_encoding(data: bytes) -> bytes | str:
    found = _DECLARED.match(data[:400])
    if found is None:
        return data
    label = found[1].decode("ascii").lower()
    if label in _NATIVE:
        return data
    from tidegate.processing.text.charsets import decode_as

    text = decode_as(data, label)
    return data if text is None else text
