"""An active query: its progress, its answer, and how to stop it."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from queryard.core.errors import QueryardError
from queryard.results.answer import Answer
from queryard.results.explanation import Explanation
from queryard.sim.forecast import Forecast

from .amounts import as_seconds
from .client import Client
from .explaining import explain_query
from .facts import Status, Timing
from .host import Host
from .ticket import Ticket
from .why import WaitReport


class Handle:
    """What `submit` gives back at once.

    A query that only reads is cancelled when neither its handle nor its answer is held any more:
    its rows could not be read. One that was submitted with `keep` runs on.
    """

    def __init__(self, client: Client, ticket: Ticket, owner: object = None) -> None:
        """`owner` lives as long as the rows can be read."""
        self._client = client
        self._ticket = ticket
        self._interest = _interest(client, ticket, owner)
        self._answer: Answer | None = None
        self.id = ticket.id
        self.sql = ticket.request.sql

    @property
    def has_side_effects(self) -> bool:
        """Whether it does more than read."""
        return self._ticket.request.has_side_effects

    @property
    def status(self) -> Status:
        """How far it is; it has ended as soon as the engine is done with it."""
        return self._ticket.status

    def progress(self) -> float:
        """Share done, from 0 to 1; of a native query as DuckDB sees it, not linear in time."""
        return self._ticket.progress()

    @property
    def timing(self) -> Timing:
        """When it was submitted, began and ended on the session's clock, and what it has cost."""
        return self._ticket.timing()

    def why(self) -> WaitReport:
        """What is ahead of it, which rule holds it, and when it will start and end.

        Once it has ended: how long it took, and how good the forecast was.
        """
        return self._client.host.looking.wait_report(self._ticket)

    def forecast(self) -> Forecast | None:
        """When it is expected to start and end, on the session's clock.

        Of a query that has ended it is the last forecast there was, None if there was none.
        """
        return self.why().forecast

    def __await__(self) -> Generator[Any, None, Answer]:
        """`answer = await handle`: the answer, as soon as its first rows are there."""
        return self._ready().__await__()

    async def _ready(self) -> Answer:
        self._client.host.owner.check()
        if self._ticket.output.ready:
            return self.result()
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()

        def tell() -> None:
            # The event loop may be closed by the time the query answers: then nothing awaits it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ready.set)

        self._ticket.output.when_ready(tell)
        await ready.wait()
        return self.result()

    def result(self, timeout: float | str | None = None) -> Answer:
        """The answer, as soon as its first rows are there; raises the query's error.

        A `TimeoutError` is raised after the `timeout`: seconds, or a text such as "5 min".
        """
        if self._answer is None:
            self._answer = self.take(timeout)
        return self._answer

    def gather(self, rows: int, size_bytes: int, timeout_s: float | None = None) -> None:
        """Wait until so many rows have come, or bytes wait to be read, or no more will come; at
        most so long.
        """
        self._client.host.owner.check()
        self._ticket.output.gather(rows, size_bytes, timeout_s)

    def take(self, timeout: float | str | None = None) -> Answer:
        """The answer, for a caller that keeps it: the rows are freed with the answer object."""
        self._client.host.owner.check()
        self._ticket.output.schema(_seconds(timeout))
        shared = self._ticket.answer
        answer = None if shared is None else shared()
        if answer is None and self._ticket.output.touched:
            raise QueryardError(
                f"query {self.id}: some of its rows were read before and are not kept; run it again"
            )
        if answer is None:
            release = partial(_release, weakref.ref(self._client.host), self._ticket)
            answer = Answer(self._ticket.output, release, self._interest)
            self._ticket.answer = weakref.ref(answer)
        return answer

    def wait(self, timeout: float | str | None = None) -> bool:
        """Wait until the query has ended; True if it has. Its rows must be read meanwhile."""
        self._client.host.owner.check()
        return self._ticket.over.wait(_seconds(timeout))

    def cancel(self) -> None:
        """Stop it; what it held is free again within about 100 ms."""
        self._client.host.cancel(self.id)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it runs natively although it was to be staged."""
        return self._ticket.facts.reasons

    def explain(self) -> Explanation | None:
        """How it is run: its jobs, with what was expected of them and what came of it.

        None while it is queued for its client's own connection.
        """
        return explain_query(self._client, self._ticket)

    @property
    def error(self) -> BaseException | None:
        """Why it failed; None while it runs and if it did not."""
        return self._ticket.error

    @property
    def ended(self) -> bool:
        """Whether it is over, well or not."""
        return self._ticket.ended

    def when_gathered(self, rows: int, size_bytes: int, call: Callable[[], None]) -> None:
        """Call something short once `gather` would return, from any thread."""
        self._ticket.output.when_gathered(rows, size_bytes, call)

    def _ipython_display_(self) -> None:
        """In a notebook: its progress, then its first rows; an interrupt cancels it."""
        from queryard.results.notebook import show_query

        show_query(self)

    def __repr__(self) -> str:
        return f"<Handle {self.id} {self.status} {self.progress():.0%}>"


class _Interest:
    """Held by a handle and by its answer: without it, the rows cannot be read any more."""

    def __init__(self, client: Client, ticket: Ticket, owner: object) -> None:
        self._client = client
        self._owner = owner
        finalizer = weakref.finalize(self, _release, weakref.ref(client.host), ticket)
        finalizer.atexit = False


def _interest(client: Client, ticket: Ticket, owner: object) -> _Interest:
    """That of another handle of the same query, or a new one."""
    held = None if ticket.interest is None else ticket.interest()
    if not isinstance(held, _Interest):
        held = _Interest(client, ticket, owner)
        ticket.interest = weakref.ref(held)
    return held


def _release(host: weakref.ref[Host], ticket: Ticket) -> None:
    """The rows are not wanted. The garbage collector may call this in the middle of anything."""
    held = host()
    if held is not None:
        held.release(ticket)


def _seconds(timeout: float | str | None) -> float | None:
    """A timeout as it may be written; 0 is no wait at all."""
    if timeout is None or (isinstance(timeout, int | float) and timeout <= 0):
        return timeout
    return as_seconds(timeout, "timeout")
