"""Rows on their way to one reader, as they come; a reader that leaves disturbs nothing.

Each piece is taken and encoded in a thread while the one before it is sent. The rows stay in the
result, so that another request can go on from any position.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from starlette.responses import Response

from queryard.core.errors import QueryardError

from ..kept_rows import Piece
from ..principal import Principal
from ..problems import Unauthorized
from ..results import KeptResult
from .context import Context, told
from .formats import MEDIA, Encoder, Format, encoder
from .guard import CutOff, Receive, Scope, Send

T = TypeVar("T")
# Small first pieces, so that the first row is not late; then larger ones.
FIRST_ROWS, FIRST_BYTES = 1000, 256 << 10
PIECE_BYTES = 4 << 20
# How often it is asked whether the token of a reader that waits for rows still counts.
LOOK_S = 5.0


class RowStream(Response):
    """The rows of a result from a position on, at most so many, while the token counts."""

    def __init__(
        self,
        context: Context,
        principal: Principal,
        result: KeptResult,
        form: Format,
        *,
        start: int = 0,
        limit: int | None = None,
        header: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        rows = result.rows
        self._context = context
        self._principal = principal
        self._result = result
        self._form: Format = form
        self._start = start
        self._until = None if limit is None else start + limit
        self._encoder: Encoder = encoder(form, rows.schema, rows.types, rows.returns, start, header)
        self._more = dict(headers or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.ensure_future(has_left(receive))
        self._result.readers += 1
        self._result.rows.asked(self._start)
        try:
            await self._send(send, gone)
        except CutOff:
            self._result.leave(self._principal)
            raise
        finally:
            if gone.done():
                self._result.leave(self._principal)
            gone.cancel()
            self._result.readers -= 1
            self._result.used_s = time.monotonic()

    async def _send(self, send: Send, gone: asyncio.Future[None]) -> None:
        # An error of the query that is known already is told as a problem, not as a broken answer.
        content, piece = await self._context.run(self._first)
        kind = MEDIA[self._form] + ("; charset=utf-8" if self._form == "csv" else "")
        headers = {**self._more, "Content-Type": kind, "Queryard-Query": self._result.id}
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
            }
        )
        try:
            await self._go_on(send, gone, content, piece)
        except QueryardError as error:  # the state of the query tells it
            raise CutOff(str(error)) from None

    async def _go_on(
        self, send: Send, gone: asyncio.Future[None], content: Any, piece: Piece
    ) -> None:
        """Send all pieces, the answer having begun."""
        body = self._encoder.head()
        while True:
            position = piece.next
            if piece.ended or self._is_full(position):
                content = b"".join((body, content, self._encoder.end(self._rest(piece))))
                await send({"type": "http.response.body", "body": content, "more_body": False})
                if piece.ended:
                    self._context.results.read_to_end(self._result)
                return
            if piece.later:
                waiting = asyncio.ensure_future(told(self._result.rows.when_more, None))
                if body:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                    body = b""
                both: set[asyncio.Future[Any]] = {waiting, gone}
                await asyncio.wait(both, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if gone.done():
                    return
                content, piece = await self._next(position, PIECE_BYTES)
                continue
            # The next piece is made while this one is sent.
            following = asyncio.ensure_future(self._next(position, PIECE_BYTES))
            try:
                sent = b"".join((body, content)) if body else content
                body = b""
                await send({"type": "http.response.body", "body": sent, "more_body": True})
            except BaseException:
                following.cancel()
                raise
            if gone.done():
                following.cancel()
                return
            content, piece = await following

    async def _next(self, position: int, most_bytes: int) -> tuple[Any, Piece]:
        return await self._context.run(self._made, position, most_bytes)

    def _first(self) -> tuple[Any, Piece]:
        rows = self._result.rows
        return self._encoded(self._start, rows.read_together(self._start, FIRST_ROWS, FIRST_BYTES))

    def _made(self, position: int, most_bytes: int) -> tuple[Any, Piece]:
        return self._encoded(position, self._result.rows.read(position, most_bytes))

    def _encoded(self, position: int, piece: Piece) -> tuple[Any, Piece]:
        # A token may be revoked while rows are on their way, be their query over or not.
        if not self._context.yard.tokens.holds(self._principal):
            raise Unauthorized("the token was revoked or changed; no further rows are sent")
        if self._until is not None and piece.next > self._until:
            piece = _cut(piece, position, self._until)
        return self._encoder.piece(piece.batches) if piece.batches else b"", piece

    def _is_full(self, position: int) -> bool:
        return self._until is not None and position >= self._until

    def _rest(self, piece: Piece) -> int | None:
        return None if piece.ended else piece.next


def _cut(piece: Piece, position: int, until: int) -> Piece:
    """As much of a piece as lies before a position."""
    batches = []
    for batch in piece.batches:
        part = batch.slice(0, max(0, until - position))
        if part.num_rows:
            batches.append(part)
        position += batch.num_rows
    return Piece(batches, until, False)


async def while_there(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, which is waited for as long as the client does; else `CutOff`."""
    gone = asyncio.ensure_future(has_left(receive))
    doing = asyncio.ensure_future(work)
    try:
        both: set[asyncio.Future[Any]] = {doing, gone}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if doing.done():
            return doing.result()
        raise CutOff("the client has left before its answer")
    finally:
        gone.cancel()
        doing.cancel()


@contextmanager
def watching(result: KeptResult | None, principal: Principal) -> Iterator[None]:
    """A client waits for a query; if it leaves meanwhile, the query does not run on for ever."""
    if result is None:  # of another listener, whose connection is its client
        yield
        return
    result.watchers += 1
    try:
        yield
    except (CutOff, asyncio.CancelledError, GeneratorExit):
        result.leave(principal)
        raise
    finally:
        result.watchers -= 1


async def has_left(receive: Receive) -> None:
    """Return once the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
