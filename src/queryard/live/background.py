"""What a host does beside its queries: threads, timers, and errors that failed no query."""

from __future__ import annotations

import threading
from collections.abc import Callable

from queryard.backends.workers import Workers

# How many errors without effect on queries are kept.
PROBLEMS_KEPT = 20
# Is told the kind of an error, and its text.
Hear = Callable[[str, str], None]


class Background:
    """`workers` run what takes longer than a moment, `later` runs something after a while."""

    def __init__(self) -> None:
        self.workers = Workers(self.problem)
        # The kind and the text of each, in the order in which they came.
        self._problems: dict[tuple[str, str], None] = {}
        self._hear: Hear = lambda kind, text: None
        self._noting = threading.Lock()
        self._timers: set[threading.Timer] = set()
        self._stopped = False

    @property
    def problems(self) -> tuple[str, ...]:
        """The first errors that failed no query, each once."""
        return tuple(f"{kind}: {text}" for kind, text in list(self._problems))

    def problem(self, error: BaseException) -> None:
        """Note an error that cost a better estimate, but failed no query."""
        found = type(error).__name__, str(error)
        with self._noting:
            if found in self._problems or len(self._problems) >= PROBLEMS_KEPT:
                return
            self._problems[found] = None
            self._hear(*found)

    def tell_problems(self, hear: Hear) -> None:
        """Tell of problems as they come, and of those that came before; it must be short."""
        with self._noting:
            self._hear = hear
            for kind, text in self._problems:
                hear(kind, text)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        """Start something after some seconds, unless it is stopped before."""

        def start() -> None:
            self._timers.discard(timer)
            self.workers.start(work)

        timer = threading.Timer(seconds, start)
        timer.daemon = True
        if not self._stopped:
            self._timers.add(timer)
            timer.start()

    def stop(self) -> None:
        """Start nothing later from now on; what was started goes on."""
        self._stopped = True
        for timer in list(self._timers):
            timer.cancel()

    def close(self, deadline: float) -> bool:
        """End all threads; False if some go on longer than that."""
        return self.workers.close(deadline)
