"""Rows in the formats of answers, a piece at a time: Arrow, JSON, CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, get_args

import pyarrow as pa

from queryard.core.errors import unknown_name
from queryard.results.row_text import csv_header, csv_rows, json_arrays

from ..problems import NotAcceptable

Format = Literal["arrow", "json", "csv"]
FORMATS: tuple[Format, ...] = get_args(Format)
MEDIA: Mapping[Format, str] = {
    "arrow": "application/vnd.apache.arrow.stream",
    "json": "application/json",
    "csv": "text/csv",
}
_END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"
# In the metadata of an Arrow schema.
TYPES_KEY = "queryard:types"
RETURNS_KEY = "queryard:returns"


def chosen_format(wanted: str | None, accept: str, usual: Format = "json") -> Format:
    """The format that `?format=` names, else the first known one of an Accept header.

    >>> chosen_format(None, "text/html, text/csv;q=0.9"), chosen_format("arrow", "text/csv")
    ('csv', 'arrow')
    """
    if wanted is not None:
        for known in FORMATS:
            if wanted == known:
                return known
        raise NotAcceptable(f"format: {unknown_name('format', wanted, FORMATS)}")
    ranges: list[tuple[float, str]] = []
    for part in accept.split(","):
        media, *settings = (text.strip().lower() for text in part.split(";"))
        weights = [text[2:] for text in settings if text.startswith("q=")]
        try:
            weight = float(weights[0]) if weights else 1.0
        except ValueError:
            weight = 0.0
        if media and weight > 0:
            ranges.append((weight, media))
    for _, media in sorted(ranges, key=lambda found: -found[0]):
        for form, name in MEDIA.items():
            if media == name:
                return form
        if media in ("*/*", "application/*"):
            return usual
        if media == "text/*":
            return "csv"
    if not ranges:
        return usual
    raise NotAcceptable(
        f"none of {accept!r} is known; accept one of {', '.join(MEDIA.values())}, or say ?format="
    )


class Encoder(Protocol):
    """Makes bytes of rows: a head, pieces, and an end. It is used in threads, one at a time."""

    def head(self) -> bytes: ...
    def piece(self, batches: Sequence[Any]) -> Any: ...
    def end(self, position: int | None) -> bytes:
        """What closes the answer; `position` is that of the next row, None if there is none."""


def encoder(
    form: Format,
    schema: Any,
    types: Sequence[str],
    returns: str,
    start: int,
    header: bool,
) -> Encoder:
    if form == "arrow":
        return _Arrow(schema, types, returns)
    if form == "csv":
        return _Csv(schema, types, header)
    return _Json(schema, types, returns, start)


class _Arrow:
    """Messages of an IPC stream, without a copy of the rows in Python."""

    def __init__(self, schema: Any, types: Sequence[str], returns: str) -> None:
        told = {TYPES_KEY: json.dumps(list(types)), RETURNS_KEY: returns}
        self._schema = schema.with_metadata({**(schema.metadata or {}), **told})
        self._has_dictionaries = any(map(_is_dictionary, schema.types))

    def head(self) -> bytes:
        return bytes(self._schema.serialize())

    def piece(self, batches: Sequence[Any]) -> Any:
        if self._has_dictionaries:
            return b"".join(map(self._with_dictionaries, batches))
        found = [memoryview(batch.serialize()) for batch in batches]
        return found[0] if len(found) == 1 else b"".join(found)

    def _with_dictionaries(self, batch: Any) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        head = batch.schema.serialize().size
        return bytes(memoryview(sink.getvalue())[head : -len(_END_OF_STREAM)])

    def end(self, position: int | None) -> bytes:
        return _END_OF_STREAM


def _is_dictionary(kind: Any) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return pa.types.is_dictionary(kind) or any(map(_is_dictionary, inner))


class _Csv:
    def __init__(self, schema: Any, types: Sequence[str], header: bool) -> None:
        self._names = schema.names
        self._types = types
        self._header = header

    def head(self) -> bytes:
        return csv_header(self._names) if self._header else b""

    def piece(self, batches: Sequence[Any]) -> bytes:
        return b"".join(csv_rows(batch, self._types) for batch in batches)

    def end(self, position: int | None) -> bytes:
        return b""


class _Json:
    """An object with the columns, the rows as arrays, and where the next row is."""

    def __init__(self, schema: Any, types: Sequence[str], returns: str, start: int) -> None:
        self._columns = columns_of(schema, types)
        self._types = types
        self._returns = returns
        self._start = start
        self._began = False

    def head(self) -> bytes:
        columns = json.dumps(self._columns, ensure_ascii=False)
        returns = json.dumps(self._returns)
        text = f'{{"columns": {columns}, "returns": {returns}, "start": {self._start}, "rows": ['
        return text.encode()

    def piece(self, batches: Sequence[Any]) -> bytes:
        found = b",\n".join(filter(None, (json_arrays(batch, self._types) for batch in batches)))
        if found and self._began:
            return b",\n" + found
        self._began = self._began or bool(found)
        return found

    def end(self, position: int | None) -> bytes:
        return f'], "next": {"null" if position is None else position}}}\n'.encode()


def columns_of(schema: Any, types: Sequence[str]) -> list[dict[str, str]]:
    """Names and SQL types of columns."""
    pairs = zip(schema.names, types, strict=True)
    return [{"name": name, "type": kind} for name, kind in pairs]


def rows_json(batches: Sequence[Any], types: Sequence[str]) -> bytes:
    """Rows as an array of arrays."""
    found = b",\n".join(filter(None, (json_arrays(batch, types) for batch in batches)))
    return b"[" + found + b"]"
