"""What stays of a query for its handle, its answer and all that ask for it by id."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple

from queryard.engine.errors import QueryCancelled
from queryard.results.answer import Answer
from queryard.results.streams import ResultStream, without
from queryard.sim.forecast import Forecast

from .facts import QueryFacts, Status, Timing
from .request import QueryRequest


class TimedForecast(NamedTuple):
    """A forecast, and when it was made on the host's clock."""

    forecast: Forecast
    made_s: float


class Ticket:
    """One query: the loop replaces its facts as a whole, any thread reads them."""

    def __init__(
        self, query: str, facts: QueryFacts, output: ResultStream, keep_s: float | None
    ) -> None:
        self.id = query
        self.facts = facts
        self.output = output
        # How long its rows are kept after its end though no handle is held; None: not at all.
        self.keep_s = keep_s
        self.over = threading.Event()
        self._told: list[Callable[[], None]] = []
        # Its rows are read once: all its handles share one answer, and one reference to the rows.
        self.answer: weakref.ref[Answer] | None = None
        self.interest: weakref.ref[object] | None = None
        # Whether a reader has taken all rows.
        self.is_read = False
        # The first forecast that was made of it.
        self.first_forecast: TimedForecast | None = None
        # Whether the history is told under its key that it has begun, and how it ended.
        self.once = False

    @property
    def request(self) -> QueryRequest:
        return self.facts.request

    @property
    def wanted(self) -> bool:
        """Whether a handle or an answer of it is held."""
        return self.interest is not None and self.interest() is not None

    @property
    def ended(self) -> bool:
        return self.over.is_set()

    def when_over(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call something short once it has ended, on the thread that ends it; at once if so.

        What is given back withdraws the wish.
        """
        self._told.append(call)
        if self.over.is_set():
            self.tell_over()
        return lambda: without(self._told, call)

    def tell_over(self) -> None:
        """Make the calls that were asked for."""
        while True:
            # Two threads may be here: each takes what the other has not.
            try:
                call = self._told.pop()
            except IndexError:
                return
            call()

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None while it runs."""
        return self.facts.error if self.ended else None

    @property
    def status(self) -> Status:
        """How far it is; it has ended as soon as the engine is done with it."""
        facts = self.facts
        if facts.error is not None:
            return "cancelled" if isinstance(facts.error, QueryCancelled) else "failed"
        if facts.ended_s is not None or self.output.complete:
            return "finished"
        return "running" if facts.started_s is not None else "waiting"

    def progress(self) -> float:
        """Share done, from 0 to 1."""
        return 1.0 if self.status == "finished" else self.facts.progress

    def timing(self) -> Timing:
        return self.facts.timing()
