"""What commands print for people; names and texts are shown without control or bidirectional characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidegate.cli.views import finished, instant, least_finished, next_action, ratio, total
from tidegate.cli.words import amount
from tidegate.ledger import Counts, FileView, Presence
from tidegate.pool import display

if TYPE_CHECKING:
    from tidegate.index import Found, Hit, Snapshot

out: Final = Console(highlight=False, soft_wrap=True)


def found(result: Found) -> None:
    """Hits, best first."""
    for hit in result.hits:
        out.print(
            Text(hit.path, style="bold"), Text(f"  {amount(hit.size)}  {instant(hit.mtime_ns)[:10]}", style="dim")
        )
        if hit.snippet:
            out.print(Text("    ") + _marked(hit))
    more = result.total - len(result.hits)
    out.print(Text(f"{result.total:,} found" + (f", {more:,} not shown" if more > 0 else ""), style="dim"))


def _marked(hit: Hit) -> Text:
    text, end = Text(), 0
    for start, stop in hit.marks:
        text.append(clean(hit.snippet[end:start]))
        text.append(clean(hit.snippet[start:stop]), style="bold yellow")
        end = stop
    return text.append(clean(hit.snippet[end:]))


def clean(text: str) -> str:
    """Text of a file without what could steer a terminal."""
    return display(text.encode("utf-8", "replace"))


def status(counts: Counts, snapshot: Snapshot | None) -> None:
    """The pool at a glance."""
    every, done = total(counts), finished(counts)
    out.print(f"{done.files:,} of {every.files:,} files done ({ratio(done.files, every.files):.1%}),", end=" ")
    out.print(f"{amount(done.size)} of {amount(every.size)} ({ratio(done.size, every.size):.1%})")
    table = Table("state", "files", "bytes", box=None, pad_edge=False)
    for state, tally in counts.states.items():
        if tally.files:
            table.add_row(state, f"{tally.files:,}", amount(tally.size))
    out.print(table)
    for presence in (Presence.SUSPECTED, Presence.MISSING):
        if counts.presence[presence]:
            out.print(f"{presence}: {counts.presence[presence]:,} files")
    for failure, number in sorted(counts.failures.items()):
        out.print(f"{failure}: {number:,}")
    if snapshot is None:
        out.print("no snapshot published yet")
    else:
        published = instant(snapshot.published_ns)
        out.print(f"snapshot {snapshot.number}: {snapshot.documents:,} documents, published {published}")


def stuck(views: list[FileView]) -> None:
    """Files that failed or are blocked, with their reasons."""
    for view in views:
        task = least_finished(view)
        out.print(
            Text(view.path.display, style="bold"), Text(f"  {task.state} {task.failure or ''}: {clean(task.reason)}")
        )


def why(view: FileView) -> None:
    """Everything about one file."""
    task = least_finished(view)
    out.print(Text(view.path.display, style="bold"))
    rows: dict[str, str] = {
        "state": task.state,
        "presence": view.presence,
        "reason": clean(f"{task.failure}: {task.reason}" if task.failure else task.reason),
        "attempts": str(task.attempts),
        "size": f"{view.stamp.size:,} bytes",
        "changed": instant(view.stamp.mtime_ns),
        "digest": f"sha256:{view.digest.hex()}" if view.digest else "not read yet",
        "next": next_action(view),
    }
    for name, value in rows.items():
        out.print(Text(f"  {name:10}{value}"))
    for event in view.history:
        out.print(
            Text(f"  {instant(event.at_ns)}  {event.processor}  {event.event}  {clean(event.detail)}", style="dim")
        )
