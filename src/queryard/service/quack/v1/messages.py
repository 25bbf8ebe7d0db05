"""Messages of version 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..envelope import Head, Kind, write_head
from ..errors import Malformed, QuackError
from ..requests import Append, Disconnect, Fetch, Prepare, Request
from ..wire import END, Reader, field, huge, optional, text, unsigned
from .decoding import read_chunk
from .encoding import Piece
from .types import LogicalType, write_type

_CHUNK = b"\x01" + field(300)
_CHUNK_END = END


def read_request(head: Head, reader: Reader) -> Request:
    """The body of a request that follows its head."""
    found: Request
    if head.kind == Kind.PREPARE_REQUEST:
        found = Prepare(reader.text() if reader.has(1) else "")
    elif head.kind == Kind.FETCH_REQUEST:
        reader.expect(1)
        found = Fetch(reader.huge())
    elif head.kind == Kind.APPEND_REQUEST:
        found = _append(reader)
    elif head.kind == Kind.DISCONNECT:
        found = Disconnect()
    else:
        raise QuackError(f"a message of kind {head.kind} is none that a client sends in version 1")
    reader.end()
    reader.done()
    return found


def _append(reader: Reader) -> Append:
    schema = reader.text() if reader.has(1) else ""
    table = reader.text() if reader.has(2) else ""
    if not (reader.has(3) and reader.flag()):
        raise Malformed("rows are to be inserted, and there are none")
    reader.expect(300)
    _, rows = read_chunk(reader)
    reader.end()
    return Append(schema, table, rows)


def welcome(connection: str, server: str, platform: str) -> bytes:
    """The reply to a hello."""
    return b"".join(
        [
            write_head(Kind.CONNECTION_RESPONSE, connection),
            field(1) + text(server),
            field(2) + text(platform),
            field(3) + unsigned(1),
            END,
        ]
    )


def prepared(
    types: Sequence[LogicalType],
    names: Sequence[str],
    chunks: Sequence[Iterable[Piece]],
    result: int,
    *,
    more: bool,
) -> list[Piece]:
    """The reply to a statement: its columns, the first rows, and whether there are more."""
    out: list[Piece] = [
        write_head(Kind.PREPARE_RESPONSE),
        field(1) + unsigned(len(types)),
        *map(write_type, types),
        field(2) + unsigned(len(names)),
        *map(text, names),
    ]
    if more:
        out.append(field(3) + b"\x01")
    _chunks(4, chunks, out)
    out.append(field(5) + huge(result) + END)
    return out


def fetched(chunks: Sequence[Iterable[Piece]], number: int | None) -> list[Piece]:
    """Further rows, with the number of this reply; none of both at the end."""
    out: list[Piece] = [write_head(Kind.FETCH_RESPONSE)]
    _chunks(1, chunks, out)
    out.append(field(2) + optional(number) + END)
    return out


def _chunks(number: int, chunks: Sequence[Iterable[Piece]], out: list[Piece]) -> None:
    if not chunks:
        return
    out.append(field(number) + unsigned(len(chunks)))
    for chunk in chunks:
        out.append(_CHUNK)
        out += chunk
        out.append(_CHUNK_END)
