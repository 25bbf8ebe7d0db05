"""Answers that come early and refine: what `Session.online` gives back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Literal, Protocol

from queryard.core.errors import QueryardError
from queryard.engine.online.wish import OnlineWish
from queryard.results.answer import Answer
from queryard.results.errors import QueryCancelled
from queryard.results.online import AnswerLog, OnlineAnswer, exact_answer

from .amounts import as_seconds
from .facts import Status


class OnlineQuery(Protocol):
    """What answers need of the handle of their query, which may be on a server."""

    id: str

    @property
    def status(self) -> Status: ...
    @property
    def error(self) -> BaseException | None: ...
    @property
    def reasons(self) -> tuple[str, ...]: ...
    def result(self) -> Answer: ...
    def cancel(self) -> None: ...


class OnlineAnswers:
    """Iterate over it (`for`, `async for`) for better and better answers; the last one stays.

    The query stops when it is not held any more, or by `stop()`. If it must run exactly, `reason`
    says why, and there is one answer.
    """

    def __init__(self, handle: OnlineQuery, log: AnswerLog, every_s: float) -> None:
        self.handle = handle
        self._log = log
        self._every_s = every_s
        self._number = 0
        self._given_s = -every_s
        self._last: OnlineAnswer | None = None
        self._over = False
        self._stopped = False

    @property
    def last(self) -> OnlineAnswer | None:
        """The newest answer so far; None before the first."""
        if self._last is not None and self._last.exact:
            return self._last  # it may have run as a whole, after estimates
        return self._log.newest or self._last

    @property
    def reason(self) -> str:
        """Why it runs exactly; "" while that is not known, and if it does not."""
        told = self._log.reason or next(iter(self.handle.reasons), "")
        return told.removeprefix("runs exactly: ")

    def stop(self) -> None:
        """End the query, and the iteration; the last answer stays."""
        self._stopped = True
        self.handle.cancel()

    def result(self) -> Answer:
        """The last answer, as any client gets it: waits for the end of the query.

        A query that was stopped has none; its newest answer is `last`.
        """
        try:
            return self.handle.result()
        except QueryCancelled as error:
            if not self._stopped:
                raise
            newest = self.last
            told = (
                "it had no answer yet" if newest is None else f"its last answer is .last: {newest}"
            )
            raise QueryCancelled(f"query {self.handle.id} was stopped by stop(); {told}") from error

    # --- one after another -----------------------------------------------------------------------

    def __iter__(self) -> Iterator[OnlineAnswer]:
        return self

    def __next__(self) -> OnlineAnswer:
        while True:
            ready = self._ready()
            if isinstance(ready, OnlineAnswer):
                return ready
            if ready == "over":
                raise StopIteration
            self._log.wait(self._number, self._pause_s())

    def __aiter__(self) -> AsyncIterator[OnlineAnswer]:
        return self

    async def __anext__(self) -> OnlineAnswer:
        while True:
            ready = self._ready()
            if isinstance(ready, OnlineAnswer):
                return ready
            if ready == "over":
                raise StopAsyncIteration
            await self._changed()

    async def _changed(self) -> None:
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()

        def tell() -> None:
            # The event loop may be closed by the time the query answers: then nothing awaits it.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(changed.set)

        self._log.when_changed(self._number, tell)
        await changed.wait()
        pause_s = self._pause_s()
        while pause_s and not self._log.closed:
            await asyncio.sleep(min(pause_s, 0.05))
            pause_s = self._pause_s()

    def _pause_s(self) -> float:
        """How long until another answer may be given."""
        return max(0.0, self._given_s + self._every_s - time.monotonic())

    def _ready(self) -> OnlineAnswer | Literal["over", "wait"]:
        if self._over:
            return "over"
        # In this order: an answer that is put before the log is closed must not be missed.
        closed = self._log.closed
        newest, number = self._log.newest, self._log.number
        if newest is not None and number > self._number and (closed or not self._pause_s()):
            self._number, self._given_s, self._last = number, time.monotonic(), newest
            return newest
        if not closed:
            return "wait"
        self._over = True
        error = self.handle.error
        if self._stopped and isinstance(error, QueryCancelled):
            return "over"
        if newest is None or (error is None and self._log.is_whole):
            try:
                return self._exact()
            except QueryCancelled:
                if self._stopped:
                    return "over"
                raise
        if error is not None:
            raise error
        return "over"

    def _exact(self) -> OnlineAnswer:
        """The answer of a query that ran as a whole; raises its error."""
        answer = self.handle.result()
        table = answer.arrow()
        notes = (f"run exactly: {self.reason}",) if self.reason else ()
        self._last = exact_answer(table, answer.types, self._log.elapsed_s, notes)
        return self._last

    def _ipython_display_(self) -> None:
        """In a notebook: each answer in the place of the last; an interrupt keeps the newest."""
        from queryard.results.notebook import show_answers

        show_answers(self, self.stop)

    def __repr__(self) -> str:
        return f"<OnlineAnswers {self.handle.id} {self.handle.status}: {self.last!r}>"


def online_wish(
    stop_at: float | None,
    confidence: float,
    every_s: float,
    within: float | str | None,
    columns: Sequence[str],
    groups: Sequence[object] = (),
    measure: Callable[[Any], float] | None = None,
) -> OnlineWish:
    """What is wanted of an online query, checked."""
    within_s = None if within is None else as_seconds(within, "within")
    named = (columns,) if isinstance(columns, str) else columns
    if not isinstance(named, Sequence):
        raise QueryardError(f"columns: must be a list of names, got {columns!r}")
    return OnlineWish(
        stop_at, confidence, every_s, within_s, tuple(named), checked_groups(groups), measure
    )


def checked_groups(groups: object) -> tuple[Any, ...]:
    """Groups as values, or as tuples of values; one group need not be in a list.

    >>> checked_groups("MAIL"), checked_groups([["R", 1], None])
    (('MAIL',), (('R', 1), None))
    """
    if isinstance(groups, str):
        return (groups,)
    if not isinstance(groups, Sequence):
        raise QueryardError(f"groups: must be a list of groups, got {groups!r}")
    return tuple(tuple(each) if isinstance(each, list) else each for each in groups)
