"""A bar for a query that takes its time, on stderr, and only for people."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from .progress import bar

PATIENCE_S = 0.3
REFRESH_S = 0.1


class Running(Protocol):
    """A query on its way: `queryard.live.Handle`."""

    @property
    def status(self) -> str: ...
    def progress(self) -> float: ...


class Watch:
    """Shows how far a query is, from its own thread, until it is stopped."""

    def __init__(self, query: Running, console: Console) -> None:
        self._query = query
        self._console = console
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        if console.is_terminal:
            self._thread = threading.Thread(target=self._run, name="queryard-bar", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Take the bar away; it may be called again."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        if self._stopped.wait(PATIENCE_S):
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]Ctrl-C cancels[/dim]"),
        )
        with Progress(*columns, console=self._console, transient=True) as progress:
            task = progress.add_task(self._query.status, total=1.0)
            while not self._stopped.wait(REFRESH_S):
                share = self._query.progress()
                progress.update(task, completed=share, description=self._query.status)


@contextmanager
def watching(query: Running, console: Console | None = None) -> Iterator[Watch]:
    """A bar while the block runs, if it takes longer than a moment."""
    watch = Watch(query, console or Console(stderr=True))
    try:
        yield watch
    finally:
        watch.stop()


@contextmanager
def sharing(what: str) -> Iterator[ShareBar]:
    """A bar for something that tells its share itself."""
    with bar(TaskProgressColumn()) as progress:
        yield ShareBar(progress, what)


class ShareBar:
    """Called with the share done and what is being done."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=1.0)

    def __call__(self, share: float, what: str) -> None:
        self._progress.update(self._task, completed=share, description=what or "done")
