"""What is the same in every version: the head of a message, the hello of a client, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from .errors import Malformed
from .requests import Hello
from .wire import END, Reader, field, optional, text, unsigned


class Kind(IntEnum):
    """Numbers of messages."""

    CONNECTION_REQUEST = 1
    CONNECTION_RESPONSE = 2
    PREPARE_REQUEST = 3
    PREPARE_RESPONSE = 4
    FETCH_REQUEST = 7
    FETCH_RESPONSE = 8
    APPEND_REQUEST = 9
    SUCCESS_RESPONSE = 10
    DISCONNECT = 11
    ERROR_RESPONSE = 100


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a message: its kind, and the connection that it belongs to."""

    kind: int
    connection: str


def write_head(kind: Kind, connection: str = "") -> bytes:
    """The head of a reply; only the reply to a hello names its connection."""
    own = field(2) + text(connection) if connection else b""
    return field(1) + unsigned(kind) + own + field(3) + optional(None) + END


def read_head(reader: Reader) -> Head:
    """The head of a request."""
    reader.expect(1)
    kind = reader.unsigned()
    connection = reader.text() if reader.has(2) else ""
    reader.expect(3)
    reader.optional()  # the client's own number of its query
    reader.end()
    return Head(kind, connection)


def read_hello(reader: Reader, newest: int) -> Hello:
    """The body of a hello, with what later versions say besides.

    A client that speaks only versions above the `newest` known here may say anything after that.
    """
    token = reader.text() if reader.has(1) else ""
    duckdb = reader.text() if reader.has(2) else ""
    platform = reader.text() if reader.has(3) else ""
    least = reader.unsigned() if reader.has(4) else 0
    most = reader.unsigned() if reader.has(5) else 0
    if newest < least <= most:
        return Hello(token, duckdb, platform, least, most)
    if most > 1:
        if reader.has(6):
            reader.text()  # an id of the client
        if reader.has(7):
            reader.unsigned()  # how often it will be heard of
    reader.end()
    reader.done()
    if least > most:
        raise Malformed(f"a client that speaks versions {least} to {most}")
    return Hello(token, duckdb, platform, least, most)


def error(message: str) -> bytes:
    """The reply that something has failed."""
    return write_head(Kind.ERROR_RESPONSE) + field(1) + text(message or "error") + END


SUCCESS = write_head(Kind.SUCCESS_RESPONSE) + END
