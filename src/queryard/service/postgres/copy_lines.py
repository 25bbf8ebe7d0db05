"""Rows of COPY … FROM STDIN in text and CSV format: from bytes, as they come, to columns of texts.

Arrow's reader takes what is plain, a megabyte at a time. What it does not read as PostgreSQL does
(backslashes, the end of data, lines of another number of values) is read here, line by line, and so
are errors found, with their lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from .copy_options import CopyIn
from .errors import PostgresError

# Bytes are read once there are so many, or all.
PIECE_BYTES = 1 << 20
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_SIGNS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


class _Record(NamedTuple):
    line: int
    values: list[str | None]


class CopyLines:
    """Bytes go in by `feed`; batches of texts come out, with the line of each row in front.

    >>> lines = CopyLines(CopyIn("t"), ["a", "b"])
    >>> list(lines.feed(b"1\\tx\\n2")), list(lines.feed(b"\\t\\\\N\\n"))
    ([], [])
    >>> [batch.to_pylist() for batch in lines.end()]
    [[{'line': 1, 'c0': '1', 'c1': 'x'}, {'line': 2, 'c0': '2', 'c1': None}]]
    """

    def __init__(self, copy: CopyIn, names: list[str]) -> None:
        self._copy = copy
        self._names = names
        self._columns = [f"c{place}" for place in range(len(names))]
        self._bytes = bytearray()
        self._line = 1
        self._head = copy.header
        self._over = False
        self._is_csv = copy.format == "csv"
        quote, delimiter = (re.escape(sign.encode()) for sign in (copy.quote, copy.delimiter))
        self._well_quoted = re.compile(
            rb"(?:(?:%(q)b(?:[^%(q)b]++|%(q)b%(q)b)*+%(q)b|[^%(q)b%(d)b\n]*+)(?:%(d)b|\n|$))*+"
            % {b"q": quote, b"d": delimiter}
        )

    def feed(self, data: bytes) -> Iterator[Any]:
        """Take bytes; the batches of rows that are whole by now."""
        if self._over:
            return
        self._bytes += data
        if len(self._bytes) >= PIECE_BYTES:
            yield from self._piece(self._whole())

    def end(self) -> Iterator[Any]:
        """No more comes."""
        if self._bytes and not self._over:
            yield from self._piece(len(self._bytes))

    def _whole(self) -> int:
        """Where the last whole record ends."""
        end = self._bytes.rfind(b"\n") + 1
        if not self._is_csv:
            while end and _ends_in_escape(self._bytes[max(0, end - 100) : end - 1]):
                end = self._bytes.rfind(b"\n", 0, end - 1) + 1
        else:
            quote = self._copy.quote.encode()
            # A line may end within quotes; with other escapes than the quote itself, it is looked
            # at sign by sign.
            while end and self._within_quotes(memoryview(self._bytes)[:end], quote):
                end = self._bytes.rfind(b"\n", 0, end - 1) + 1
        return end

    def _within_quotes(self, part: memoryview, quote: bytes) -> bool:
        text = bytes(part)
        if self._copy.escape == self._copy.quote or self._copy.escape.encode() not in text:
            return text.count(quote) % 2 == 1
        escape = re.escape(self._copy.escape.encode())
        plain = re.sub(escape + b"[" + escape + re.escape(quote) + b"]", b"", text)
        return plain.count(quote) % 2 == 1

    def _piece(self, size: int) -> Iterator[Any]:
        if not size:
            return
        piece = bytes(memoryview(self._bytes)[:size])
        del self._bytes[:size]
        if b"\r" in piece and self._copy.quote.encode() not in piece:
            piece = piece.replace(b"\r\n", b"\n")
        if self._head:
            piece = self._take_head(piece)
        if not piece:
            return
        batch = self._fast(piece)
        yield self._slow(piece) if batch is None else batch

    def _take_head(self, piece: bytes) -> bytes:
        self._head = False
        end = piece.find(b"\n") + 1 or len(piece)
        if self._copy.matches:
            found = next(iter(self._records(_decoded(piece[:end], 1))), _Record(1, [])).values
            if found != self._names:
                raise PostgresError(
                    "22P04",
                    f"COPY: the header has the columns {found}, and {self._names} are expected",
                )
        self._line += 1
        return piece[end:]

    # --- plain lines -----------------------------------------------------------------------------

    def _fast(self, piece: bytes) -> Any:
        """A batch, if Arrow reads the same as PostgreSQL; else None."""
        copy = self._copy
        if not self._is_plain(piece):
            return None
        lines = piece.count(b"\n") + (not piece.endswith(b"\n"))
        try:
            table = pa.csv.read_csv(
                pa.BufferReader(piece),
                pa.csv.ReadOptions(
                    use_threads=False, column_names=self._columns, block_size=len(piece) + 1
                ),
                pa.csv.ParseOptions(
                    delimiter=copy.delimiter,
                    quote_char=copy.quote if self._is_csv else False,
                    escape_char=False,
                    newlines_in_values=self._is_csv,
                    ignore_empty_lines=False,
                ),
                pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(self._columns, pa.string()),
                    null_values=[copy.null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                ),
            )
        except pa.ArrowException:
            return None  # the slow way finds the line
        if table.num_rows != lines or not self._is_read_alike(table, piece):
            return None
        numbers = pa.array(range(self._line, self._line + lines), pa.int64())
        self._line += lines
        columns = [column.combine_chunks() for column in table.columns]
        return pa.record_batch([numbers, *columns], ["line", *self._columns])

    def _is_plain(self, piece: bytes) -> bool:
        copy = self._copy
        if b"\\." in piece or b"\r" in piece or b"\0" in piece:
            return False
        if not self._is_csv:
            return True
        quote = copy.quote.encode()
        if quote not in piece:
            return True
        # PostgreSQL knows quotes in the middle of a value as well.
        return copy.escape == copy.quote and self._well_quoted.fullmatch(piece) is not None

    def _is_read_alike(self, table: Any, piece: bytes) -> bool:
        if not self._is_csv:
            # A backslash that is no part of a NULL stands for another sign.
            return b"\\" not in piece or not any(
                pc.any(pc.match_substring(column, "\\")).as_py() for column in table.columns
            )
        return True

    # --- line by line ----------------------------------------------------------------------------

    def _slow(self, piece: bytes) -> Any:
        records = []
        for record in self._records(_decoded(piece, self._line)):
            self._check(record)
            records.append(record)
        columns = [
            pa.array([record.values[place] for record in records], pa.string())
            for place in range(len(self._columns))
        ]
        numbers = pa.array([record.line for record in records], pa.int64())
        return pa.record_batch([numbers, *columns], ["line", *self._columns])

    def _check(self, record: _Record) -> None:
        found, wanted = len(record.values), len(self._names)
        if found < wanted:
            words = f'missing data for column "{self._names[found]}"'
        elif found > wanted:
            words = "extra data after last expected column"
        else:
            return
        raise PostgresError("22P04", words, where=f"COPY {self._copy.table}, line {record.line}")

    def _records(self, text: str) -> Iterator[_Record]:
        records = self._csv(text) if self._is_csv else self._text(text)
        for record in records:
            if record.values == ["\\."] and self._over:
                return
            yield record

    def _text(self, text: str) -> Iterator[_Record]:
        copy = self._copy
        line = ""
        for raw in text.split("\n")[: -1 if text.endswith("\n") else None]:
            # A backslash before the end of a line stands for that sign.
            line += raw
            if _ends_in_escape(line):
                line += "\n"
                continue
            record, line = line.removesuffix("\r"), ""
            number = self._line
            self._line += 1 + record.count("\n")
            if record == "\\.":
                self._over = True
                return
            values = _split(record, copy.delimiter)
            yield _Record(
                number, [None if value == copy.null else _plain(value, number) for value in values]
            )

    def _csv(self, text: str) -> Iterator[_Record]:
        copy = self._copy
        at, size = 0, len(text)
        while at < size:
            number = self._line
            values: list[str | None] = []
            while True:
                value, was_quoted, at = self._field(text, at, number)
                is_null = value == copy.null and not was_quoted
                values.append(None if is_null else value)
                if at >= size or text[at] != copy.delimiter:
                    break
                at += 1
            if text[at : at + 1] == "\r":
                at += 1
            if text[at : at + 1] == "\n":
                at += 1
            self._line += 1
            if values == ["\\."]:
                self._over = True
                return
            yield _Record(number, values)

    def _field(self, text: str, at: int, line: int) -> tuple[str, bool, int]:
        """A value from a place on, whether it had quotes, and where it ends."""
        copy = self._copy
        parts: list[str] = []
        was_quoted = within = False
        while at < len(text):
            sign = text[at]
            if within:
                after = text[at + 1 : at + 2]
                if sign == copy.escape and after in (copy.escape, copy.quote) and after:
                    parts.append(after)
                    at += 2
                    continue
                if sign == copy.quote:
                    within = False
                else:
                    self._line += sign == "\n"
                    parts.append(sign)
            elif sign == copy.quote:
                within = was_quoted = True
            elif sign == copy.delimiter or sign in "\r\n":
                break
            else:
                parts.append(sign)
            at += 1
        if within:
            raise PostgresError(
                "22P04",
                "unterminated CSV quoted field",
                where=f"COPY {copy.table}, line {line}",
            )
        return "".join(parts), was_quoted, at


def _decoded(piece: bytes, line: int) -> str:
    try:
        text = piece.decode()
    except UnicodeDecodeError as error:
        at = line + piece.count(b"\n", 0, error.start)
        raise PostgresError(
            "22021",
            f'invalid byte sequence for encoding "UTF8": 0x{piece[error.start]:02x}',
            where=f"COPY, line {at}",
        ) from None
    if "\0" in text:
        at = line + text.count("\n", 0, text.index("\0"))
        raise PostgresError(
            "22021", 'invalid byte sequence for encoding "UTF8": 0x00', where=f"COPY, line {at}"
        )
    return text


def _ends_in_escape(line: str | bytearray) -> bool:
    backslash = "\\" if isinstance(line, str) else b"\\"
    return (len(line) - len(line.rstrip(backslash))) % 2 == 1  # type: ignore[arg-type]


def _split(record: str, delimiter: str) -> list[str]:
    """The values of a line; a delimiter after a backslash is part of one.

    >>> _split("a|b\\\\|c", "|")
    ['a', 'b\\\\|c']
    """
    if "\\" not in record:
        return record.split(delimiter)
    values = [""]
    for part in record.split(delimiter):
        if values[-1] and _ends_in_escape(values[-1]):
            values[-1] += delimiter + part
        else:
            values.append(part)
    return values[1:]


def _plain(value: str, line: int = 0) -> str:
    """A value without its backslashes.

    >>> _plain("a\\\\tb\\\\x41\\\\101\\\\\\\\") == "a\\tbAA\\\\"
    True
    """
    if "\\" not in value:
        return value

    def sign(found: re.Match[bytes]) -> bytes:
        word = found.group(1)
        if word[:1] in b"01234567":
            return bytes([int(word, 8) & 0xFF])
        if word[:1] == b"x" and len(word) > 1:
            return bytes([int(word[1:], 16)])
        return _SIGNS.get(word, word)

    # Signs by their numbers are bytes of UTF-8.
    return _decoded(_ESCAPE.sub(sign, value.encode()), line)
