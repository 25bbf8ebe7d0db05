"""COPY … TO STDOUT: what is asked for, and rows as PostgreSQL's text and CSV formats have them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from queryard.engine.classify import unquoted

from .encoding.cells import as_binary, matrix, nulls_of
from .encoding.rows import COPY_ROW, Sent, bytes_of, cells_of, encode_rows
from .errors import PostgresError, not_supported
from .replies import copy_data
from .texts import Text
from .types import Column

Format = Literal["text", "csv", "binary"]
_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)
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


@dataclass(frozen=True, slots=True)
class CopyOut:
    """Rows of a query, and how they are written."""

    query: str
    format: Format = "text"
    delimiter: str = "\t"
    null: str = "\\N"
    header: bool = False
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()  # "*" for all columns


def copy_of(text: Text) -> CopyOut | None:
    """What a COPY TO STDOUT asks for; None for all other statements.

    >>> copy_of(Text("COPY (SELECT 1) TO STDOUT (FORMAT csv, HEADER)"))
    ... # doctest: +NORMALIZE_WHITESPACE
    CopyOut(query='SELECT 1', format='csv', delimiter=',', null='', header=True, quote='"',
            escape='"', force_quote=())
    """
    words = text.words
    if text.first != "copy":
        return None
    depths = accumulate((word == "(") - (word == ")") for word in words)
    outside = [place for place, depth in enumerate(depths) if depth == 0]
    at = next((place for place in outside if words[place] in ("to", "from")), 0)
    target = words[at + 1 : at + 2]
    if words[at] == "from" and target in (("stdin",), ("program",)):
        raise not_supported(
            "COPY FROM STDIN: this server takes no rows from clients",
            hint="insert them, or put a file beside the tables of the server",
        )
    if words[at] != "to" or target not in (("stdout",), ("program",)):
        return None
    if target == ("program",):
        raise PostgresError("42501", "COPY TO PROGRAM: clients run no programs on the server")
    if words[1] == "(":
        query = text.between(2, at - 1)
    else:
        opened = words.index("(", 1, at) if "(" in words[1:at] else at
        names = text.between(opened + 1, at - 1) if opened < at else "*"
        query = f"SELECT {names} FROM {text.between(1, opened)}"
    return _with_options(query, text, at + 2)


def _with_options(query: str, text: Text, at: int) -> CopyOut:
    if text.words[at : at + 1] == ("with",):
        at += 1
    options: dict[str, Any] = {}
    if text.words[at : at + 1] == ("(",):
        _listed(text, at + 1, options)
    else:
        _in_a_row(text, at, options)
    form = options.pop("format", "text")
    if form not in ("text", "csv", "binary"):
        raise PostgresError("22023", f'COPY format "{form}" not recognized')
    if form == "csv":
        options = {"delimiter": ",", "null": "", **options}
        options.setdefault("escape", options.get("quote", '"'))
    allowed = {"binary": set(), "text": {"delimiter", "null", "header"}}.get(form)
    for name in options:
        if allowed is not None and name not in allowed:
            raise PostgresError("42601", f"COPY {name} is not possible in {form} format")
    delimiter = options.get("delimiter", ",")
    if len(delimiter.encode()) != 1 or delimiter in "\n\r":
        raise PostgresError("0A000", "COPY delimiter must be a single one-byte character")
    return CopyOut(query, form, **options)


def _listed(text: Text, at: int, options: dict[str, Any]) -> None:
    """(FORMAT csv, HEADER true …)"""
    while at < len(text.words) and text.words[at] != ")":
        name = text.name(at)
        end, depth = at + 1, 0
        while end < len(text.words) and (depth or text.words[end] not in (",", ")")):
            depth += (text.words[end] == "(") - (text.words[end] == ")")
            end += 1
        _put(options, name, [text.tokens.texts[place] for place in range(at + 1, end)])
        at = end + (text.words[end : end + 1] == (",",))


def _in_a_row(text: Text, at: int, options: dict[str, Any]) -> None:
    """BINARY, or CSV HEADER DELIMITER AS ';' …: as it was written before version 9."""
    words = text.words
    while at < len(words):
        word = words[at]
        at += 1
        if word in ("binary", "csv"):
            options["format"] = word
        elif word == "header":
            options["header"] = True
        elif word in ("delimiter", "delimiters", "null", "quote", "escape"):
            at += words[at : at + 1] == ("as",)
            if at >= len(words):
                raise PostgresError("42601", "syntax error at end of input")
            _put(options, word.removesuffix("s"), [text.tokens.texts[at]])
            at += 1
        else:
            raise PostgresError("42601", f"syntax error at or near {word!r}")


def _put(options: dict[str, Any], name: str, values: list[str]) -> None:
    value = unquoted(values[0].removeprefix("E")) if values else ""
    if name == "format":
        options["format"] = value.lower()
    elif name == "header":
        options["header"] = value.lower() not in ("false", "off", "0")
    elif name == "force_quote":
        names = [unquoted(word).strip() for word in values if word not in ("(", ")", ",")]
        options["force_quote"] = tuple(names)
    elif name in ("delimiter", "null", "quote", "escape"):
        options[name] = "\t" if value == "\\t" else value
    elif name == "encoding":
        if value.lower().replace("-", "") not in ("utf8", "unicode", "sql_ascii"):
            raise not_supported(f"COPY: encoding {value!r}", hint="this server speaks UTF8")
    else:
        raise PostgresError("42601", f'option "{name}" not recognized')


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
        return [copy_data(_SIGNATURE + bytes(data[5:first])), data[first:]]

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
        return copy_data((b"" if self._begun else _SIGNATURE) + _TRAILER)

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
