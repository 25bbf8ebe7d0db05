"""Rows as CSV and JSON text, a batch at a time."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import re
import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .display import value_text
from .values import written_values

_NEEDS_ESCAPES = "[\\x00-\\x1f\\x7f]"
# Delimiters and quotes, ends of lines, and blanks at an end, which some readers leave out.
# For fewer values than this, Arrow's functions take longer than Python.
_FEW = 64
_NEEDS_QUOTES = '[",\t\r\n]|^ | $'


def csv_header(names: Sequence[str], delimiter: str = ",") -> bytes:
    """The first line.

    >>> csv_header(["a", "b,c"])
    b'a,"b,c"\\n'
    """
    cells = [_quoted_text(name) for name in names]
    return (delimiter.join(cells) + "\n").encode()


def csv_rows(batch: Any, types: Sequence[str], delimiter: str = ",") -> bytes:
    """The lines of a batch: NULL is nothing, and an empty text is two quotes.

    >>> csv_rows(pa.record_batch({"n": [1, None], "t": ["a,b", ""]}), ["BIGINT", "VARCHAR"])
    b'1,"a,b"\\n,""\\n'
    """
    if batch.num_rows == 0:
        return b""
    cells = [
        pc.fill_null(_csv_cells(column, kind), _text(""))
        for column, kind in zip(batch.columns, types, strict=True)
    ]
    lines = pc.binary_join_element_wise(*cells, _text(delimiter))
    return _bytes_of(pc.binary_join_element_wise(lines, _text("\n"), _text("")))


def _text(text: str) -> Any:
    """An Arrow scalar; `pa.scalar` would load pandas first, if only to see whether it is needed."""
    raw = text.encode()
    offsets = pa.py_buffer(struct.pack("=qq", 0, len(raw)))
    return pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(raw))[0]


def _cast(column: Any) -> Any:
    return column.cast(pa.large_string())


def _bytes_of(lines: Any) -> bytes:
    """One behind another, the texts of an Arrow array are the text of the file."""
    length = pc.sum(pc.binary_length(lines)).as_py()
    return bytes(memoryview(lines.buffers()[2])[:length])


def _csv_cells(column: Any, sql_type: str) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _csv_cells(column.dictionary_decode(), sql_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(_cast(column))
    if _has_plain_text(kind) and sql_type not in ("HUGEINT", "UHUGEINT"):
        return _cast(column)
    if pa.types.is_date32(kind) and _is_near(column):
        return _cast(column)
    texts = [None if v is None else value_text(v) for v in written_values(column, sql_type)]
    return _quoted(pa.array(texts, pa.large_string()))


def _has_plain_text(kind: Any) -> bool:
    """Whether Arrow writes it as SQL does, and without signs that need quotes."""
    if pa.types.is_decimal(kind):
        return bool(kind.scale <= 6)  # smaller numbers are written with an exponent
    return any(t(kind) for t in (pa.types.is_integer, pa.types.is_boolean, pa.types.is_floating))


def _is_near(dates: Any) -> bool:
    """Whether all dates have years of four digits."""
    found = pc.min_max(dates.cast(pa.int32())).as_py()
    return found["min"] is None or (found["min"] > -719_000 and found["max"] < 2_932_000)


def _quoted_text(text: str) -> str:
    if text and not re.search(_NEEDS_QUOTES, text):
        return text
    return '"' + text.replace('"', '""') + '"'


def _quoted(texts: Any) -> Any:
    """Texts in quotes where they need them."""
    needs = pc.or_kleene(pc.match_substring_regex(texts, _NEEDS_QUOTES), pc.equal(texts, _text("")))
    if not pc.any(needs).as_py():
        return texts
    inside = pc.replace_substring(texts, '"', '""')
    quoted = pc.binary_join_element_wise(_text('"'), inside, _text('"'), _text(""))
    return pc.if_else(needs, quoted, texts)


# --- JSON ----------------------------------------------------------------------------------------


def json_lines(batch: Any, types: Sequence[str]) -> bytes:
    """One object per row, each with the end of its line.

    >>> json_lines(pa.record_batch({"n": [1, None], "t": ["a", "b"]}), ["BIGINT", "VARCHAR"])
    b'{"n": 1, "t": "a"}\\n{"n": null, "t": "b"}\\n'
    """
    if batch.num_rows == 0:
        return b""
    parts: list[Any] = []
    for place, (name, column, kind) in enumerate(
        zip(batch.schema.names, batch.columns, types, strict=True)
    ):
        before = ", " if place else "{"
        parts.append(_text(f"{before}{json.dumps(name, ensure_ascii=False)}: "))
        parts.append(pc.fill_null(_json_cells(column, kind), _text("null")))
    lines = pc.binary_join_element_wise(*parts, _text("}\n"), _text(""))
    return _bytes_of(lines)


def json_arrays(batch: Any, types: Sequence[str]) -> bytes:
    """One array per row, with commas between them: names of columns may be the same.

    >>> json_arrays(pa.record_batch({"n": [1, None], "t": ["a", "b"]}), ["BIGINT", "VARCHAR"])
    b'[1, "a"],\\n[null, "b"]'
    """
    if batch.num_rows == 0:
        return b""
    if batch.num_rows * batch.num_columns <= _FEW and not any(map(_is_short, batch.schema.types)):
        columns = [
            map(json_text, written_values(column, kind))
            for column, kind in zip(batch.columns, types, strict=True)
        ]
        rows = (f"[{', '.join(row)}]" for row in zip(*columns, strict=True))
        return ",\n".join(rows).encode()
    cells = [
        pc.fill_null(_json_cells(column, kind), _text("null"))
        for column, kind in zip(batch.columns, types, strict=True)
    ]
    inside = pc.binary_join_element_wise(*cells, _text(", "))
    lines = pc.binary_join_element_wise(_text("["), inside, _text("],\n"), _text(""))
    return _bytes_of(lines)[:-2]


def _is_short(kind: Any) -> bool:
    """Whether a number has fewer digits than Python's."""
    return bool(pa.types.is_float32(kind) or pa.types.is_float16(kind))


