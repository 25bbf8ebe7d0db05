"""TCP connections of clients: what an application may know of its own, and signs of life.

A client whose machine loses its power sends no sign of its end, and a server that waits for it, or
works for it, would never hear of it. So the system asks now and then whether it is there.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

# Under this name the extensions of an ASGI scope have the connection of a request.
EXTENSION = "queryard.connection"
# Seconds of silence until the first question, between two questions, and how many stay unanswered.
IDLE_S, BETWEEN_S, UNANSWERED = 30, 10, 3
# Bounds of the seconds for which bytes that were sent may stay untaken.
_LEAST_S, _MOST_S = IDLE_S + BETWEEN_S * UNANSWERED, 86_400

Loss = Literal["between", "within", "reset"]
"""When a connection was lost: between two requests; within one, before its reply was sent; or
between two, and the client has not taken all that was sent to it.
"""


class Connection(Protocol):
    """The connection that a request came over. It is the event loop's own."""

    # Called once it is lost.
    on_lost: Callable[[Loss], None] | None

    @property
    def is_lost(self) -> bool:
        """Whether it is closed, or about to be."""

    def abort(self) -> None:
        """Cut the client off at once."""


def connection_of(scope: Mapping[str, Any]) -> Connection:
    """The connection of a request."""
    found: Connection = scope["extensions"][EXTENSION]
    return found


def keep_alive(transport: Any, stall_s: float) -> None:
    """Ask the other end of a connection for signs of life.

    What was sent must be taken within `stall_s`, or a minute if that is longer, also where it waits
    in the system. A platform that lacks an option goes without it.
    """
    connection = transport.get_extra_info("socket")
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    options = {
        "TCP_KEEPIDLE": IDLE_S,
        "TCP_KEEPINTVL": BETWEEN_S,
        "TCP_KEEPCNT": UNANSWERED,
        "TCP_USER_TIMEOUT": int(1000 * min(max(stall_s, _LEAST_S), _MOST_S)),
    }
    # A client that has left already has no options any more.
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in options.items():
            if (option := getattr(socket, name, None)) is not None:
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
