"""Opens the zip container of an office document or book and hands out its parts, each within the caps.

Nothing is written anywhere and no part is unpacked before its size was looked at. A part that claims to be small and is
not fails in zipfile's own count. Raises ProcessingError: TOO_LARGE for bombs, ENCRYPTED, CORRUPT.
"""

from __future__ import annotations

import io
import posixpath
import struct
import zipfile
import zlib

from tidegate.processing.text.limits import TextLimits, damaged, encrypted, too_large

_END = b"PK\x05\x06"
_END_64 = b"PK\x06\x06"
_ENTRY_BYTES = 1_000  # of one entry in a zip's list: 46, its name, what a writer adds
_RATIO_FROM = 1_000_000


class Archive:
    """One zip in memory. Names are looked up without regard to case or leading slash, as office programs do."""

    def __init__(self, data: bytes, limits: TextLimits) -> None:
        _refuse_long_list(data, limits)
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, zipfile.LargeZipFile, ValueError, OSError, struct.error, EOFError) as error:
            raise damaged("zip container", error) from error
        entries = self._zip.infolist()
        if len(entries) > limits.parts:
            raise too_large("archive", f"{len(entries)} parts, parts = {limits.parts}")
        self._limits = limits
        self._room = limits.total_bytes
        self._entries = {_key(entry.filename): entry for entry in entries}

    def names(self) -> list[str]:
        """The names of all parts in lower case, in the container's order."""
        return list(self._entries)

    def holds(self, name: str) -> bool:
        """Whether there is such a part."""
        return _key(name) in self._entries

    def read(self, name: str) -> bytes:
        """The part's content; empty where there is no such part."""
        entry = self._entries.get(_key(name))
        if entry is None:
            return b""
        self._refuse_bomb(entry)
        if entry.flag_bits & 0x1:
            raise encrypted("archive part")
        try:
            with self._zip.open(entry) as part:
                return part.read()
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            ValueError,
            struct.error,
            NotImplementedError,
        ) as error:
            raise damaged("zip container", error) from error
        except RuntimeError as error:
            raise encrypted("archive part") from error

    def refuse_bombs(self, folder: str) -> None:
        """Look at the sizes of all parts in `folder`, for a reader that unpacks them itself."""
        for name, entry in self._entries.items():
            if name.startswith(folder) and name.endswith((".xml", ".bin", ".rels")):
                self._refuse_bomb(entry)
                if entry.flag_bits & 0x1:
                    raise encrypted("archive part")

    def _refuse_bomb(self, entry: zipfile.ZipInfo) -> None:
        size, limits = entry.file_size, self._limits
        if size > limits.part_bytes:
            raise too_large("archive part", f"{size} bytes unpacked, part_bytes = {limits.part_bytes}")
        if size > _RATIO_FROM and size > limits.ratio * max(entry.compress_size, 1):
            raise too_large("archive part", f"it unpacks to over {limits.ratio} times its size, ratio = {limits.ratio}")
        self._room -= size
        if self._room < 0:
            raise too_large("archive", f"its parts pass total_bytes = {limits.total_bytes}")


def looks_like_document(data: bytes) -> bool:
    """Whether the first part's name is one that office documents and books begin with; for zips without their end."""
    if len(data) < 30:
        return False
    length = int.from_bytes(data[26:28], "little")
    first = data[30 : 30 + length].lower()
    return first.startswith((b"[content_types]", b"mimetype", b"_rels/", b"word/", b"xl/", b"ppt/", b"docprops/"))


def resolve(base: str, target: str) -> str:
    """The part that `target` means in a link written in the part `base`."""
    target = target.partition("#")[0]
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(base), target)).lstrip("/")


def _key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def _refuse_long_list(data: bytes, limits: TextLimits) -> None:
    # zipfile reads the whole list of entries when it opens, whatever its length: look at the length first.
    at = data.rfind(_END, max(0, len(data) - 66_000))
    if at < 0 or at + 22 > len(data):
        return
    size = int.from_bytes(data[at + 12 : at + 16], "little")
    at_64 = data.rfind(_END_64, max(0, at - 1_000), at)
    if size == 0xFFFFFFFF and at_64 >= 0:
        size = int.from_bytes(data[at_64 + 40 : at_64 + 48], "little")
    if size > limits.parts * _ENTRY_BYTES:
        raise too_large("archive", f"its list of parts takes {size} bytes, parts = {limits.parts}")
