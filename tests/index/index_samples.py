"""What the tests of the index share: documents in one line, and what a search finds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidegate.index import Change, Document, Filters, Searcher, Snapshot, publish, start_change
from tidegate.pool.paths import PoolPath

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
DAY_NS = 86_400 * 10**9


def document(
    file: int, text: str = "", path: str | bytes = b"", title: str = "", kind: str = "plain", day: int = 0
) -> Document:
    raw = path.encode() if isinstance(path, str) else path
    return Document(file, PoolPath(raw or b"file-%d.txt" % file), day * DAY_NS, len(text), text, title, kind)


def numbered(documents: Iterable[Document], first: int = 1) -> list[Change]:
    return [(first + at, found) for at, found in enumerate(documents)]


def publish_next(root: Path, *documents: Document) -> Snapshot:
    """Publish the documents under the change numbers that come next."""
    snapshot = publish(root, numbered(documents, start_change(root) + 1), now_ns=1, memory_bytes=15_000_000)
    assert snapshot is not None
    return snapshot


def names_found(searcher: Searcher, query: str, filters: Filters | None = None) -> set[bytes]:
    found = searcher.search(query, filters, limit=10_000)
    names = {hit.raw for hit in found.hits}
    assert found.total == len(found.hits) == len(names)
    return names
