"""COPY … TO STDOUT: rows as PostgreSQL's text, CSV and binary formats have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .copy_options import SIGNATURE, CopyOut
from .encoding.cells import as_binary, matrix, nulls_of
from .encoding.rows import COPY_ROW, Sent, bytes_of, cells_of, encode_rows
from .replies import copy_data
from .types import Column

_TRAILER = b"\xff\xff"
# What COPY's text format writes with a backslash; the backslash itself comes first.
_ESCAPES = {
    b"\\": b"\\\\",
    b"\b": b"\\b",
    b"\f": b"\\f",
    b"\n": b"\\n",
    b"\r": b"\\r",
    b"\t": b"\\t",
    b"\v": b"\\v",
}


class CopyRows:
    """Rows on their way into the messages of one COPY: one message per row, as PostgreSQL does."""

    def __init__(self, copy: CopyOut, columns: tuple[Column, ...], zone: str) -> None:
        self._copy = copy
        self._names = [column.name for column in columns]
        self._sent = [Sent(column.type.oid, int(copy.format == "binary")) for column in columns]
        self._zone = zone
        self._begun = False

    def encode(self, batch: Any) -> list[Any]:
        """The messages of some rows."""
        if self._copy.format != "binary":
            return [self._lines(batch)]
        rows = encode_rows(batch, self._sent, COPY_ROW, self._zone)
        if self._begun or not batch.num_rows:
            return [rows]
        # The signature stands before the first row, in the same message.
        self._begun = True
        data = memoryview(rows).cast("B")
        first = 1 + int.from_bytes(data[1:5], "big")
        return [copy_data(SIGNATURE + bytes(data[5:first])), data[first:]]

    def head(self) -> bytes:
        copy = self._copy
        if not copy.header:
            return b""
        names = pa.record_batch([pa.array([name]) for name in self._names], self._names)
        plain = CopyRows(
            CopyOut("", copy.format, copy.delimiter, copy.null, quote=copy.quote), (), ""
        )
        plain._names, plain._sent = self._names, [Sent(25)] * len(self._names)
        return bytes(plain._lines(names))

    def tail(self) -> bytes:
        if self._copy.format != "binary":
            return b""
        return copy_data((b"" if self._begun else SIGNATURE) + _TRAILER)

    def _lines(self, batch: Any) -> Any:
        parts: list[Any] = []
        number = batch.num_rows
        for place, (column, sent) in enumerate(zip(batch.columns, self._sent, strict=True)):
            cells = cells_of(column, sent, self._zone)
            if isinstance(cells, np.ndarray):
                cells = as_binary(cells)
            written = self._csv(cells, place) if self._copy.format == "csv" else self._text(cells)
            nulls = nulls_of(column)
            if nulls is not None:
                written = pc.if_else(pa.array(nulls), self._copy.null.encode(), written)
            last = place == len(self._sent) - 1
            parts += [written, b"\n" if last else self._copy.delimiter.encode()]
        lines = pc.binary_join_element_wise(*parts, b"")
        heads = np.empty((number, 5), np.uint8)
        heads[:, 0] = COPY_ROW
        lengths = pc.binary_length(lines).to_numpy(zero_copy_only=False)
        heads[:, 1:] = matrix(lengths + 4, ">i4")
        joined = pc.binary_join_element_wise(as_binary(heads), lines, b"")
        return bytes_of(joined)

    def _text(self, cells: Any) -> Any:
        data = bytes(cells.buffers()[2] or b"")
        delimiter = self._copy.delimiter.encode()
        signs = dict(_ESCAPES)
        if delimiter not in signs:
            signs[delimiter] = b"\\" + delimiter
        for sign, written in signs.items():
            if sign in data:
                cells = pc.replace_substring(cells, sign, written)
        return cells

    def _csv(self, cells: Any, place: int) -> Any:
        copy = self._copy
        quote, escape = copy.quote.encode(), copy.escape.encode()
        forced = copy.force_quote
        if "*" in forced or self._names[place] in forced:
            needs = pa.array(np.ones(len(cells), bool))
        else:
            needs = pc.equal(cells, copy.null.encode())
            for sign in (copy.delimiter.encode(), quote, b"\n", b"\r"):
                needs = pc.or_(needs, pc.match_substring(cells, sign))
            if len(self._sent) == 1:
                needs = pc.or_(needs, pc.equal(cells, b"\\."))
            if not pc.any(needs).as_py():
                return cells
        inside = cells
        if escape != quote:
            inside = pc.replace_substring(inside, escape, escape + escape)
        inside = pc.replace_substring(inside, quote, escape + quote)
        return pc.if_else(needs, pc.binary_join_element_wise(quote, inside, quote, b""), cells)
