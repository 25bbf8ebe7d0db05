"""What a host does beside its queries: threads, timers, and errors that failed no query."""

from __future__ import annotations

import threading
from collections.abc import Callable

from queryard.backends.workers import Workers

# How many errors without effect on queries are kept.
PROBLEMS_KEPT = 20


class Background:
    """`workers` run what takes longer than a moment, `later` runs something after a while."""

    def __init__(self) -> None:
        self.workers = Workers(self.problem)
        self._problems: list[str] = []
        self._timers: set[threading.Timer] = set()
        self._stopped = False

    @property
    def problems(self) -> tuple[str, ...]:
        """The first errors that failed no query."""
        return tuple(self._problems)

    def problem(self, error: BaseException) -> None:
        """Note an error that cost a better estimate, but failed no query."""
        if len(self._problems) < PROBLEMS_KEPT:
            self._problems.append(f"{type(error).__name__}: {error}")

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
