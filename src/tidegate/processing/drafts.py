"""Drafts: what became of claims, decided from plain values, until one commit writes them together.

The decisions are functions: what an error on opening means, what a stamp that moved means. A `Batch` gathers drafts,
turns their texts into one pack, and gives the finishes for the ledger; a text that several files share is kept once.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tidegate.errors import Failure
from tidegate.ledger import Claim, End, Finish, Result
from tidegate.pool import Stamp
from tidegate.pool.settle import GONE
from tidegate.processing.messages import Extracted
from tidegate.results import PackEntry, Receipt, write_pack

ContentKey = tuple[bytes, str, str, str]

CHANGED: Final = "changed while it was read"
SAME_AFTER_TOUCH: Final = "touched, same content"
SAME_CONTENT: Final = "same content as another file"

WAIT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_BUSY: Final = frozenset({errno.EBUSY, errno.ETXTBSY, errno.EAGAIN})


@dataclass(frozen=True, slots=True)
class Draft:
    """The end of a claim that is not written yet. `text` goes into a pack; `same_as` names a content whose text is in
    this batch or in the ledger already."""

    claim: Claim
    end: End
    reason: str = ""
    failure: Failure | None = None
    digest: bytes | None = None
    text: Extracted | None = None
    same_as: ContentKey | None = None


def content_key(claim: Claim, digest: bytes) -> ContentKey:
    """What a result is kept under."""
    return (digest, claim.plan.processor, claim.plan.version, claim.plan.settings)


def after_open_error(claim: Claim, error: OSError) -> Draft:
    """What it means that a file could not be opened; errors in `WAIT` mean nothing about the file."""
    said = error.strerror or str(error)
    if error.errno in _BUSY:
        return Draft(claim, End.SETTLING, f"busy: {said}")
    if error.errno in GONE:
        return Draft(claim, End.FAILED, "gone before it was read", Failure.VANISHED)
    if error.errno in (errno.EACCES, errno.EPERM):
        return Draft(claim, End.FAILED, "reading is not permitted", Failure.PERMISSION)
    return Draft(claim, End.FAILED, said, Failure.TRANSIENT)


def after_reading(draft: Draft, now: Stamp) -> Draft:
    """The draft if the file is still what was claimed; else the result is thrown away and the file settles again."""
    if now == draft.claim.stamp:
        return draft
    return Draft(draft.claim, End.SETTLING, CHANGED)


def after_failure(claim: Claim, failure: Failure, reason: str, digest: bytes | None) -> Draft:
    """A file that is busy settles again; every other failure is one."""
    if failure is Failure.BUSY:
        return Draft(claim, End.SETTLING, f"busy: {reason}")
    return Draft(claim, End.FAILED, reason, failure, digest)


def reason_for(text: Extracted) -> str:
    """What `why` says of an extraction that went well."""
    if text.kind == "unknown":
        return "read; a file of this kind holds no text"
    return f"read as {text.kind}" + (", text cut at the limit" if text.is_truncated else "")


def served_by_earlier(claim: Claim, digest: bytes) -> Draft:
    """The content is known: an earlier result serves."""
    reason = SAME_AFTER_TOUCH if claim.digest == digest else SAME_CONTENT
    return Draft(claim, End.SKIPPED, reason, digest=digest, same_as=content_key(claim, digest))


@dataclass(slots=True)
class Batch:
    """Drafts since the last commit. `size` is the bytes of text in them."""

    drafts: list[Draft] = field(default_factory=list)
    texts: dict[ContentKey, Extracted] = field(default_factory=dict)
    results: dict[ContentKey, Result] = field(default_factory=dict)
    size: int = 0

    def add(self, draft: Draft) -> None:
        """Take one more draft."""
        self.drafts.append(draft)
        if draft.text is not None and draft.digest is not None:
            self.texts[content_key(draft.claim, draft.digest)] = draft.text
            self.size += len(draft.text.text)

    def drop(self, tasks: frozenset[int]) -> None:
        """Forget what came of these tasks, texts included; files that counted on such a text are released."""
        kept = [draft for draft in self.drafts if draft.claim.task not in tasks]
        self.texts = {content_key(one.claim, one.digest): one.text for one in kept if one.text and one.digest}
        self.drafts = [self._with_its_text(draft) for draft in kept]

    def _with_its_text(self, draft: Draft) -> Draft:
        key = draft.same_as
        has_it = key is None or key in self.texts or key in self.results
        return draft if has_it else Draft(draft.claim, End.RELEASED)

    def has_text(self, key: ContentKey) -> bool:
        """Whether this batch holds the text of that content."""
        return key in self.texts


@dataclass(frozen=True, slots=True)
class Press:
    """What a pack's receipts say beside the file itself, and where packs go."""

    outputs: Path
    pool: str
    owner: str
    nonce: str


def press(batch: Batch, target: Press, now_ns: int) -> list[Finish]:
    """Write the batch's texts as one durable pack, then give the finishes that refer to it.

    May be called again after DiskFull: what was not written is written anew. If the process dies after it, the pack is
    there and nobody refers to it, until a ledger is filled from the packs.
    """
    owners = {
        content_key(draft.claim, draft.digest): draft
        for draft in batch.drafts
        if draft.text is not None and draft.digest is not None
    }
    missing = [draft for key, draft in owners.items() if key not in batch.results]
    if missing:
        entries = [PackEntry(_receipt(draft, target, now_ns), draft.text.text) for draft in missing if draft.text]
        refs = write_pack(target.outputs, entries, now_ns, target.nonce)
        for draft, ref in zip(missing, refs, strict=True):
            assert draft.text is not None
            assert draft.digest is not None
            key = content_key(draft.claim, draft.digest)
            batch.results[key] = Result(draft.digest, draft.claim.plan, ref, draft.text.kind, draft.text.title)
    return [_finish(draft, batch) for draft in batch.drafts]


def _finish(draft: Draft, batch: Batch) -> Finish:
    key = draft.same_as
    if key is None and draft.text is not None and draft.digest is not None:
        key = content_key(draft.claim, draft.digest)
    result = batch.results.get(key) if key is not None else None
    return Finish(draft.claim, draft.end, draft.reason, draft.failure, draft.digest, result)


def _receipt(draft: Draft, target: Press, now_ns: int) -> Receipt:
    claim, text = draft.claim, draft.text
    assert text is not None
    assert draft.digest is not None
    return Receipt(
        pool=target.pool,
        path=claim.path.display,
        path_hex=claim.path.raw.hex(),
        size=claim.stamp.size,
        mtime_ns=claim.stamp.mtime_ns,
        digest=f"sha256:{draft.digest.hex()}",
        processor=claim.plan.processor,
        version=claim.plan.version,
        settings=claim.plan.settings,
        participant=target.owner,
        finished=datetime.fromtimestamp(now_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        kind=text.kind,
        title=text.title,
        pages=text.pages,
        truncated=text.is_truncated,
    )
