"""How commands print: tables for people, JSON for programs, progress on standard error."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgekit.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[str, float], None]


def print_json(value: Any) -> None:
    """Prints a value as indented JSON on standard output."""
    print(json.dumps(value, indent=1))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int] = ()
) -> None:
    """Prints a table on standard output.

    Args:
        title: Line above it; empty for none.
        columns: Headings.
        rows: Cells, turned into text by str.
        right: Indices of columns that are aligned to the right.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(escape(column), justify="right" if index in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    terminal = sys.stdout.isatty()
    text = io.StringIO()  # printed by rich itself, a reader that has gone would end the process
    Console(file=text, force_terminal=terminal, width=None if terminal else 160, highlight=False).print(table)
    print(text.getvalue(), end="")


def note_untuned(package: Path, threads: set[int]) -> None:
    """Says on standard error when a package is tuned for this device, but not for a number of threads that is to run.

    Args:
        package: The .ekpkg file.
        threads: Numbers of threads within an inference.
    """
    from edgekit.package.reader import open_package
    from edgekit.runtime.tuning import tuning_file, untuned_note

    if not Path(tuning_file(str(package))).exists():
        return
    with open_package(package) as opened:
        note = untuned_note(opened, threads)
    if note:
        print(printable(f"note: {note}"), file=sys.stderr)


def help_console() -> Console:
    """A console for help texts; unlike rich's own it does not end the process when the reader, such as head, has gone.

    Raises:
        BrokenPipeError: By its print(), in that case.
    """
    from rich.console import Console

    class PipedConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipedConsole()


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A progress bar on standard error where that is a terminal, otherwise one line a stage.

    Args:
        label: What is being done.

    Yields:
        A function to call with the name of the stage and the share done, 0..1.
    """
    if not sys.stderr.isatty():
        current = ""

        def line(stage: str, _share: float) -> None:
            nonlocal current
            if current and stage != current:  # a stage that fails leaves only the line of the error
                print(f"{printable(label)}: {current}", file=sys.stderr)
            current = stage

        yield line
        if current:
            print(f"{printable(label)}: {current}", file=sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=1.0)
        yield lambda stage, share: bar.update(task, description=f"{label}: {stage}", completed=share)


def human_bytes(count: float) -> str:
    """Writes a size: 1536 -> 1.5 KiB."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
