"""What goes in and comes out of text extraction: the caps, the text, and the two ways of saying that a file is broken.

Every cap of this room stands in `TextLimits`, nowhere else. Nothing here knows a format.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.errors import Failure, ProcessingError


@dataclass(frozen=True, slots=True)
class TextLimits:
    """How far one document may go before it is cut (`is_truncated`) or refused (`Failure.TOO_LARGE`)."""

    text_bytes: int = 20_000_000  # UTF-8 bytes of text kept; more is cut
    part_bytes: int = 64_000_000  # bytes of one archive part, unpacked; more is refused
    total_bytes: int = 512_000_000  # bytes of all parts read from one archive, unpacked; more is refused
    parts: int = 20_000  # entries of one archive; more is refused
    ratio: int = 1_000  # unpacked bytes for each packed byte, asked of parts over a megabyte; more is refused
    pages: int = 20_000  # pages, slides or chapters read; more is cut
    nesting: int = 500  # elements within elements in XML; more is refused
    html_nesting: int = 500  # elements within elements that the HTML tree is built for; beyond, a flat reading is made
    html_attributes: int = 200  # attributes of one HTML tag, likewise
    dense_cells: int = 5_000_000  # cells of a sheet's bounding box that are laid out; a sparser sheet is streamed
    mail_nesting: int = 6  # messages within messages; deeper ones are left out
    mail_parts: int = 2_000  # parts of one message and messages of one mailbox file; more is cut
    attachment_bytes: int = 64_000_000  # bytes of one attachment, decoded; a larger one is left out


@dataclass(frozen=True, slots=True)
class Text:
    """The text of one document; `kind` is `unknown` and `text` empty where such a file holds none."""

    text: str
    kind: str
    title: str
    pages: int
    pages_without_text: int
    is_truncated: bool


def damaged(what: str, why: object) -> ProcessingError:
    """The error for a file whose bytes are not what its format promises."""
    reason = " ".join(str(why).split())[:200] or type(why).__name__
    return ProcessingError(
        Failure.CORRUPT, f"damaged {what}: {reason}", "open it with its own program; if that works, save it anew"
    )


def encrypted(what: str) -> ProcessingError:
    """The error for a file that only a password opens."""
    return ProcessingError(
        Failure.ENCRYPTED, f"encrypted {what}: it needs a password", "save a copy without a password to make it found"
    )


def too_large(what: str, why: str) -> ProcessingError:
    """The error for a file that would take more than a cap allows."""
    return ProcessingError(Failure.TOO_LARGE, f"{what} too large: {why}", "raise the cap named, or leave the file out")
