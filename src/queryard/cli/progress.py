"""Progress on stderr, so that what a command prints on stdout stays clean."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


class Tracker:
    """Queries ended, over all runs of a command."""

    def __init__(self, progress: Progress, queries: int, runs: int) -> None:
        self._progress = progress
        self._queries = queries
        self._before = 0
        self._task = progress.add_task("", total=queries * runs)

    def begin(self, what: str) -> None:
        """The next run begins; it may have ended fewer queries than it was given."""
        self._progress.update(self._task, description=what, completed=self._before)
        self._before += self._queries

    def __call__(self, ended: int) -> None:
        """So many queries of this run have ended."""
        base = self._before - self._queries
        self._progress.update(self._task, completed=base + min(ended, self._queries))

    def finish(self) -> None:
        self._progress.update(self._task, completed=self._before)


def bar(*shown: ProgressColumn) -> Progress:
    """A bar with what is shown beside it; it disappears at the end. Only people see it."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<16}"), BarColumn(), *shown, TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def tracking(queries: int, runs: int) -> Iterator[Tracker]:
    """A bar over the queries of all runs."""
    with bar(MofNCompleteColumn(), TextColumn("queries")) as progress:
        tracker = Tracker(progress, queries, runs)
        yield tracker
        tracker.finish()
