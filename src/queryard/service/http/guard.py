"""What every request passes: the token, its limits, a bounded body, and no reader that stalls.

It stands before the application, so that a request that is refused costs next to nothing, and it
holds for every path alike.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed

from ..limits import TooLarge, TooManyConnections
from ..page.routes import is_page
from ..principal import Principal
from ..problems import InvalidRequest, Unauthorized
from ..yard import Yard
from .replies import problem_reply

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# What may be asked without a token.
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})
# What a token with the role metrics may ask.
FIGURES = ("/metrics",)
# The status that is counted for clients that leave before their answer; none sees it.
LEFT = 499
_log = logging.getLogger("queryard.service.http")


class CutOff(Exception):
    """An answer that has begun and cannot go on; the client sees that its end is missing."""


class Guard:
    """An ASGI application around another one."""

    def __init__(self, app: Application, yard: Yard, responded: Callable[[str, int], None]) -> None:
        """`responded` hears the method and the status of every answer."""
        self._app = app
        self._yard = yard
        self._responded = responded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = False

        async def sending(message: Message) -> None:
            nonlocal began
            began = True
            if message["type"] == "http.response.start":
                self._responded(scope["method"], message["status"])
            try:
                async with asyncio.timeout(self._yard.config.limits.stall_s):
                    await send(message)
            except TimeoutError:
                raise CutOff("the client did not take what was sent to it") from None

        counted = ""
        try:
            principal = self._principal(scope)
            if principal is not None:
                await self._connect(principal)
                counted = principal.name
            body = await self._body(scope, receive)
            scope.setdefault("state", {})["principal"] = principal
            whole = {"type": "http.request", "body": body, "more_body": False}
            await self._app(scope, replayed(whole, receive), sending)
        except CutOff as error:
            _log.info("%s %s was cut off: %s", scope["method"], scope["path"], error)
            if not began:
                self._responded(scope["method"], LEFT)
            _abort(send)
        except Exception as error:
            if not isinstance(error, QueryardError):
                _log.exception("%s %s failed", scope["method"], scope["path"])
            if not began:
                await problem_reply(error)(scope, receive, sending)
        finally:
            if counted:
                self._yard.usage.disconnect(counted)

    async def _connect(self, principal: Principal) -> None:
        """Count a request as a connection; one that was left alone makes way for it."""
        usage = self._yard.usage
        try:
            usage.connect(principal.name)
        except TooManyConnections:
            if not await asyncio.to_thread(self._yard.make_way, principal):
                raise
            usage.connect(principal.name)

    def _principal(self, scope: Scope) -> Principal | None:
        """The client by its token; None where none is needed."""
        if scope["path"] in OPEN_PATHS or is_page(scope["path"]):
            return None
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, secret = given.decode("latin-1").partition(" ")
        remedy = "send the header 'Authorization: Bearer TOKEN'; `queryard token add` makes one"
        if kind.lower() != "bearer" or not secret.strip():
            raise Unauthorized(f"the request has no token; {remedy}")
        found = self._yard.tokens.check(secret.strip())
        if found is None:
            raise Unauthorized(f"the token is unknown, was revoked or has expired; {remedy}")
        if not found.may_query and scope["path"] not in FIGURES:
            raise NotAllowed(
                f"token {found.name!r} has the role metrics, and may read {', '.join(FIGURES)} "
                "only; use a user's token for this"
            )
        return found

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """All of a body, which must come at a pace and be no larger than allowed."""
        if scope["method"] in ("GET", "HEAD", "DELETE", "OPTIONS"):
            return b""
        for name, value in scope["headers"]:
            if name == b"content-length" and value.isdigit():
                self._yard.usage.check_size(int(value))
        parts: list[bytes] = []
        size = 0
        stall_s = self._yard.config.limits.stall_s
        while True:
            try:
                async with asyncio.timeout(stall_s):
                    message = await receive()
            except TimeoutError:
                raise InvalidRequest(
                    f"nothing of the request's body came for {stall_s:g} s; send it as a whole"
                ) from None
            if message["type"] == "http.disconnect":
                raise InvalidRequest("the client has left in the middle of its request")
            part = message.get("body", b"")
            size += len(part)
            if size > self._yard.config.limits.request_bytes:
                raise TooLarge(
                    f"the request has more than {self._yard.config.limits.request_bytes:,} bytes, "
                    "which are allowed; send a shorter statement, or raise `request` in "
                    "[service.limits]"
                )
            parts.append(part)
            if not message.get("more_body", False):
                return b"".join(parts)


def replayed(first: Message, receive: Receive) -> Receive:
    """A message that was taken already, then whatever comes."""
    taken = [first]

    async def receiving() -> Message:
        return taken.pop() if taken else await receive()

    return receiving


def _abort(send: Send) -> None:
    """Cut a connection off at once: closing it would wait for a client that takes nothing.

    ASGI has no word for it, but uvicorn's `send` belongs to an object that has the transport.
    """
    transport = getattr(getattr(send, "__self__", None), "transport", None)
    if transport is not None:
        transport.abort()
