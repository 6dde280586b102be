"""The commands. Each is a few lines: open a Gate, do one thing, print, and turn the outcome into an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from tidegate.cli.exits import Exit, exit_for
from tidegate.cli.words import readable, talk
from tidegate.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from tidegate.gate import Gate
    from tidegate.rounds import Phases, Summary

app = typer.Typer(
    name="tidegate",
    help="Turns a shared folder into results: reads no half file, does each file once, loses nothing it acknowledged.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

PoolArgument = Annotated[Path | None, typer.Argument(metavar="PATH", help="The shared folder.", show_default=False)]
PoolOption = Annotated[Path | None, typer.Option("--pool", help="The shared folder.", show_default=False)]
ConfigOption = Annotated[Path | None, typer.Option("--config", help="Configuration file.", show_default=False)]
StateOption = Annotated[Path | None, typer.Option("--state", help="State folder.", show_default=False)]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]


def open_gate(pool: Path | None, config: Path | None, state: Path | None) -> Gate:
    """The gate that the options mean; says so when a damaged ledger was put aside."""
    from tidegate.gate import Gate

    return Gate.open(pool, config=config, state=state)


def _round(gate: Gate, phases: Phases, as_json: bool) -> NoReturn:
    from tidegate.cli import views
    from tidegate.cli.live import Live, stop_signals

    with stop_signals() as stop, gate:
        live = Live(stop)
        _prepare(gate)
        with live.shown():
            summary = gate.run(live.hooks(), phases)
        if as_json:
            views.put(views.run(summary))
        else:
            live.sum_up(summary)
    raise typer.Exit(_exit_after(summary))


def _prepare(gate: Gate) -> None:
    if (aside := gate.prepare()) is not None:
        talk(f"the ledger was damaged; it was put aside as {aside} and is rebuilt from the pool and the outputs")


def _exit_after(summary: Summary) -> Exit:
    if summary.is_stopped:
        return Exit.INTERRUPTED
    has_failures = summary.failed or summary.blocked or summary.scan.errors
    return Exit.SOME_FAILED if has_failures else Exit.WELL


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="The shared folder.")],
    config: Annotated[Path, typer.Option("--config", help="File to write.")] = Path("tidegate.toml"),
) -> None:
    """Write a commented tidegate.toml for a shared folder.

    Examples: `tidegate init /mnt/share` · `tidegate init /mnt/share --config office.toml`
    """
    from tidegate.cli.template import template

    pool, target = path.absolute(), config.absolute()
    if not pool.is_dir():
        raise UsageError(f"{pool} is not a folder", "name the shared folder itself")
    if target.resolve().is_relative_to(pool.resolve()):
        raise UsageError(f"{target} lies inside the pool", "nothing of Tidegate's own goes there: use --config FILE")
    try:
        text = template(pool)
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{pool} cannot stand in a configuration file: its name is not UTF-8", "run without one: tidegate run PATH"
        ) from error
    try:
        with target.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise UsageError(f"{target} exists", "remove it first, or write another with --config FILE") from error
    talk(f"wrote {target}; next: tidegate run")


@app.command()
def run(
    path: PoolArgument = None,
    config: ConfigOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Do one round: recover, scan, settle, process, publish; until nothing is left to do.

    Examples: `tidegate run /mnt/share` · `tidegate run /mnt/share --json`
    """
    from tidegate.rounds import Phases

    _round(open_gate(path, config, state), Phases(), as_json)


@app.command()
def watch(path: PoolArgument = None, config: ConfigOption = None, state: StateOption = None) -> None:
    """Keep doing rounds until Ctrl-C; how often is set by [scan] every.

    Examples: `tidegate watch /mnt/share` · `tidegate watch --config tidegate.toml`
    """
    from tidegate.cli.live import Live, stop_signals

    with stop_signals() as stop, open_gate(path, config, state) as gate:
        live = Live(stop)
        _prepare(gate)
        for summary in gate.watch(live.hooks()):
            live.sum_up(summary)
    raise typer.Exit(Exit.INTERRUPTED)


