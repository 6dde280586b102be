"""What `--json` prints: plain objects made from the values of the rooms below. Stable; see docs/formats.md."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.ledger import Counts, End, FileView, Presence, State, Tally, TaskView

if TYPE_CHECKING:
    from tidegate.index import Found, Snapshot
    from tidegate.rounds import Summary

_ORDER = tuple(State)


def put(value: object) -> None:
    """Print one JSON object to stdout."""
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
    sys.stdout.buffer.flush()


def instant(wall_ns: int) -> str:
    """Wall time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(wall_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def finished(counts: Counts) -> Tally:
    """Files and bytes that need no more work."""
    done, skipped = counts.states[State.DONE], counts.states[State.SKIPPED]
    return Tally(done.files + skipped.files, done.size + skipped.size)


def total(counts: Counts) -> Tally:
    """All known files and their bytes."""
    tallies = counts.states.values()
    return Tally(sum(tally.files for tally in tallies), sum(tally.size for tally in tallies))


def ratio(part: int, whole: int) -> float:
    """Part of a whole, 1.0 of nothing."""
    return round(part / whole, 6) if whole else 1.0


def status(counts: Counts, snapshot: Snapshot | None) -> dict[str, Any]:
    """`status --json`."""
    all_files, done = total(counts), finished(counts)
    states = ("settling", "ready", "claimed", "done", "skipped", "failed", "blocked")
    files = {"total": all_files.files} | {state: counts.states[State(state)].files for state in states}
    files |= {str(one): counts.presence[one] for one in (Presence.SUSPECTED, Presence.MISSING)}
    return {
        "files": files,
        "bytes": {"total": all_files.size, "done": done.size},
        "done_files_ratio": ratio(done.files, all_files.files),
        "done_bytes_ratio": ratio(done.size, all_files.size),
        "snapshot": _snapshot(snapshot),
        "folders": [
            {
                "match": folder.match,
                "files": sum(tally.files for tally in folder.states.values()),
                "bytes": sum(tally.size for tally in folder.states.values()),
            }
            | {state: folder.states[State(state)].files if State(state) in folder.states else 0 for state in states}
            for folder in counts.folders
        ],
        "lease": {"store": "ledger"},
    }


def _snapshot(snapshot: Snapshot | None) -> dict[str, Any] | None:
    if snapshot is None:
        return None
    published = instant(snapshot.published_ns)
    return {"id": snapshot.number, "published_at": published, "documents": snapshot.documents}


def search(found: Found) -> dict[str, Any]:
    """`search --json`."""
    hits = [{"path": hit.path, "score": round(hit.score, 6), "snippet": hit.snippet} for hit in found.hits]
    return {"snapshot": found.snapshot, "total": found.total, "hits": hits}


def run(summary: Summary) -> dict[str, Any]:
    """`run --json`."""
    return {
        "scanned": summary.scan.files,
        "new": summary.scan.new,
        "changed": summary.scan.changed,
        "unchanged": summary.scan.unchanged,
        "processed": summary.work.ends[End.DONE],
        "skipped": summary.work.ends[End.SKIPPED],
        "failed": summary.failed,
        "blocked": summary.blocked,
        "seconds": round(summary.seconds, 3),
    }


def least_finished(view: FileView) -> TaskView:
    """The task that speaks for the file."""
    return min(view.tasks, key=lambda task: _ORDER.index(task.state))


def why(view: FileView) -> dict[str, Any]:
    """`why --json`."""
    task, stamp = least_finished(view), view.stamp
    return {
        "path": view.path.display,
        "state": task.state,
        "presence": view.presence,
        "reason": f"{task.failure}: {task.reason}" if task.failure else task.reason,
        "attempts": task.attempts,
        "digest": f"sha256:{view.digest.hex()}" if view.digest else None,
        "stamp": {
            "size": stamp.size,
            "mtime_ns": stamp.mtime_ns,
            "ctime_ns": stamp.ctime_ns,
            "inode": stamp.inode,
        },
        "history": [
            {"at": instant(event.at_ns), "processor": event.processor, "event": event.event, "detail": event.detail}
            for event in view.history
        ],
        "next": next_action(view),
    }


def next_action(view: FileView) -> str:
    """What happens next to a file, and who has to act."""
    task = least_finished(view)
    if view.presence is not Presence.PRESENT:
        return "the file was not there at the last look; it is looked at again when a scan sees it"
    match task.state:
        case State.SETTLING:
            return "looked at again until it rests; then it is read"
        case State.READY:
            return "read by the next participant that is free"
        case State.CLAIMED:
            return f"being worked on by {task.owner}"
        case State.FAILED:
            return f"tried again in {task.due_in_s or 0:.0f} s"
        case State.BLOCKED:
            return "waits for a change of the file, or for: tidegate retry"
        case _:
            return "nothing, until the file changes"
