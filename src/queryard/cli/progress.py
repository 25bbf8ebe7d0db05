"""Progress on stderr, so that what a command prints on stdout stays clean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import Progress as Bar

from queryard.comparison import Progress


def bar(*shown: ProgressColumn) -> Bar:
    """A bar with what is shown beside it; it disappears at the end. Only people see it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<16}"), BarColumn(), *shown, TimeElapsedColumn())
    return Bar(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def tracking() -> Iterator[Callable[[Progress], None]]:
    """A bar over the queries of all runs, from the first word of their progress."""
    with bar(MofNCompleteColumn(), TextColumn("queries")) as shown:
        task = shown.add_task("", total=None, visible=False)

        def show(step: Progress) -> None:
            shown.update(
                task,
                description=step.policy,
                completed=step.ended,
                total=step.queries,
                visible=True,
            )

        yield show
