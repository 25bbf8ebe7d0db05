"""What a client says once its session has begun: messages by their letters."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Literal

from .errors import BadMessage
from .frames import Frame

Target = Literal["statement", "portal"]


@dataclass(frozen=True, slots=True)
class Query:
    """Run a text, which may hold several statements (the simple protocol)."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse:
    """Prepare one statement under a name; type 0 leaves a parameter's type open."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Make a portal of a prepared statement: parameters, and the formats of the result."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    target: Target
    name: str


@dataclass(frozen=True, slots=True)
class Close:
    target: Target
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """Run a portal; at most so many rows now, 0 for all."""

    portal: str
    most_rows: int


@dataclass(frozen=True, slots=True)
class Sync:
    """The end of a series; after an error everything up to here is skipped."""


@dataclass(frozen=True, slots=True)
class Flush:
    pass


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class Secret:
    """An answer to a request for authentication; what it holds depends on the request."""

    body: bytes


@dataclass(frozen=True, slots=True)
class FunctionCall:
    pass


@dataclass(frozen=True, slots=True)
class CopyInput:
    """Data for a COPY FROM, its end, or its failure: none is ever under way here."""


Message = (
    Query
    | Parse
    | Bind
    | Describe
    | Close
    | Execute
    | Sync
    | Flush
    | Terminate
    | Secret
    | FunctionCall
    | CopyInput
)


class _Body:
    """Reads fields off a body; each knows how many bytes it needs."""

    def __init__(self, frame: Frame) -> None:
        self._body = frame.body
        self._letter = frame.letter
        self._at = 0

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise BadMessage(f"message {self._letter!r}: a text has no end")
        raw = self._body[self._at : end]
        self._at = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            byte = raw[error.start]
            raise BadMessage(f'invalid byte sequence for encoding "UTF8": 0x{byte:02x}') from None

    def raw(self, length: int) -> bytes:
        if length < 0 or self._at + length > len(self._body):
            raise BadMessage(f"insufficient data left in message {self._letter!r}")
        found = self._body[self._at : self._at + length]
        self._at += length
        return found

    def number(self, layout: struct.Struct) -> int:
        value: int = layout.unpack(self.raw(layout.size))[0]
        return value

    def numbers(self, layout: str) -> tuple[int, ...]:
        """A count, and so many numbers."""
        count = self.number(_COUNT)
        one = struct.calcsize(f"!{layout}")
        return struct.unpack(f"!{count}{layout}", self.raw(count * one))

    def value(self) -> bytes | None:
        length = self.number(_LENGTH)
        return None if length == -1 else self.raw(length)

    def end(self) -> None:
        if self._at != len(self._body):
            raise BadMessage(f"invalid message format: message {self._letter!r} is too long")


_COUNT, _LENGTH = struct.Struct("!H"), struct.Struct("!i")
_EMPTY: dict[str, Message] = {"S": Sync(), "H": Flush(), "X": Terminate()}


def read_message(frame: Frame) -> Message:
    """The message in a frame; raises BadMessage if it is none.

    >>> read_message(Frame(ord("Q"), b"SELECT 1\\0"))
    Query(sql='SELECT 1')
    >>> read_message(Frame(ord("E"), b"\\0\\0\\0\\0\\x05"))
    Execute(portal='', most_rows=5)
    """
    letter = frame.letter
    if letter == "p":
        return Secret(frame.body)
    if letter == "F":
        return FunctionCall()
    if letter in ("c", "d", "f"):
        return CopyInput()
    body = _Body(frame)
    found = _EMPTY.get(letter) or _read(letter, body)
    body.end()
    return found


def _read(letter: str, body: _Body) -> Message:
    if letter == "Q":
        return Query(body.text())
    if letter == "P":
        return Parse(body.text(), body.text(), body.numbers("I"))
    if letter == "B":
        return _bind(body)
    if letter == "E":
        return Execute(body.text(), max(body.number(_LENGTH), 0))
    target = _TARGETS.get(body.raw(1))
    if target is None:
        raise BadMessage(f"message {letter!r}: its target is neither 'S' nor 'P'")
    return Describe(target, body.text()) if letter == "D" else Close(target, body.text())


_TARGETS: dict[bytes, Target] = {b"S": "statement", b"P": "portal"}


def _bind(body: _Body) -> Bind:
    portal, statement = body.text(), body.text()
    formats = body.numbers("h")
    values = tuple(body.value() for _ in range(body.number(_COUNT)))
    results = body.numbers("h")
    for each in (*formats, *results):
        if each not in (0, 1):
            raise BadMessage(f"unsupported format code: {each}")
    if len(formats) > 1 and len(formats) != len(values):
        raise BadMessage(
            f"bind message has {len(formats)} parameter formats but {len(values)} parameters"
        )
    return Bind(portal, statement, formats, values, results)
