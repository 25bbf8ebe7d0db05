"""A query on a server: its progress, its answer, and how to stop it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Generator
from typing import Any

import httpx

from queryard.core.errors import QueryardError
from queryard.live.amounts import as_seconds
from queryard.live.facts import Status, Timing
from queryard.live.why import WaitReport
from queryard.results.answer import Answer
from queryard.results.explanation import Explanation
from queryard.results.streams import ResultStream
from queryard.sim.forecast import Forecast

from .errors import error_of
from .rows import RowReader
from .states import Told, explanation_of, report_of, timing_of
from .transport import Transport

# How long one request waits for the end of a query.
WAIT_S = 30.0
# How old what is known of a query may be where a property is read.
FRESH_S = 0.02
_ENDED = ("finished", "failed", "cancelled")


def _nothing(query: str) -> None:
    """Where no session wants to know that a query is over."""


class RemoteHandle:
    """What `submit` gives back at once, with the methods of an embedded session's handle.

    A query that only reads is cancelled when neither its handle nor its answer is held any more.
    One that was submitted with `keep` runs on.
    """

    def __init__(
        self,
        transport: Transport,
        state: Told,
        *,
        has_side_effects: bool = False,
        keeps: bool = True,
        response: httpx.Response | None = None,
        owner: object = None,
        over: Callable[[str], None] = _nothing,
    ) -> None:
        """`response` is an answer with its rows from the first on, if there is one already.

        `over` is told when the query has ended, or is cancelled.
        """
        self.id: str = state["id"]
        self.sql: str = state["sql"]
        self.has_side_effects = has_side_effects
        self._transport = transport
        self._state = state
        self._seen_s = time.monotonic()
        self._lock = threading.Lock()
        self._response = response
        self._answer: Answer | None = None
        self._shared: weakref.ref[Answer] | None = None
        self._over = over
        self._rows = _Rows(transport, self.id, over, cancels=not (keeps or has_side_effects))
        self._interest = _Interest(self._rows, owner)

    # --- how far it is ---------------------------------------------------------------------------

    def _now(self) -> Told:
        """What the server says of it; of an ended query nothing changes any more."""
        fresh = "timing" in self._state and time.monotonic() - self._seen_s < FRESH_S
        if self._state["state"] not in _ENDED and not fresh:
            self._see(self._transport.json("GET", f"/v1/queries/{self.id}"))
        return self._state

    def _see(self, state: Told) -> None:
        self._state, self._seen_s = state, time.monotonic()
        if state["timing"]["ended_s"] is not None:
            self._over(self.id)

    @property
    def status(self) -> Status:
        """How far it is."""
        status: Status = self._now()["state"]
        return status

    def progress(self) -> float:
        """Share done, from 0 to 1; of a native query as DuckDB sees it, not linear in time."""
        return float(self._now()["progress"])

    @property
    def timing(self) -> Timing:
        """When it was submitted, began and ended on the server's clock, and what it has cost."""
        return timing_of(self._now())

    @property
    def ended(self) -> bool:
        """Whether it is over, well or not."""
        return self.status in _ENDED and self._now()["timing"]["ended_s"] is not None

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None while it runs and if it did not."""
        told = self._now()["error"]
        return None if told is None else error_of(told)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it runs natively although it was to be staged."""
        return tuple(self._now()["reasons"])

    def why(self) -> WaitReport:
        """What is ahead of it, which rule holds it, and when it will start and end.

        Once it has ended: how long it took, and how good the forecast was.
        """
        return report_of(self._transport.json("GET", f"/v1/queries/{self.id}"))

    def forecast(self) -> Forecast | None:
        """When it is expected to start and end, on the server's clock."""
        return self.why().forecast

    def explain(self) -> Explanation | None:
        """How it is run: its jobs, with what was expected of them and what came of it."""
        told = self._transport.json("GET", f"/v1/queries/{self.id}/plan")
        return explanation_of(told) if told else None

    # --- its answer ------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, Answer]:
        """`answer = await handle`: the answer, as soon as its first rows are there."""
        return self._ready().__await__()

    async def _ready(self) -> Answer:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()

        def tell() -> None:
            # The event loop may be closed by the time the query answers: then nothing awaits it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

        withdraw = self._reading().when_ready(tell)
        try:
            await ready.wait()
        finally:
            withdraw()
        return self.result()

    def result(self, timeout: float | str | None = None) -> Answer:
        """The answer, as soon as its first rows are there; raises the query's error.

        A `TimeoutError` is raised after the `timeout`: seconds, or a text such as "5 min".
        """
        if self._answer is None:
            self._answer = self.take(timeout)
        return self._answer

    def take(self, timeout: float | str | None = None) -> Answer:
        """The answer, for a caller that keeps it: the rows are freed with the answer object."""
        stream = self._reading()
        stream.schema(_seconds(timeout))
        with self._lock:
            answer = None if self._shared is None else self._shared()
            if answer is None and stream.touched:
                raise QueryardError(
                    f"query {self.id}: some of its rows were read before and are not kept; run it "
                    "again"
                )
            if answer is None:
                answer = Answer(stream, self._rows.leave, self._interest)
                self._shared = weakref.ref(answer)
        return answer

    def _reading(self) -> ResultStream:
        """Its rows, which are read from now on."""
        with self._lock:
            response, self._response = self._response, None
            return self._rows.stream or self._rows.start(response)

    def gather(self, rows: int, size_bytes: int, timeout_s: float | None = None) -> None:
        """Wait until so many rows have come, or bytes wait to be read, or no more will come; at
        most so long.
        """
        self._reading().gather(rows, size_bytes, timeout_s)

    def when_gathered(self, rows: int, size_bytes: int, call: Callable[[], None]) -> None:
        """Call something short once `gather` would return, from any thread."""
        self._reading().when_gathered(rows, size_bytes, call)

    def wait(self, timeout: float | str | None = None) -> bool:
        """Wait until the query has ended; True if it has. Its rows must be read meanwhile."""
        seconds = _seconds(timeout)
        until_s = None if seconds is None else time.monotonic() + seconds
        while True:
            left_s = WAIT_S if until_s is None else min(WAIT_S, until_s - time.monotonic())
            state = self._transport.json(
                "GET",
                f"/v1/queries/{self.id}",
                params={"wait": max(0.0, left_s)},
                wait_s=WAIT_S,
            )
            self._see(state)
            if state["timing"]["ended_s"] is not None:
                return True
            if until_s is not None and time.monotonic() >= until_s:
                return False

    def cancel(self) -> None:
        """Stop it; what it held is free again within about 100 ms."""
        self._see(self._transport.json("DELETE", f"/v1/queries/{self.id}"))

    def cancel_quietly(self) -> None:
        """Stop it in the background, whatever the server says."""
        self._rows.leave()
        self._transport.later("DELETE", f"/v1/queries/{self.id}")

    def _ipython_display_(self) -> None:
        """In a notebook: its progress, then its first rows; an interrupt cancels it."""
        from queryard.results.notebook import show_query

        show_query(self)

    def __repr__(self) -> str:
        return f"<RemoteHandle {self.id} {self.status} {self.progress():.0%}>"


