"""Two bars on a terminal, for files and for bytes: they tell different stories, since small files come first."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Drawing

from tidegate.cli.words import amount, duration
from tidegate.ledger import Progress


class Bars:
    """Drawn on stderr from `start` to `stop`, and gone after it; sentences pass above them."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        columns = (TextColumn(f"{{task.fields[{name}]}}") for name in ("amount", "rate", "left"))
        self._drawing = Drawing(
            TextColumn("{task.description}"), BarColumn(), *columns, console=self._console, transient=True
        )
        self._files = self._drawing.add_task("files", total=None, amount="", rate="", left="")
        self._size = self._drawing.add_task("bytes", total=None, amount="", rate="", left="")
        self.start, self.stop = self._drawing.start, self._drawing.stop

    def say(self, sentence: str) -> None:
        """Print a sentence above the bars."""
        self._console.print(sentence, markup=False)

    def show(self, progress: Progress, *, is_stopping: bool) -> None:
        """Draw where the round stands."""
        done, wanted = progress.done, progress.wanted
        open_end = "" if progress.is_scan_complete else "+"
        left = f"{duration(progress.left_s)} left" if progress.left_s is not None else ""
        self._drawing.update(
            self._files,
            total=wanted.files or None,
            completed=done.files,
            amount=f"{done.files:,}/{wanted.files:,}{open_end}",
            rate=f"{progress.files_per_s:,.0f}/s",
            left="stopping …" if is_stopping else left,
        )
        self._drawing.update(
            self._size,
            total=wanted.size or None,
            completed=done.size,
            amount=f"{amount(done.size)}/{amount(wanted.size)}{open_end}",
            rate=f"{amount(int(progress.bytes_per_s))}/s",
        )
