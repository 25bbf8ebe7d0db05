"""Quack over HTTP, as an ASGI application: one message in a request, one in its reply.

It stands in the server of the HTTP API under its own path, or has an address of its own. Errors
travel as messages; the status is 200 for all that is Quack.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import re
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

from queryard.core.errors import QueryardError

from ..connection import Connection, Loss, connection_of
from ..limits import TooLarge, TooManyConnections
from ..problems import BY_HEADING, DEFECT, problem_of
from ..yard import Yard
from . import envelope
from .envelope import Kind, read_head, read_hello
from .errors import QuackError
from .requests import Disconnect
from .session import Session, Waiting
from .sessions import Sessions
from .versions import NEWEST, agreed
from .wire import Reader

PATH = "/quack"
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
T = TypeVar("T")
Work = Callable[[Callable[[Waiting], None]], list[Any] | None]

_MEDIA = b"application/vnd.duckdb"
# Replies go out in parts, so that a client that takes none is noticed.
_PART_BYTES = 256 << 10
# The largest message of a client that has not shown its token yet.
_LOGIN_BYTES = 16 << 10
_DUCKDB = f"v{version('duckdb')}"
_PLATFORM = f"{platform.system()}_{platform.machine()}".lower()
# Browsers may ask from any page: a token is in the message, and nothing comes with a cookie.
_ANYWHERE = (b"access-control-allow-origin", b"*")
_HEADING = re.compile(r"^([A-Z][A-Za-z ]+): ")
_ABOUT = b"Queryard speaks Quack here: ATTACH 'quack:HOST:PORT' AS yard (TOKEN 'qy_...')\n"
_log = logging.getLogger("queryard.service.quack")


class QuackListener:
    """An ASGI application for the clients of a yard; `close` at the end."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self.sessions = Sessions(yard)
        self._threads = ThreadPoolExecutor(
            yard.config.limits.connections + 16, thread_name_prefix="queryard-quack"
        )

    def close(self) -> None:
        """Close all connections; it waits for what runs there."""
        self.sessions.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["path"] == PATH and scope["method"] == "POST":
            await self._post(connection_of(scope), receive, send)
        elif scope["path"] == PATH and scope["method"] == "OPTIONS":
            more = [
                (b"access-control-allow-methods", b"POST"),
                (b"access-control-allow-headers", b"content-type"),
            ]
            await _reply(send, [b""], 204, more)
        elif scope["path"] == "/" and scope["method"] in ("GET", "HEAD"):
            await _reply(send, [_ABOUT], 200, [(b"content-type", b"text/plain")])
        else:
            words = f"there is nothing at {scope['path']}; Quack is spoken at {PATH}\n"
            await _reply(send, [words.encode()], 404, [(b"content-type", b"text/plain")])

    async def _post(self, connection: Connection, receive: Receive, send: Send) -> None:
        try:
            body = await self._body(receive)
            pieces = await self._answer(body, connection)
        except _Left:
            return
        except Exception as error:
            if connection.is_lost:
                return
            pieces = [envelope.error(_told(error))]
        try:
            await self._send(pieces, send)
        except TimeoutError:
            _log.info("a client of Quack did not take its rows, and was cut off")
            connection.abort()

    async def _body(self, receive: Receive) -> bytes:
        """A whole message; until it names a connection, it has the time and size of a login."""
        limits = self._yard.config.limits
        until_s = time.monotonic() + limits.login_s
        is_known = False
        parts: list[bytes] = []
        size = 0
        while True:
            left_s = limits.stall_s if is_known else until_s - time.monotonic()
            async with asyncio.timeout(min(limits.stall_s, left_s)):
                message = await receive()
            if message["type"] == "http.disconnect":
                raise _Left
            part = message.get("body", b"")
            size += len(part)
            self._yard.usage.check_size(size)
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)
            try:
                is_known = is_known or self._names_connection(parts, size)
            except QueryardError:
                await _pass_over(receive, until_s)
                raise

    def _names_connection(self, parts: list[bytes], size: int) -> bool:
        """Whether a message that has begun is of a connection; one of no connection is short."""
        begin = b"".join(parts)[:_LOGIN_BYTES]
        try:
            head = read_head(Reader(begin))
        except QuackError:
            head = None  # as far as it has come
        if head is not None and head.kind != Kind.CONNECTION_REQUEST:
            self.sessions.find(head.connection)
            return True
        if size > _LOGIN_BYTES:
            raise TooLarge(
                f"the message has more than {_LOGIN_BYTES:,} bytes, and names no connection; "
                "connect first, with a token"
            )
        return False

    async def _answer(self, body: bytes, connection: Connection) -> list[Any]:
        """The reply to a message; a client that leaves meanwhile is done for good."""
        reader = Reader(body)
        head = read_head(reader)
        if head.kind == Kind.CONNECTION_REQUEST:
            return await self._connect(reader)
        session = self.sessions.find(head.connection)
        if head.kind == Kind.DISCONNECT:
            session.codec.read(head, reader)
            connection.on_lost = None
            return await self._disconnect(session)
        if connection.is_lost:
            self._lost(session, connection, "within")
            raise _Left
        session.came_over = connection
        connection.on_lost = partial(self._lost, session, connection)

        def work(tell: Callable[[Waiting], None]) -> list[Any] | None:
            request = session.codec.read(head, reader)
            assert not isinstance(request, Disconnect), "it was answered"
            return session.handle(request, tell)

        try:
            found = await self._soon(work)
            if not isinstance(found, Waiting):
                return found
            quick = found.quick()
            return await self._in_thread(found.reply) if quick is None else quick
        except asyncio.CancelledError:
            session.abandon()
            raise

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """What blocks."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _soon(self, work: Work) -> list[Any] | Waiting:
        """The reply of something that blocks, or what makes one: the first that a thread tells.

        It costs half of `run_in_executor`, and the thread need not wait for a query.
        """
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[list[Any] | Waiting] = loop.create_future()

        def settle(found: list[Any] | Waiting | BaseException) -> None:
            if answered.done():  # it is not waited for any more
                if isinstance(found, Waiting):
                    found.drop()
            elif isinstance(found, BaseException):
                answered.set_exception(found)
            else:
                answered.set_result(found)

        def tell(found: list[Any] | Waiting | BaseException) -> None:
            with contextlib.suppress(RuntimeError):  # the event loop is closed, and all with it
                loop.call_soon_threadsafe(settle, found)

        def run() -> None:
            try:
                if (reply := work(tell)) is not None:
                    tell(reply)
            except BaseException as error:
                tell(error)

        self._threads.submit(run)
        return await answered

    def _lost(self, session: Session, connection: Connection, loss: Loss) -> None:
        """A TCP connection is over. A client that has left within a request is done for good.

        One that left between two requests may come back over another connection. One that has
        thrown away bytes of its last reply was killed; or it was idle, and something in between has
        forgotten it. It loses what others might wait for.
        """
        is_last = session.came_over is connection
        holds = session.has_rows or session.in_transaction
        if loss == "within" or (loss == "reset" and is_last and holds):
            session.abandon()
            with contextlib.suppress(RuntimeError):  # the listener is closed, and with it all
                self._threads.submit(self.sessions.leave, session, "its client has left")

    async def _connect(self, reader: Reader) -> list[Any]:
        hello = read_hello(reader, NEWEST)
        codec = agreed(hello)
        principal = self._yard.tokens.check(hello.token)
        if principal is None:
            raise QuackError(
                "Authentication failed: the token is unknown, was revoked or has expired; "
                "`queryard token add` makes one"
            )
        try:
            # In a moment: a thread would take longer.
            name = self.sessions.open(principal, codec)
        except TooManyConnections:
            name = await self._in_thread(lambda: self.sessions.open_instead(principal, codec))
        return [codec.welcome(name, _DUCKDB, _PLATFORM)]

    async def _disconnect(self, session: Session) -> list[Any]:
        reason = "its client has disconnected"
        if session.holds_something:
            await self._in_thread(lambda: self.sessions.leave(session, reason))
        else:
            self.sessions.leave(session, reason)
        return [envelope.SUCCESS]

    async def _send(self, pieces: list[Any], send: Send) -> None:
        size = sum(map(len, pieces))
        length = (b"content-length", str(size).encode())
        headers = [(b"content-type", _MEDIA), length, _ANYWHERE]
        message: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        stall_s = self._yard.config.limits.stall_s
        left = size
        for part in _parts(pieces):
            left -= len(part)
            async with asyncio.timeout(stall_s):
                if message:
                    await send(message)
                    message = {}
                await send({"type": "http.response.body", "body": part, "more_body": left > 0})


def _parts(pieces: list[Any]) -> Iterator[bytes]:
    """Pieces joined to parts of some size, so that each byte is copied once."""
    gathered: list[Any] = []
    size = 0
    for piece in pieces:
        gathered.append(piece)
        size += len(piece)
        if size >= _PART_BYTES:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


class _Left(Exception):
    """The client is not there any more: there is no reply."""


def beside(quack: QuackListener, others: Application) -> Application:
    """An application in which one path is Quack's."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        is_quack = scope["type"] == "http" and scope["path"] == PATH
        await (quack if is_quack else others)(scope, receive, send)

    return application


def _told(error: Exception) -> str:
    """What a client is told of an error: DuckDB's text without its heading."""
    if isinstance(error, TimeoutError):
        return "the message did not come in time; send it as a whole"
    problem = problem_of(error)
    if problem.kind is DEFECT and not isinstance(error, QueryardError):
        _log.error("a request of Quack failed", exc_info=error)
    found = _HEADING.match(problem.detail)
    is_heading = found is not None and found[1] in BY_HEADING
    return problem.detail[found.end() :] if found is not None and is_heading else problem.detail


async def _pass_over(receive: Receive, until_s: float) -> None:
    """Let the rest of a message go by: a client that is cut off while it sends reads no reply."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(until_s - time.monotonic()):
            while (message := await receive()).get("more_body", False):
                pass
            if message["type"] == "http.disconnect":
                raise _Left


async def _reply(send: Send, body: list[bytes], status: int, headers: list[Any]) -> None:
    data = b"".join(body)
    size = (b"content-length", str(len(data)).encode())
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [*headers, size, _ANYWHERE]})
    await send({"type": "http.response.body", "body": data})


async def _live(receive: Receive, send: Send) -> None:
    """The beginning and the end of the application, as ASGI tells them."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