def _json_cells(column: Any, sql_type: str) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _json_cells(column.dictionary_decode(), sql_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text and not pc.any(pc.match_substring_regex(column, _NEEDS_ESCAPES)).as_py():
        texts = pc.replace_substring(_cast(column), "\\", "\\\\")
        texts = pc.replace_substring(texts, '"', '\\"')
        return pc.binary_join_element_wise(_text('"'), texts, _text('"'), _text(""))
    if pa.types.is_floating(kind):
        return _cast(pc.if_else(pc.is_finite(column), column, pa.nulls(1, kind)[0]))
    if _has_plain_text(kind) and sql_type not in ("HUGEINT", "UHUGEINT"):
        return _cast(column)
    if pa.types.is_date32(kind) and _is_near(column):
        return pc.binary_join_element_wise(_text('"'), _cast(column), _text('"'), _text(""))
    texts = [None if v is None else json_text(v) for v in written_values(column, sql_type)]
    return pa.array(texts, pa.large_string())


def json_text(value: Any) -> str:
    """A value as JSON; decimals keep all digits, and what JSON lacks becomes text.

    >>> json_text(decimal.Decimal("1.50")), json_text(float("nan")), json_text({"a": [None, True]})
    ('1.50', 'null', '{"a": [null, true]}')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else "null"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case decimal.Decimal():
            return format(value, "f")
        case dt.datetime():
            return f'"{value.isoformat(" ")}"'
        case list() | tuple():
            return f"[{', '.join(map(json_text, value))}]"
        case dict():
            inner = (
                f"{json.dumps(key if isinstance(key, str) else value_text(key))}: {json_text(item)}"
                for key, item in value.items()
            )
            return "{" + ", ".join(inner) + "}"
    return json.dumps(value_text(value), ensure_ascii=False)
