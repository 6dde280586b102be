"""Which processors a file wants, and when its turn comes. Pure: a path and a stamp in, a plan out.

Order: priority of the folder; where a loop overwrites (`kept_for`) the earliest overwritten hour first, elsewhere the
newest day first; then the smallest (the ledger's third key). Hours and days, because nanoseconds never tie.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Final

import pathspec

from tidegate.config import Config, FolderConfig
from tidegate.errors import ConfigError
from tidegate.ledger import FilePlan, TaskPlan
from tidegate.pool import Kind, PoolPath, Stamp

NO_TEXT: Final = frozenset(
    " ".join(
        (
            "mp4 mkv avi mov m4v mpg mpeg mts m2ts wmv flv webm dav h264 h265",
            "mp3 wav flac ogg opus m4a aac wma aiff",
            "jpg jpeg png gif bmp tif tiff webp heic heif ico psd raw cr2 nef arw dng",
            "zip 7z rar gz bz2 xz zst tar tgz iso img vmdk vhd qcow2",
            "exe dll so o a bin class jar pyc wasm ttf otf woff woff2 sqlite db",
        )
    ).split()
)
"""Endings of files that hold no text to extract: they are only read for their digest."""

_HOUR_NS: Final = 3_600_000_000_000
_DAY_NS: Final = 24 * _HOUR_NS
_BEFORE_ALL_DAYS: Final = 1 << 40


class Rules:
    """The configured folders and process rules, ready to be asked."""

    def __init__(self, config: Config, versions: Mapping[str, str]) -> None:
        self._versions = versions
        self._digest = config.work.digest
        self._folders = [(_spec(folder.match), folder) for folder in config.pool.folder]
        self._process = [(_spec(rule.match), rule.run) for rule in config.process]
        for rule in config.process:
            if rule.run not in versions:
                raise ConfigError(f"[[process]] run = {rule.run!r}: no such processor", f"known: {', '.join(versions)}")
        known = (config.pool.folder, config.process, config.work.digest, sorted(versions.items()))
        self.fingerprint = hashlib.blake2b(repr(known).encode(), digest_size=16).digest()

    def plan(self, path: PoolPath, kind: Kind, stamp: Stamp) -> FilePlan:
        """What is to be done with a file, and its place in the order."""
        text = os.fsdecode(path.raw) if self._folders or self._process else ""
        folder = self._folder_of(text)
        names = self._processors(path, text, folder) if kind is Kind.FILE else ("register",)
        tasks = tuple(TaskPlan(name, self._versions[name]) for name in dict.fromkeys(names))
        if folder is None:
            return FilePlan(tasks, 1, -(stamp.mtime_ns // _DAY_NS))
        return FilePlan(tasks, folder.priority, _urgency(stamp, folder.kept_for_s), folder.match)

    def _folder_of(self, text: str) -> FolderConfig | None:
        return next((folder for spec, folder in self._folders if spec.match_file(text)), None)

    def _processors(self, path: PoolPath, text: str, folder: FolderConfig | None) -> tuple[str, ...]:
        chosen = tuple(run for spec, run in self._process if spec.match_file(text))
        if chosen:
            return chosen
        if path.suffix not in NO_TEXT:
            return ("text",)
        digest = (folder.digest if folder else None) or self._digest
        return ("register",) if digest == "off" else ("checksum",)


def _urgency(stamp: Stamp, kept_for_s: float | None) -> int:
    if kept_for_s is None:
        return -(stamp.mtime_ns // _DAY_NS)
    return (stamp.mtime_ns + int(kept_for_s * 1e9)) // _HOUR_NS - _BEFORE_ALL_DAYS


def _spec(pattern: str) -> pathspec.GitIgnoreSpec:
    try:
        return pathspec.GitIgnoreSpec.from_lines([pattern])
    except ValueError as error:
        raise ConfigError(
            f"match = {pattern!r} is not a pattern: {error}", "patterns are those of .gitignore"
        ) from error
