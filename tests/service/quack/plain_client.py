"""The client's side of version 1, as far as tests need it: requests as bytes, replies as rows."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from queryard.service.quack.envelope import Kind
from queryard.service.quack.v1.chunks import ChunkEncoder
from queryard.service.quack.v1.decoding import read_chunk
from queryard.service.quack.v1.types import LogicalType, read_type
from queryard.service.quack.wire import END, Reader, huge, optional, text, unsigned
from queryard.service.quack.wire import field as field_id


class Refused(Exception):
    """The server has answered with an error."""


@dataclass
class Reply:
    """What a reply says; what it does not say is empty."""

    kind: int
    connection: str = ""
    types: list[LogicalType] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    more: bool = False
    batches: list[Any] = field(default_factory=list)
    result: int = 0
    number: int | None = None
    message: str = ""
    version: int = 0

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as values of Python."""
        found: list[tuple[Any, ...]] = []
        for batch in self.batches:
            found += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return found


def head(kind: int, connection: str = "", query: int | None = None) -> bytes:
    own = field_id(2) + text(connection) if connection else b""
    return field_id(1) + unsigned(kind) + own + field_id(3) + optional(query) + END


def hello(token: str, least: int = 1, most: int = 1, more: bytes = b"") -> bytes:
    said = field_id(1) + text(token) + field_id(2) + text("v1.5.5") + field_id(3) + text("test")
    said += field_id(4) + unsigned(least) + field_id(5) + unsigned(most)
    return head(Kind.CONNECTION_REQUEST) + said + more + END


def prepare(connection: str, sql: str) -> bytes:
    return head(Kind.PREPARE_REQUEST, connection, 5) + field_id(1) + text(sql) + END


def fetch(connection: str, result: int) -> bytes:
    return head(Kind.FETCH_REQUEST, connection) + field_id(1) + huge(result) + END


def disconnect(connection: str) -> bytes:
    return head(Kind.DISCONNECT, connection) + END


def append(
    connection: str, schema: str, table: str, types: list[LogicalType], columns: list[Any]
) -> bytes:
    batch = pa.record_batch(columns, names=[f"c{place}" for place in range(len(columns))])
    (chunk,) = ChunkEncoder(types).chunks(batch)
    return b"".join(
        [
            head(Kind.APPEND_REQUEST, connection),
            field_id(1) + text(schema) + field_id(2) + text(table),
            field_id(3) + b"\x01" + field_id(300),
            *chunk,
            END + END,
        ]
    )


def read_reply(data: bytes) -> Reply:
    """A reply of version 1, which must be understood to its last byte."""
    reader = Reader(data)
    reader.expect(1)
    kind = reader.unsigned()
    reply = Reply(kind, reader.text() if reader.has(2) else "")
    reader.expect(3)
    assert reader.optional() is None
    reader.end()
    if kind == Kind.CONNECTION_RESPONSE:
        for number in (1, 2):
            assert reader.has(number)
            reader.text()
        reader.expect(3)
        reply.version = reader.unsigned()
    elif kind == Kind.PREPARE_RESPONSE:
        if reader.has(1):
            reply.types = [read_type(reader) for _ in range(reader.count())]
        if reader.has(2):
            reply.names = [reader.text() for _ in range(reader.count())]
        reply.more = reader.has(3) and reader.flag()
        _chunks(reader, 4, reply)
        reader.expect(5)
        reply.result = reader.huge()
    elif kind == Kind.FETCH_RESPONSE:
        _chunks(reader, 1, reply)
        reader.expect(2)
        reply.number = reader.optional()
    elif kind == Kind.ERROR_RESPONSE:
        reply.message = reader.text() if reader.has(1) else ""
    else:
        assert kind == Kind.SUCCESS_RESPONSE
    reader.end()
    reader.done()
    return reply


def _chunks(reader: Reader, number: int, reply: Reply) -> None:
    if reader.has(number):
        for _ in range(reader.count()):
            assert reader.flag()
            reader.expect(300)
            types, batch = read_chunk(reader)
            assert not reply.types or types == reply.types
            reply.batches.append(batch)
            reader.end()


class Client:
    """A connection to a server."""

    def __init__(self, port: int, token: str, *, versions: tuple[int, int] = (1, 1)) -> None:
        self.http = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self.id = ""
        self.id = self.ask(hello(token, *versions)).connection

    def raw(self, message: bytes) -> bytes:
        """Send bytes, and receive some."""
        self.http.request("POST", "/quack", message)
        answer = self.http.getresponse()
        assert answer.status == 200
        return answer.read()

    def ask(self, message: bytes) -> Reply:
        reply = read_reply(self.raw(message))
        if reply.kind == Kind.ERROR_RESPONSE:
            raise Refused(reply.message)
        return reply

    def prepare(self, sql: str) -> Reply:
        return self.ask(prepare(self.id, sql))

    def fetch(self, result: int) -> Reply:
        return self.ask(fetch(self.id, result))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        reply = self.prepare(sql)
        found = reply.rows
        while reply.more:
            more = self.fetch(reply.result)
            if more.number is None:
                break
            found += more.rows
        return found

    def append(self, schema: str, table: str, types: list[LogicalType], columns: list[Any]) -> None:
        self.ask(append(self.id, schema, table, types, columns))

    def close(self) -> None:
        self.ask(disconnect(self.id))
        self.http.close()
