"""PoolPath: where a file stands in its pool, as bytes, the same on every machine wherever the share is mounted.

A PoolPath never leaves the pool: it is relative, holds no empty, `.` or `..` component and no NUL. It keeps the bytes
that the file system gave; what people read and what a search compares are two derived forms.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from tidegate.errors import UsageError


@dataclass(frozen=True, slots=True, order=True)
class PoolPath:
    """A path relative to the pool. `PoolPath(b"")` is the pool itself."""

    raw: bytes

    @classmethod
    def parse(cls, raw: bytes) -> PoolPath:
        """The path that `raw` means; raises UsageError where it is absolute, leaves the pool or holds a NUL."""
        parts = [part for part in raw.split(b"/") if part not in (b"", b".")]
        if raw.startswith(b"/") or b".." in parts or b"\0" in raw:
            raise UsageError(
                f"not a path inside the pool: {display(raw)}", "give a path relative to the pool, without '..'"
            )
        return cls(b"/".join(parts))

    def __truediv__(self, name: bytes) -> PoolPath:
        """The entry `name`, as a listing gave it, in this folder."""
        return PoolPath(self.raw + b"/" + name if self.raw else name)

    @property
    def name(self) -> bytes:
        """The last component."""
        return self.raw.rpartition(b"/")[2]

    @property
    def folder(self) -> PoolPath:
        """The path of the folder that holds this one."""
        return PoolPath(self.raw.rpartition(b"/")[0])

    @property
    def suffix(self) -> str:
        """The ending in lower case without its dot, empty where there is none: `b"a/B.PDF"` gives `pdf`."""
        stem, dot, ending = self.name.rpartition(b".")
        return display(ending).lower() if dot and stem else ""

    @property
    def display(self) -> str:
        """What people read: see `display`."""
        return display(self.raw)

    @property
    def search_form(self) -> str:
        """What a search compares: NFC, so that both spellings of é are one."""
        return unicodedata.normalize("NFC", self.display)

    def __str__(self) -> str:
        return self.display


def display(raw: bytes) -> str:
    """`raw` for a terminal, JSON or HTML: bytes that are not UTF-8, control and bidirectional characters as `\\xNN`
    or `\\uNNNN`. Made for eyes: a name that itself contains such a sequence looks the same."""
    text = raw.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(character if _is_shown(character) else _escaped(character) for character in text)


def _is_shown(character: str) -> bool:
    return character == " " or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
