"""All rows of a batch as messages, in one buffer.

A message is a letter, its length, the number of columns, and for each column a length and a value.
Bytes that have the same length in each row lie in matrices; between them come the values whose
lengths differ; Arrow joins both row by row, and the buffer that it fills goes to the client.
A row of a binary COPY differs from a row of a result by its letter only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import oids
from . import moments
from .arrays import array_binary, array_text, element_of
from .cells import Cells, as_binary, matrix, nulls_of, side_by_side
from .values import binary_values, lengths_and_values, plain, text_values

DATA_ROW, COPY_ROW = ord("D"), ord("d")
# Rows are encoded in pieces that stay within the processor's cache, and within Arrow's 2 GB.
PIECE_ROWS = 16_384
_PIECE_BYTES = 64 << 20
# So few cells are joined one by one: the steps of Arrow and NumPy cost more than the rows.
FEW_CELLS = 256
_STRING = pa.string()
_NULL = b"\xff\xff\xff\xff"


@dataclass(frozen=True, slots=True)
class Sent:
    """How a column is sent: as which type, in text (0) or binary (1)."""

    oid: int
    format: int = 0


def pieces_of(batch: Any) -> Iterator[Any]:
    """A batch in pieces that are encoded one at a time."""
    rows = PIECE_ROWS
    if batch.nbytes > _PIECE_BYTES:
        rows = max(1, min(rows, batch.num_rows * _PIECE_BYTES // batch.nbytes))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def cells_of(column: Any, sent: Sent, zone: str = "UTC") -> Cells:
    """The values of a column as bytes."""
    column = plain(column)
    if element_of(sent.oid) is not None and not _is_written(column):
        if sent.format:
            return array_binary(column, sent.oid)
        return array_text(column, sent.oid, zone).cast("binary")
    if sent.format:
        return binary_values(column, sent.oid)
    if sent.oid == oids.DATE and pa.types.is_date32(column.type):
        rows = moments.date_rows(column)
        if rows is not None:
            return rows
    return text_values(column, sent.oid, zone).cast("binary")


def _is_written(column: Any) -> bool:
    """Whether an array has come as a text, from a view of the catalog."""
    return str(column.type) == "string"


def encode_rows(
    batch: Any, columns: Sequence[Sent], letter: int = DATA_ROW, zone: str = "UTC"
) -> Any:
    """The messages of all rows of a batch, as one buffer."""
    number, width = batch.num_rows, len(columns)
    if number * width <= FEW_CELLS:
        return _few_rows(batch, columns, letter, zone)
    head = np.empty((number, 4), np.uint8)
    # Bytes of the same length in each row, up to the next value whose length differs.
    run: list[Any] = [bytes([letter]), head, width.to_bytes(2, "big")]
    parts: list[Any] = []
    same_bytes = 6 + 4 * width
    sizes: Any = 0
    for column, sent in zip(batch.columns, columns, strict=True):
        cells = cells_of(column, sent, zone)
        nulls = nulls_of(column)
        if isinstance(cells, np.ndarray) and nulls is None:
            run += [cells.shape[1].to_bytes(4, "big"), cells]
            same_bytes += cells.shape[1]
            continue
        lengths, values = lengths_and_values(cells, nulls)
        run.append(matrix(lengths, ">i4"))
        parts += [run, values]
        sizes = sizes + np.maximum(lengths, 0)
        run = []
    head[:] = matrix(np.broadcast_to(sizes + same_bytes, (number,)), ">i4")
    if run:
        parts.append(run)
    if len(parts) == 1:
        return side_by_side(run, number).reshape(-1).data
    joined = [
        as_binary(side_by_side(part, number)) if isinstance(part, list) else part for part in parts
    ]
    return bytes_of(pc.binary_join_element_wise(*joined, b""))


def _few_rows(batch: Any, columns: Sequence[Sent], letter: int, zone: str) -> bytes:
    """The same, cell by cell."""
    pairs = zip(batch.columns, columns, strict=True)
    cells = [_few_cells(column, sent, zone) for column, sent in pairs]
    begin, width = bytes([letter]), len(columns).to_bytes(2, "big")
    parts = []
    # The rows of a batch without columns are still rows.
    for row in zip(*cells, strict=True) if cells else [()] * batch.num_rows:
        values = [len(v).to_bytes(4, "big") + v if v is not None else _NULL for v in row]
        body = b"".join(values)
        parts += [begin, (6 + len(body)).to_bytes(4, "big"), width, body]
    return b"".join(parts)


def _few_cells(column: Any, sent: Sent, zone: str) -> list[bytes | None]:
    """The values of a short column, with None for NULL."""
    kind = column.type
    if not sent.format and sent.oid in oids.SIGNED and pa.types.is_integer(kind):
        return [None if v is None else b"%d" % v for v in column.to_pylist()]
    if sent.oid in oids.TEXTS and kind == _STRING:
        texts = [None if v is None else v.encode() for v in column.to_pylist()]
        if not any(text and b"\0" in text for text in texts):
            return texts
    cells = cells_of(column, sent, zone)
    values = [cell.tobytes() for cell in cells] if isinstance(cells, np.ndarray) else None
    nulls = nulls_of(column)
    found = cells.to_pylist() if values is None else values
    if nulls is None:
        return found
    return [None if is_null else value for is_null, value in zip(nulls, found, strict=True)]


def bytes_of(values: Any) -> Any:
    """The bytes of all values, one behind another."""
    _, offsets, data = values.buffers()
    if data is None:
        return memoryview(b"")
    ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    return memoryview(data)[ends[0] : ends[-1]]
