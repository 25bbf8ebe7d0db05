"""Rows of COPY … FROM STDIN in binary format: from bytes, as they come, to columns of texts."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from .copy_options import SIGNATURE
from .copy_values import text_of
from .errors import PostgresError
from .parameters import value_of

# A batch is made of so many rows.
BATCH_ROWS = 4096
_COUNT, _LENGTH = struct.Struct("!h"), struct.Struct("!i")
_MARK = SIGNATURE[:11]


class CopyBinary:
    """Bytes go in by `feed`; batches of texts come out, with the number of each row in front."""

    def __init__(self, table: str, names: list[str], types: list[int]) -> None:
        """`types` are PostgreSQL's, of the columns."""
        self._table = table
        self._names = names
        self._types = types
        self._columns = [f"c{place}" for place in range(len(names))]
        self._bytes = bytearray()
        self._begun = self._over = False
        self._row = 0

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes; the batches of rows that are whole by now."""
        if self._over:
            return
        self._bytes += data
        if not self._begun and not self._begin():
            return
        rows = []
        at = 0
        while (found := self._tuple(at)) is not None:
            values, at = found
            if values is None:
                self._over = True
                break
            rows.append(values)
            if len(rows) == BATCH_ROWS:
                yield self._batch(rows)
                rows = []
        del self._bytes[:at]
        if rows:
            yield self._batch(rows)

    def end(self) -> Iterator[Any]:
        """No more comes."""
        if not self._over and (self._bytes or not self._begun):
            raise PostgresError("22P04", "unexpected EOF in COPY data", where=self._where())
        return iter(())

    def _begin(self) -> bool:
        """The signature, and what older servers would skip."""
        if len(self._bytes) < 19:
            return False
        if self._bytes[:11] != _MARK:
            raise PostgresError("22P04", "COPY file signature not recognized")
        more = _LENGTH.unpack_from(self._bytes, 15)[0]
        if more < 0 or self._bytes[11] & 0x7F or self._bytes[12]:
            raise PostgresError("22P04", "invalid COPY file header")
        if len(self._bytes) < 19 + more:
            return False
        del self._bytes[: 19 + more]
        self._begun = True
        return True

    def _tuple(self, at: int) -> tuple[list[bytes | None] | None, int] | None:
        """A row from a place on, and where it ends; None until all of it is there."""
        data = self._bytes
        if at + 2 > len(data):
            return None
        count = _COUNT.unpack_from(data, at)[0]
        at += 2
        if count == -1:
            return None, at
        if count != len(self._names):
            raise PostgresError(
                "22P04",
                f"row field count is {count}, expected {len(self._names)}",
                where=self._where(),
            )
        values: list[bytes | None] = []
        for _ in range(count):
            if at + 4 > len(data):
                return None
            length = _LENGTH.unpack_from(data, at)[0]
            at += 4
            if length < -1:
                raise PostgresError("22P04", "invalid field size", where=self._where())
            if length == -1:
                values.append(None)
                continue
            if at + length > len(data):
                return None
            values.append(bytes(data[at : at + length]))
            at += length
        return values, at

    def _batch(self, rows: list[list[bytes | None]]) -> Any:
        columns: list[Any] = [pa.array(range(self._row + 1, self._row + len(rows) + 1), pa.int64())]
        for place, oid in enumerate(self._types):
            texts = []
            for number, values in enumerate(rows):
                try:
                    texts.append(text_of(value_of(values[place], oid, 1), oid))
                except PostgresError as error:
                    row, name = self._row + number + 1, self._names[place]
                    error.where = f"COPY {self._table}, line {row}, column {name}"
                    raise
            columns.append(pa.array(texts, pa.string()))
        self._row += len(rows)
        return pa.record_batch(columns, ["line", *self._columns])

    def _where(self) -> str:
        return f"COPY {self._table}, line {self._row + 1}"