@app.command()
def scan(
    path: PoolArgument = None, config: ConfigOption = None, state: StateOption = None, as_json: JsonOption = False
) -> None:
    """Look for new and changed files only; nothing is read.

    Examples: `tidegate scan /mnt/share` · `tidegate scan /mnt/share --json`
    """
    from tidegate.rounds import Phases

    _round(open_gate(path, config, state), Phases(work=False, publish=False), as_json)


@app.command()
def work(
    path: PoolArgument = None, config: ConfigOption = None, state: StateOption = None, as_json: JsonOption = False
) -> None:
    """Work off what is known, without scanning or publishing.

    Examples: `tidegate work /mnt/share` · `tidegate work /mnt/share --json`
    """
    from tidegate.rounds import Phases

    _round(open_gate(path, config, state), Phases(scan=False, publish=False), as_json)


@app.command()
def publish(
    path: PoolArgument = None, config: ConfigOption = None, state: StateOption = None, as_json: JsonOption = False
) -> None:
    """Publish what is done as a new snapshot of the index.

    Examples: `tidegate publish /mnt/share` · `tidegate publish /mnt/share --json`
    """
    from tidegate.rounds import Phases

    _round(open_gate(path, config, state), Phases(scan=False, work=False), as_json)


@app.command()
def search(
    query: Annotated[list[str], typer.Argument(help='Words, "phrases", prefix*, AND OR NOT ( ).')],
    pool: PoolOption = None,
    config: ConfigOption = None,
    state: StateOption = None,
    folder: Annotated[str, typer.Option(help="Only below this folder of the pool.")] = "",
    kind: Annotated[list[str] | None, typer.Option("--type", help="Only of this type: pdf, docx, plain …")] = None,
    since: Annotated[str, typer.Option(help="Changed on this day or later: YYYY-MM-DD.")] = "",
    until: Annotated[str, typer.Option(help="Changed before this day: YYYY-MM-DD.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Hits at most.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Find files by their text and names, in the newest snapshot.

    Examples: `tidegate search 合同` · `tidegate search '"annual report" -draft' --type pdf --since 2026-01-01`
    """
    from tidegate.cli import show, views
    from tidegate.index import Filters

    filters = Filters(os.fsencode(folder), tuple(kind or ()), day_ns(since), day_ns(until))
    with open_gate(pool, config, state) as gate:
        found = gate.search(" ".join(query), filters, limit=limit)
    views.put(views.search(found)) if as_json else show.found(found)


def day_ns(text: str) -> int | None:
    """The beginning of a day, UTC, in nanoseconds; None for no text. Raises UsageError."""
    if not text:
        return None
    try:
        return int(datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) * 1_000_000_000
    except ValueError as error:
        raise UsageError(f"{text} is not a day", "write it as 2026-01-31") from error


@app.command()
def status(
    path: PoolArgument = None,
    config: ConfigOption = None,
    state: StateOption = None,
    stuck: Annotated[bool, typer.Option("--stuck", help="List files that failed or are blocked.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Files listed at most.")] = 100,
    as_json: JsonOption = False,
) -> None:
    """Show how far the pool is: files and bytes by state, classes of failure, the newest snapshot.

    Examples: `tidegate status` · `tidegate status /mnt/share --stuck`
    """
    from tidegate.cli import show, views

    with open_gate(path, config, state) as gate:
        counts, snapshot = gate.counts(), gate.snapshot()
        listed = list(gate.stuck(limit)) if stuck else []
    if as_json:
        shown = views.status(counts, snapshot)
        views.put(shown | {"stuck": [views.why(view) for view in listed]} if stuck else shown)
        return
    show.status(counts, snapshot)
    show.stuck(listed)


@app.command()
def why(
    file: Annotated[str, typer.Argument(help="The file: its path in the pool, from here, or as it was displayed.")],
    pool: PoolOption = None,
    config: ConfigOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell state, reason, history and next action of one file.

    Examples: `tidegate why invoices/2024/a.pdf` · `tidegate why a.pdf --json`
    """
    from tidegate.cli import show, views

    with open_gate(pool, config, state) as gate:
        view = gate.why(file)
    views.put(views.why(view)) if as_json else show.why(view)


@app.command()
def retry(
    path: PoolArgument = None,
    below: Annotated[str, typer.Option(help="Only this file, or files below this folder of the pool.")] = "",
    failure: Annotated[str, typer.Option("--class", help="Only this class: corrupt, timeout, crash …")] = "",
    config: ConfigOption = None,
    state: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Free failed and blocked files, so that the next round tries them again.

    Examples: `tidegate retry` · `tidegate retry /mnt/share --class timeout --below scans`
    """
    from tidegate.cli import views
    from tidegate.errors import Failure
    from tidegate.ledger import Selection

    if failure and failure not in set(Failure):
        raise UsageError(f"{failure} is no class of failure", f"known: {', '.join(Failure)}")
    with open_gate(path, config, state) as gate:
        chosen = Selection(gate.pool_path(below) if below else None, Failure(failure) if failure else None)
        count = gate.retry(chosen)
    if as_json:
        views.put({"retried": count})
        return
    talk(f"{count} freed; next: tidegate run")


@app.command()
def config(
    pool: PoolOption = None, config: ConfigOption = None, state: StateOption = None, as_json: JsonOption = False
) -> None:
    """Show every setting in force and where it comes from.

    Examples: `tidegate config --pool /mnt/share` · `tidegate config --json`
    """
    from tidegate.cli import views
    from tidegate.cli.settings import in_force
    from tidegate.config import Environment, load

    loaded = load(Environment.read(), pool=pool, file=config, state=state)
    settings = in_force(loaded)
    if as_json:
        source = readable(loaded.source) if loaded.source else None
        views.put({"source": source, "settings": settings})
        return
    talk(f"from {loaded.source}" if loaded.source else "no configuration file; defaults")
    for name, value in settings.items():
        print(f"{name} = {value}")


@app.command()
def doctor(
    path: PoolArgument = None, config: ConfigOption = None, state: StateOption = None, as_json: JsonOption = False
) -> None:
    """Look whether machine, pool and state folder can do what is needed.

    Examples: `tidegate doctor /mnt/share` · `tidegate doctor --json`
    """
    from tidegate.cli import views
    from tidegate.cli.doctor import examine
    from tidegate.config import Environment, load

    findings = examine(load(Environment.read(), pool=path, file=config, state=state))
    if as_json:
        views.put([{"name": one.name, "level": one.level, "said": readable(one.said)} for one in findings])
    else:
        for one in findings:
            print(f"{one.level:8} {one.name}: {readable(one.said)}")
    if any(one.level == "failure" for one in findings):
        raise typer.Exit(Exit.FAILED)


def main(arguments: list[str] | None = None) -> Any:
    """The program `tidegate`: run the command, print an expected error as two lines, exit with its code."""
    return _guarded(lambda: app(args=arguments, prog_name="tidegate"))


def _guarded(act: Callable[[], Any]) -> Any:
    try:
        try:
            return act()
        finally:
            sys.stdout.flush()  # here, not at exit, so that a pipe that was closed early is answered below
    except TidegateError as error:
        talk(f"tidegate: {error}")
        if error.hint:
            talk(f"  try: {error.hint}")
        sys.exit(exit_for(error))
    except KeyboardInterrupt:
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.WELL)
    except OSError as error:
        talk(f"tidegate: {error.filename or 'a file of Tidegate'}: {error.strerror or error}")
        talk("  try: tidegate doctor")
        sys.exit(Exit.FAILED)
