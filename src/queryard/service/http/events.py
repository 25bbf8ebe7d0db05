"""Server-sent events: of one query, and of all that a token may see."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from ..principal import Principal
from ..results import KeptResult
from ..submitted import Submitted
from ..yard import Yard
from .context import Context, context_of, principal_of, told
from .documents import EVENTS_CONTENT, errors
from .queries import QueryId, whole_state
from .replies import to_json
from .states import brief
from .streaming import watching

router = APIRouter(tags=["events"])

# How often the progress of a query is told at most, and how often a silent stream shows life.
EVERY_S = 0.25
ALIVE_S = 15.0
# How many events a subscriber may be behind.
MOST_BEHIND = 1000
STREAM = "text/event-stream"
ALIVE = b": still there\n\n"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


def event(name: str, content: Any) -> bytes:
    """One event.

    >>> event("end", {"id": "a-1"})
    b'event: end\\ndata: {"id": "a-1"}\\n\\n'
    """
    return b"event: " + name.encode() + b"\ndata: " + to_json(content) + b"\n\n"


# The last event of a stream whose token does not count any more.
REVOKED = event("end", {"reason": "the token was revoked or changed"})


class Hub:
    """Passes what happens to queries on to subscribers; it lives on the application's loop."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._loop: asyncio.AbstractEventLoop | None = None
        self._subscribers: dict[asyncio.Queue[bytes | None], Principal] = {}
        self._started: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        yard.watch(self, prompt=True)

    def start(self) -> None:
        """Begin; on the loop."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.ensure_future(self._look())

    async def close(self) -> None:
        """Tell all subscribers that the server stops."""
        self._loop = None
        for queue in self._subscribers:
            queue.put_nowait(None)
        if self._task is not None:
            self._task.cancel()

    # --- from threads of others ------------------------------------------------------------------

    def began(self, submitted: Submitted) -> None:
        if self._subscribers:
            self._pass_on("submitted", submitted)

    def ended(self, submitted: Submitted) -> None:
        if self._subscribers:
            self._pass_on("ended", submitted)

    def _pass_on(self, name: str, submitted: Submitted) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._publish, name, submitted)

    # --- on the loop -----------------------------------------------------------------------------

    def _publish(self, name: str, submitted: Submitted) -> None:
        if name == "ended":
            self._started.discard(submitted.id)
        content = event(name, brief(submitted, self._yard.session.now()))
        for queue, principal in list(self._subscribers.items()):
            if principal.may_see(submitted.tenant):
                self._put(queue, content)

    def _put(self, queue: asyncio.Queue[bytes | None], content: bytes) -> None:
        if queue.qsize() >= MOST_BEHIND:  # it does not read: its stream ends
            self._subscribers.pop(queue, None)
            queue.put_nowait(None)
        else:
            queue.put_nowait(content)

    async def _look(self) -> None:
        """Tell of queries that have begun to run, and how many there are."""
        while True:
            await asyncio.sleep(EVERY_S)
            if not self._subscribers:
                self._started.clear()
                continue
            active = self._yard.active()
            running = [each for each in active if each.ticket.status == "running"]
            for submitted in running:
                if submitted.id not in self._started:
                    self._started.add(submitted.id)
                    self._publish("started", submitted)

    async def stream(self, principal: Principal) -> AsyncIterator[bytes]:
        """Events of the queries that a principal may see, as long as its token is valid."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._subscribers[queue] = principal
        try:
            active = [each for each in self._yard.active() if principal.may_see(each.tenant)]
            now_s = self._yard.session.now()
            listed = [brief(submitted, now_s) for submitted in active]
            yield event("queries", {"now_s": now_s, "queries": listed})
            while True:
                try:
                    async with asyncio.timeout(ALIVE_S):
                        content = await queue.get()
                except TimeoutError:
                    content = ALIVE
                if not self._yard.tokens.holds(principal):
                    yield REVOKED
                    return
                if content is None:
                    yield event("end", {"reason": "the server stops, or the reader is too slow"})
                    return
                yield content
        finally:
            self._subscribers.pop(queue, None)


@router.get(
    "/v1/events",
    response_class=StreamingResponse,
    responses={200: {"description": "Events.", "content": EVENTS_CONTENT}, **errors(401, 429)},
    summary="What happens to queries",
)
async def all_events(request: Request) -> Any:
    """Server-sent events of the queries of the token's tenant, an admin's of all.

    First `queries` with all that are active; then `submitted`, `started` and `ended`, each with the
    state of a query.
    """
    hub: Hub = request.app.state.hub
    stream = hub.stream(principal_of(request))
    return StreamingResponse(stream, media_type=STREAM, headers=_HEADERS)


@router.get(
    "/v1/queries/{query}/events",
    response_class=StreamingResponse,
    responses={200: {"description": "Events.", "content": EVENTS_CONTENT}, **errors(401, 404, 429)},
    summary="What happens to a query",
)
async def query_events(request: Request, query: QueryId) -> Any:
    """Server-sent events of one query: `state` whenever it has changed, and `end` with the last."""
    context, principal = context_of(request), principal_of(request)
    submitted, result = context.submitted(principal, query)
    stream = _states(context, principal, submitted, result)
    return StreamingResponse(stream, media_type=STREAM, headers=_HEADERS)


async def _states(
    context: Context, principal: Principal, submitted: Submitted, result: KeptResult | None
) -> AsyncIterator[bytes]:
    ticket, tokens = submitted.ticket, context.yard.tokens
    over = asyncio.ensure_future(told(ticket.when_over, None))
    try:
        seen: object = None
        told_s = time.monotonic()
        with watching(result, principal):
            while not ticket.ended:
                if not tokens.holds(principal):
                    yield REVOKED
                    return
                now = (ticket.status, round(ticket.progress(), 2), ticket.output.rows)
                if now != seen:
                    state = await context.run(whole_state, context, principal, submitted)
                    yield event("state", state)
                    seen, told_s = now, time.monotonic()
                elif time.monotonic() - told_s > ALIVE_S:
                    yield ALIVE
                    told_s = time.monotonic()
                await asyncio.wait({over}, timeout=EVERY_S)
    finally:
        over.cancel()
    if not tokens.holds(principal):
        yield REVOKED
        return
    yield event("end", await context.run(whole_state, context, principal, submitted))
