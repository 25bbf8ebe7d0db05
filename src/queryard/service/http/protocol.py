"""Connections of uvicorn's that do not wait for ever, and are not too many.

The guard of the application sees a request when its headers have come. What happens before is
bounded here: how long the headers may take, how large they may be, and how many connections there
are. Requests know their connections (`queryard.service.connection`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from queryard.core.errors import QueryardError

from ..connection import EXTENSION, Loss, keep_alive
from ..limits import TooLarge, TooManyConnections
from ..problems import InvalidRequest, problem_of
from ..yard import Yard
from .replies import PROBLEM, problem_json, to_json

# Of all headers of a request, with its first line.
HEADER_BYTES = 64 << 10
_REASONS = {413: "Content Too Large", 429: "Too Many Requests"}


def bounded_protocol(yard: Yard) -> type[asyncio.Protocol]:
    """A class for uvicorn's setting `http`, with the limits that a yard has at the time."""

    class Bounded(_Bounded):
        def limits(self) -> tuple[float, float, int]:
            limits = yard.config.limits
            return limits.login_s, limits.stall_s, limits.connections

    return Bounded


class _Bounded(HttpToolsProtocol):
    # When headers that have not come are waited for no longer.
    _patience: asyncio.TimerHandle | None = None
    _header_bytes = 0
    on_lost: Callable[[Loss], None] | None = None

    def limits(self) -> tuple[float, float, int]:
        """Seconds until the first request, seconds for headers, and connections."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        login_s, stall_s, most = self.limits()
        keep_alive(transport, stall_s)
        if len(self.connections) > most:
            self._refuse(
                TooManyConnections(
                    f"the server has {most} connections, which are all that are allowed; try again "
                    "when others have left, or raise connections in [service.limits]"
                )
            )
        else:
            self._wait_for_headers(login_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        cycle: Any = self.cycle
        is_within = cycle is not None and not cycle.response_complete
        loss: Loss = "within" if is_within else "between" if exc is None else "reset"
        super().connection_lost(exc)
        tell, self.on_lost = self.on_lost, None
        if tell is not None:
            tell(loss)

    @property
    def is_lost(self) -> bool:
        return self.transport.is_closing()

    def abort(self) -> None:
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._header_bytes += len(data)
        super().data_received(data)
        if self._patience is None or self.transport.is_closing():
            self._header_bytes = 0
        elif self._header_bytes > HEADER_BYTES:
            self._refuse(TooLarge(f"the headers have more than {HEADER_BYTES:,} bytes"))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: Any = self.scope
        scope["extensions"] = {EXTENSION: self}
        self._wait_for_headers(self.limits()[1])

    def on_headers_complete(self) -> None:
        self._stop_waiting()
        super().on_headers_complete()

    def _wait_for_headers(self, seconds: float) -> None:
        self._stop_waiting()
        self._patience = self.loop.call_later(seconds, self._give_up, seconds)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self, seconds: float) -> None:
        self._refuse(InvalidRequest(f"no whole request came within {seconds:g} s; send it at once"))

    def _refuse(self, error: QueryardError) -> None:
        """Answer with a problem, and hang up; no request has been handed on."""
        self._stop_waiting()
        problem = problem_of(error)
        content = to_json(problem_json(problem))
        status = problem.kind.status
        head = (
            f"HTTP/1.1 {status} {_REASONS.get(status, 'Unprocessable Content')}\r\n"
            f"content-type: {PROBLEM}\r\ncontent-length: {len(content)}\r\n"
            "connection: close\r\n\r\n"
        )
        transport: Any = self.transport
        transport.write(head.encode() + content)
        transport.close()
