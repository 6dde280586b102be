"""Snapshots of the index: build and search. `publish` makes the next one from what changed, a `Searcher` holds one."""

from tidegate.index.layout import Change, Document, Removal
from tidegate.index.plan import Filters
from tidegate.index.publishing import publish
from tidegate.index.search import Found, Hit, Searcher
from tidegate.index.snapshots import Since, Snapshot, collect, current, start_change

__all__ = [
    "Change",
    "Document",
    "Filters",
    "Found",
    "Hit",
    "Removal",
    "Searcher",
    "Since",
    "Snapshot",
    "collect",
    "current",
    "publish",
    "start_change",
]