class _Interest:
    """Held by a handle and by its answer: without it, the rows cannot be read any more."""

    def __init__(self, rows: _Rows, owner: object) -> None:
        self._owner = owner
        finalizer = weakref.finalize(self, rows.leave)
        finalizer.atexit = False


class _Rows:
    """The rows of a query on their way here; it knows nothing of handles and answers."""

    def __init__(
        self, transport: Transport, query: str, over: Callable[[str], None], cancels: bool
    ) -> None:
        self._transport = transport
        self._query = query
        self._over = over
        # Whether the query is cancelled when its rows are wanted no more.
        self._cancels = cancels
        self.stream: ResultStream | None = None

    def start(self, response: httpx.Response | None) -> ResultStream:
        """Read them, into a stream."""
        self.stream = ResultStream()
        RowReader(self._transport, self._query, self.stream, response)
        return self.stream

    def leave(self) -> None:
        """They are wanted no more; a finalizer may call this in the middle of anything."""
        if self.stream is not None:
            if self.stream.complete:
                self._over(self._query)
                return  # the server knows that they were read
            self.stream.close()
        if self._cancels:
            self._cancels = False
            self._over(self._query)
            self._transport.later("DELETE", f"/v1/queries/{self._query}")


def _seconds(timeout: float | str | None) -> float | None:
    """A timeout as it may be written; 0 is no wait at all."""
    if timeout is None or (isinstance(timeout, int | float) and timeout <= 0):
        return timeout
    return as_seconds(timeout, "timeout")
