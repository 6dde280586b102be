"""What is never taken in, and why: unfinished and temporary files, the litter of systems, what is no file.

Built-in rules, each with its reason, matched against one name. A name that a program renames to its real one when it is
finished is picked up then, under that name.
"""

from __future__ import annotations

import fnmatch
import re
from typing import Final

from tidegate.pool import Kind, PoolPath

STAGING: Final = ".tidegate-staging"

_UNFINISHED = "still being transferred"
_LOCK = "lock of an open document"
_TRASH = "trash or snapshot of the share"
_LITTER = "litter of an operating system"

BUILT_IN: Final[tuple[tuple[str, str], ...]] = (
    ("*.part", _UNFINISHED),
    ("*.partial", _UNFINISHED),
    ("*.filepart", _UNFINISHED),
    ("*.crdownload", _UNFINISHED),
    ("*.rsync-tmp", _UNFINISHED),
    (".syncthing.*.tmp", _UNFINISHED),
    ("~syncthing~*.tmp", _UNFINISHED),
    (".goutputstream-*", _UNFINISHED),
    ("~$*", _LOCK),
    (".~lock*", _LOCK),
    (".nfs*", "deleted on NFS while open"),
    (".smbdelete*", "deleted on SMB while open"),
    ("@eaDir", "thumbnails of a Synology NAS"),
    ("#recycle", _TRASH),
    ("$RECYCLE.BIN", _TRASH),
    (".Trash-*", _TRASH),
    (".snapshot", _TRASH),
    (".snapshots", _TRASH),
    ("System Volume Information", _LITTER),
    ("lost+found", _LITTER),
    (".DS_Store", _LITTER),
    ("._*", _LITTER),
    ("Thumbs.db", _LITTER),
    ("desktop.ini", _LITTER),
    (STAGING, "uploads in progress"),
)

_RSYNC = "still being transferred (rsync)"
# rsync's temporary names end in six characters of chance; a hidden file with a plain ending, as .x.backup, is a file.
_RSYNC_NAME = rb"(?-i:\..+\.(?=[A-Za-z0-9]{6}\Z)(?![a-z]{6}\Z)[A-Za-z0-9]{6}\Z)"
_ANY: Final = re.compile(
    b"|".join([*(fnmatch.translate(pattern).encode() for pattern, _ in BUILT_IN), _RSYNC_NAME]), re.IGNORECASE
)
# Asked of every name of a pool before any pattern is: the two plain characters that a pattern begins with, or the four
# that it ends with. (A tuple given to `startswith` takes as long as the patterns.)
_BEGINNINGS: Final = frozenset(pattern[:2].lower().encode() for pattern, _ in BUILT_IN if pattern[0] != "*")
_ENDINGS: Final = frozenset(pattern[-4:].lower().encode() for pattern, _ in BUILT_IN if pattern[0] == "*")
_SPECIAL: Final = Kind.SPECIAL  # to look up a member of an enum takes longer than to compare two names
_EACH: Final = tuple(
    (re.compile(fnmatch.translate(pattern).encode(), re.IGNORECASE), reason) for pattern, reason in BUILT_IN
)


def is_ignored(folder: PoolPath, name: bytes, kind: Kind) -> bool:
    """Whether an entry is left out of the ledger: see `reason_to_ignore`."""
    if kind is _SPECIAL:
        return True
    lower = name.lower()
    if lower[:2] not in _BEGINNINGS and lower[-4:] not in _ENDINGS and lower[:1] != b".":
        return False
    return _ANY.match(name) is not None and reason_to_ignore(name, kind) is not None


def reason_to_ignore(name: bytes, kind: Kind = Kind.FILE) -> str | None:
    """Why an entry of this name is not taken in, None where it is."""
    if kind is Kind.SPECIAL:
        return "no file: a pipe, socket or device"
    for pattern, reason in _EACH:
        if pattern.match(name):
            return reason
    return _RSYNC if re.match(_RSYNC_NAME, name) and kind is Kind.FILE else None


def reason_for_path(path: PoolPath) -> str | None:
    """Why a file at `path` is not taken in: for its own name or that of a folder above it."""
    for part in path.raw.split(b"/"):
        reason = reason_to_ignore(part)
        if reason is not None:
            return f"{part.decode('utf-8', 'replace')}: {reason}"
    return None
