"""Rows of Arrow as data chunks: at most 2,048 rows each, column after column.

Columns are converted for a whole batch, or many chunks of it, and then cut: that takes a third of
the time of one chunk after another. A chunk is a list of pieces, to be joined once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..wire import END, field, unsigned
from .encoding import (
    ALL_VALID,
    DATA,
    Piece,
    fixed_data,
    plain_texts,
    stored,
    text_data,
    valid_of,
    write_mask,
    write_vector,
)
from .types import TEXTS, Id, LogicalType, write_type

# DuckDB's vectors have so many rows; a client takes no more.
CHUNK_ROWS = 2048
# Texts of so many rows are converted at once: what is made of them fits into the cache.
_TEXT_ROWS = 8 * CHUNK_ROWS
_ROWS, _TYPES, _VECTORS = field(100), field(101), field(102)


class ChunkEncoder:
    """Makes chunks of batches whose columns have these types."""

    def __init__(self, types: Sequence[LogicalType]) -> None:
        self._types = tuple(types)
        written = b"".join(map(write_type, self._types))
        count = unsigned(len(self._types))
        self._head = _TYPES + count + written + _VECTORS + count

    def chunks(self, batch: Any) -> Iterator[list[Piece]]:
        """The chunks of a record batch, each as pieces of one object."""
        columns = [
            _vectors(column, kind) for column, kind in zip(batch.columns, self._types, strict=True)
        ]
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            count = min(CHUNK_ROWS, batch.num_rows - start)
            out: list[Piece] = [_ROWS + unsigned(count) + self._head]
            for column in columns:
                out += next(column)
                out.append(END)
            out.append(END)
            yield out


def _vectors(values: Any, kind: LogicalType) -> Iterator[list[Piece]]:
    """A column, chunk by chunk, each without the end of its object."""
    if kind.id in TEXTS and kind.id is not Id.GEOMETRY:
        return _of_texts(plain_texts(stored(values)))
    if kind.value_bytes:
        return _of_one_size(stored(values), kind)
    return _one_by_one(values, kind)


def _one_by_one(values: Any, kind: LogicalType) -> Iterator[list[Piece]]:
    for start in range(0, len(values), CHUNK_ROWS):
        out: list[Piece] = []
        write_vector(values.slice(start, CHUNK_ROWS), kind, out)
        yield out


def _of_one_size(values: Any, kind: LogicalType) -> Iterator[list[Piece]]:
    valid = valid_of(values) if values.null_count else None
    data = memoryview(fixed_data(values, kind, valid))
    size = kind.value_bytes
    for start in range(0, len(values), CHUNK_ROWS):
        end = min(start + CHUNK_ROWS, len(values))
        out = _validity(valid, start, end)
        out.append(DATA + unsigned((end - start) * size))
        out.append(data[start * size : end * size])
        yield out


def _of_texts(values: Any) -> Iterator[list[Piece]]:
    for first in range(0, len(values), _TEXT_ROWS):
        some = values.slice(first, _TEXT_ROWS)
        valid = valid_of(some) if some.null_count else None
        data, ends = text_data(some, valid)
        begin = 0
        for start in range(0, len(some), CHUNK_ROWS):
            end = min(start + CHUNK_ROWS, len(some))
            out = _validity(valid, start, end)
            out.append(DATA + unsigned(end - start))
            out.append(data[begin : ends[end - 1]])
            begin = ends[end - 1]
            yield out


def _validity(valid: Any, start: int, end: int) -> list[Piece]:
    if valid is None:
        return [ALL_VALID]
    out: list[Piece] = []
    write_mask(valid[start:end], out)
    return out
