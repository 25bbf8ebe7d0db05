"""What hears of the queries of a server: of beginnings at once, of ends mostly a moment later."""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Protocol

from .submitted import Submitted

# Ends of this time are told together: the scheduler's thread, which ends queries, is not held up,
# and a thread that is woken for each would cost more than telling them. What is shown is told first
# (`tell`), and the history is written as rarely.
GATHER_S = 0.4
_log = logging.getLogger("queryard.service")


class Watcher(Protocol):
    """Hears of every query of the server, in threads of others: it must be short."""

    def began(self, submitted: Submitted) -> None: ...
    def ended(self, submitted: Submitted) -> None: ...


class Watchers:
    """All watchers of a server; calls come from any thread."""

    def __init__(self) -> None:
        self._all: list[Watcher] = []
        self._prompt: list[Watcher] = []
        self._ends: deque[Submitted] = deque()
        # Held while ends are told, so that each is told once and all in order.
        self._telling = threading.Lock()
        self._some = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="queryard-yard-ends", daemon=True)
        self._thread.start()

    def add(self, watcher: Watcher, *, prompt: bool = False) -> None:
        """Tell a watcher of every query from now on; of ends `prompt` at once."""
        (self._prompt if prompt else self._all).append(watcher)

    def began(self, submitted: Submitted) -> None:
        for watcher in (*self._prompt, *self._all):
            watcher.began(submitted)

    def ended(self, submitted: Submitted) -> None:
        """A query has ended; it is told soon."""
        for watcher in self._prompt:
            watcher.ended(submitted)
        self._ends.append(submitted)
        if self._over.is_set():
            self.tell()
        elif not self._some.is_set():
            self._some.set()

    def tell(self) -> None:
        """Tell all ends so far now: what the watchers know is about to be shown."""
        with self._telling:
            while self._ends:
                submitted = self._ends.popleft()
                for watcher in self._all:
                    try:
                        watcher.ended(submitted)
                    except Exception:  # a defect of one must not keep it from the others
                        _log.exception("the end of query %s was not noted", submitted.id)

    def _run(self) -> None:
        while not self._over.is_set():
            self._some.wait()
            self._some.clear()
            self._over.wait(GATHER_S)
            self.tell()

    def close(self) -> None:
        """Tell the rest, and end."""
        self._over.set()
        self._some.set()
        if self._thread is not threading.current_thread():
            self._thread.join()
        self.tell()
