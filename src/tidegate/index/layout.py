"""What one document is made of inside a snapshot. Raise `SCHEMA` with every change of it.

    file      i64                  the ledger's id, by which a document is replaced and removed
    text      terms, positions     what the file says
    name      terms, positions     its name, in up to three readings with `|`, which nobody can ask for, between them
    heading   terms, positions     its title and the names of the folders above it
    stems     terms                its English words, each once, as stems
    kind      whole strings        `k:` and what it was found to be, `s:` and the ending of its name
    folder    whole strings        one for each folder above it: `b:` and a digest of its path's bytes, `t:` of its fold
    mtime     i64, column          nanoseconds
    record    stored               MessagePack [path bytes, mtime_ns, size, kind, title, packing, text bytes]

Terms are made here in Python (see `terms`) and handed over with blanks between them. The stored text is the beginning
of what snippets are cut from, as UTF-8; packing 0 is plain, 1 is zlib.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import msgspec
import tantivy

from tidegate.index import terms
from tidegate.pool.paths import PoolPath

SCHEMA: Final = 1

_STORED_CHARACTERS: Final = 1_000_000
_PLAIN_BYTES: Final = 16 << 10
_LONGEST_ENDING: Final = 16
_BETWEEN: Final = " | "


@dataclass(frozen=True, slots=True)
class Document:
    """One file as a searcher sees it. A later one with the same `file` replaces it."""

    file: int
    path: PoolPath
    mtime_ns: int
    size: int
    text: str
    title: str
    kind: str


@dataclass(frozen=True, slots=True)
class Removal:
    """The file is no longer to be found."""

    file: int


Change = tuple[int, Document | Removal]
"""The ledger's change number, and what changed."""


class Record(msgspec.Struct, array_like=True, frozen=True):
    """What a hit is shown from."""

    path: bytes
    mtime_ns: int
    size: int
    kind: str
    title: str
    packing: int
    packed: bytes

    def texts(self, portion: int) -> Iterator[str]:
        """The stored text, in portions of about so many bytes, unpacked only as far as they are asked for."""
        if not self.packing:
            yield self.packed.decode("utf-8", "replace")
            return
        unpacker = zlib.decompressobj()
        pending = self.packed
        while pending and (part := unpacker.decompress(pending, portion)):
            yield part.decode("utf-8", "ignore")
            pending = unpacker.unconsumed_tail


_encode = msgspec.msgpack.Encoder().encode
record_of = msgspec.msgpack.Decoder(Record).decode


def build_schema() -> tantivy.Schema:
    """The schema of this version."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("file", stored=True, indexed=True)
    for field in ("text", "name", "heading"):
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="position")
    builder.add_text_field("stems", tokenizer_name="en_stem", index_option="basic")
    for field in ("kind", "folder"):
        builder.add_text_field(field, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("mtime", fast=True)
    builder.add_bytes_field("record", stored=True)
    return builder.build()


def to_stored(document: Document) -> tantivy.Document:
    """The document as the index takes it."""
    made = tantivy.Document()
    made.add_integer("file", document.file)
    made.add_integer("mtime", bounded(document.mtime_ns))
    made.add_bytes("record", _record(document))
    for kind in _kinds(document):
        made.add_text("kind", kind)
    for folder in _folders(document.path.folder):
        made.add_text("folder", folder)
    _add_terms(made, document)
    return made


def bounded(nanoseconds: int) -> int:
    """The nearest time that the index can hold: years 1677 to 2262."""
    return max(-(1 << 63), min(nanoseconds, (1 << 63) - 1))


def kind_term(kind: str) -> str:
    """The term of documents that were found to be of this kind."""
    return f"k:{terms.whole(kind)}"


def ending_term(ending: str) -> str:
    """The term of documents whose name ends so."""
    return f"s:{ending}"


def folder_term(folder: bytes) -> str:
    """The term of what is below the folder with just these bytes."""
    return f"b:{_digest(folder)}"


def folded_folder_term(folder: str) -> str:
    """The term of what is below a folder whose path reads so."""
    return f"t:{_digest(terms.fold(folder).encode('utf-8', 'replace'))}"


def _record(document: Document) -> bytes:
    text = document.text[:_STORED_CHARACTERS].encode("utf-8", "replace")
    packing = int(len(text) > _PLAIN_BYTES)
    return _encode(
        Record(
            document.path.raw,
            bounded(document.mtime_ns),
            document.size,
            terms.whole(document.kind),
            terms.whole(document.title),
            packing,
            zlib.compress(text, 1) if packing else text,
        )
    )


def _kinds(document: Document) -> list[str]:
    ending = document.path.suffix
    kinds = [kind_term(document.kind)]
    return [*kinds, ending_term(ending)] if 0 < len(ending) <= _LONGEST_ENDING else kinds


@lru_cache(maxsize=1024)
def _folders(folder: PoolPath) -> tuple[str, ...]:
    found = []
    while folder.raw:
        found += [folder_term(folder.raw), folded_folder_term(folder.search_form)]
        folder = folder.folder
    return tuple(found)


@lru_cache(maxsize=1024)
def _folder_names(folder: PoolPath) -> str:
    return _joined(terms.name_rows(folder.search_form))


def _add_terms(made: tantivy.Document, document: Document) -> None:
    path, text = document.path, document.text
    words, rows = set[str](), []
    for part in terms.slices(text if text.isascii() else terms.whole(text)):
        words |= terms.english(part)
        rows.append(" ".join(part))
    made.add_text("text", " ".join(rows))
    name = _joined(terms.name_rows(PoolPath(path.name).search_form))
    heading = _joined([terms.split(terms.whole(document.title))]) + _BETWEEN + _folder_names(path.folder)
    for field, row in (("name", name), ("heading", heading)):
        made.add_text(field, row)
        words |= terms.english(row.split(" "))
    made.add_text("stems", " ".join(words))


def _joined(rows: Iterable[Iterable[str]]) -> str:
    return _BETWEEN.join(map(" ".join, rows))


def _digest(folder: bytes) -> str:
    return hashlib.blake2b(folder, digest_size=16).hexdigest()
