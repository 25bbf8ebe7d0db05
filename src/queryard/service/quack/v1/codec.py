"""Version 1 as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..envelope import Head
from ..errors import CannotSend
from ..requests import Request
from ..wire import Reader
from .chunks import CHUNK_ROWS, ChunkEncoder
from .messages import fetched, prepared, read_request, welcome
from .type_names import has_crs, type_of
from .types import with_crs


class CodecV1:
    """How version 1 is read and written."""

    version = 1
    chunk_rows = CHUNK_ROWS

    def welcome(self, connection: str, server: str, platform: str) -> bytes:
        return welcome(connection, server, platform)

    def read(self, head: Head, reader: Reader) -> Request:
        return read_request(head, reader)

    def columns(self, names: Sequence[str], types: Sequence[str], schema: Any) -> ColumnsV1:
        """Columns by their names and SQL types; the Arrow schema tells of types users made."""
        return ColumnsV1(names, types, schema)

    def knows(self, type_name: str) -> bool:
        """Whether a client knows a type by its name."""
        try:
            type_of(type_name)
        except CannotSend:
            return False
        return True

    def fetched(self, chunks: Sequence[Iterable[Any]], number: int | None) -> list[Any]:
        return fetched(chunks, number)


class ColumnsV1:
    """The columns of one result."""

    def __init__(self, names: Sequence[str], types: Sequence[str], schema: Any) -> None:
        self._names = tuple(names)
        columns = list(zip(types, schema, strict=True))
        if any("GEOMETRY" in name and has_crs(field) for name, field in columns):
            raise with_crs()
        self._types = [type_of(name, field.type) for name, field in columns]
        self._encoder = ChunkEncoder(self._types)

    def chunks(self, batch: Any) -> Iterable[list[Any]]:
        """The rows of a batch as chunks, each as pieces of bytes."""
        return self._encoder.chunks(batch)

    def prepared(self, chunks: Sequence[Iterable[Any]], result: int, *, more: bool) -> list[Any]:
        """The reply to the statement."""
        return prepared(self._types, self._names, chunks, result, more=more)
