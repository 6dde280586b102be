"""Receipt: the record that says this file, this stamp, this processor, this outcome. JSON, one object.

    {"receipt": 1, "pool": "office", "path": "invoices/2024/a.pdf", "path_hex": "…", "size": 1, "mtime_ns": 1,
     "digest": "sha256:…", "processor": "text", "version": "1", "settings": "", "participant": "host:12:…",
     "finished": "2026-12-01T10:00:00Z", "kind": "pdf", "title": "", "pages": 3, "truncated": false}

`path` is for people; `path_hex` holds the bytes. Readers ignore keys that they do not know; a later format with other
meanings counts `receipt` up.
"""

from __future__ import annotations

from typing import Final

import msgspec

FORMAT: Final = 1


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that one processor finished one version of one file."""

    receipt: int = FORMAT
    pool: str
    path: str
    path_hex: str
    size: int
    mtime_ns: int
    digest: str
    processor: str
    version: str
    settings: str = ""
    participant: str = ""
    finished: str = ""
    kind: str = ""
    title: str = ""
    pages: int = 0
    truncated: bool = False
