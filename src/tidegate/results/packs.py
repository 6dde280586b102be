"""Packs: the texts of one batch of files, each with its receipt, in one durable file.

    <outputs>/packs/<yyyy-mm>/<number>.jsonl.gz       number: 16 hex digits of the time, 8 of chance
    = one gzip member per entry, one line of JSON in each: {"receipt": {…}, "text": "…"}

So `zcat FILE | jq` reads a whole pack, and (offset, length) of one member reads one text. A pack is placed whole and
never changed; the ledger keeps references, and can be filled again from the packs alone.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from tidegate.pool import disk
from tidegate.pool.place import clear_parts, make_durable_folder, place_file
from tidegate.results.receipts import FORMAT, Receipt

FOLDER: Final = "packs"
_ENDING: Final = ".jsonl.gz"
_SLICE: Final = 1 << 16
_LEVEL: Final = 2  # three quarters of level 6's gain at a third of its time


class PackEntry(msgspec.Struct, frozen=True):
    """One line of a pack."""

    receipt: Receipt
    text: str


@dataclass(frozen=True, slots=True)
class TextRef:
    """Where one text lies: the pack's name below `packs/`, and the bytes of its gzip member."""

    pack: str
    offset: int
    length: int


def write_pack(outputs: Path, entries: Sequence[PackEntry], now_ns: int, nonce: str) -> list[TextRef]:
    """Place one pack with these entries, durable when this returns; a reference for each, in order.

    `nonce` is 8 hex digits of chance. Raises DiskFull or OSError; then there is no such pack.
    """
    encode = msgspec.json.encode
    members = [gzip.compress(encode(entry) + b"\n", _LEVEL, mtime=0) for entry in entries]
    month = datetime.fromtimestamp(now_ns / 1e9, UTC).strftime("%Y-%m")
    name = f"{month}/{now_ns:016x}{nonce}{_ENDING}"
    target = outputs / FOLDER / name
    make_durable_folder(target.parent)
    place_file(target, members, nonce)
    refs, offset = [], 0
    for member in members:
        refs.append(TextRef(name, offset, len(member)))
        offset += len(member)
    return refs


def read_entry(outputs: Path, ref: TextRef) -> PackEntry:
    """The entry behind a reference. Raises OSError where the pack is gone, ValueError where it is damaged."""
    descriptor = disk.open_to_read(outputs / FOLDER / ref.pack)
    try:
        member = disk.read_at(descriptor, ref.length, ref.offset)
    finally:
        os.close(descriptor)
    return _decoded(member)


def _decoded(member: bytes) -> PackEntry:
    try:
        return msgspec.json.decode(gzip.decompress(member), type=PackEntry)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"damaged pack entry: {error}") from error


def all_entries(outputs: Path) -> Iterator[tuple[TextRef, Receipt]]:
    """Every receipt in the packs with its reference, oldest pack first; damaged rests of packs are passed over."""
    for month in disk.list_names(outputs / FOLDER):
        for name in disk.list_names(outputs / FOLDER / month):
            if name.endswith(_ENDING) and not name.startswith("."):
                yield from _entries_of(outputs, f"{month}/{name}")


def _entries_of(outputs: Path, pack: str) -> Iterator[tuple[TextRef, Receipt]]:
    path = outputs / FOLDER / pack
    descriptor = disk.open_to_read(path)
    try:
        content = disk.read_at(descriptor, disk.stat_open(descriptor).st_size, 0)
    finally:
        os.close(descriptor)
    offset = 0
    while offset < len(content):
        try:
            line, length = _member_at(memoryview(content), offset)
            entry = msgspec.json.decode(line, type=PackEntry)
        except (EOFError, zlib.error, msgspec.DecodeError):
            return
        if entry.receipt.receipt <= FORMAT:
            yield TextRef(pack, offset, length), entry.receipt
        offset += length


def _member_at(content: memoryview, offset: int) -> tuple[bytes, int]:
    """What one gzip member holds and how long it is. Fed in slices: what follows a member is copied at each end."""
    member, parts, end = zlib.decompressobj(wbits=31), [], offset
    while not member.eof:
        if end >= len(content):
            raise EOFError
        parts.append(member.decompress(content[end : end + _SLICE]))
        end = min(len(content), end + _SLICE)
    return b"".join(parts), end - len(member.unused_data) - offset


def clear_unfinished(outputs: Path) -> int:
    """Remove what writers that died left unfinished; only while no other participant writes here. How many."""
    return sum(clear_parts(outputs / FOLDER / month) for month in disk.list_names(outputs / FOLDER))
