"""Rows into files and pipes, as they come: never more than a few batches in memory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, Protocol, get_args

import pyarrow as pa

from queryard.core.errors import QueryardError, unknown_name
from queryard.results.values import written_values

from .row_text import csv_header, csv_rows, json_lines

Format = Literal["table", "csv", "tsv", "json", "jsonl", "parquet", "arrow"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {
    ".txt": "table",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Endings behind those of texts."""

DELIMITERS = {"csv": ",", "tsv": "\t"}
BINARY = ("parquet", "arrow")
# Readers of these find columns by their names.
BY_NAME = ("json", "jsonl", "parquet", "arrow")
# Parquet is read best in row groups of about this many rows.
GROUP_ROWS = 122_880
GROUP_BYTES = 128 << 20
_INTERVAL = pa.month_day_nano_interval()


class Rows(Protocol):
    """What is written: an answer."""

    @property
    def schema(self) -> Any: ...
    @property
    def types(self) -> list[str]: ...


def choose_format(wanted: str | None, output: Path | None) -> Format:
    """What was asked for, else what the ending of the file says, else what the reader can use."""
    if wanted is not None:
        if wanted not in FORMATS:
            raise QueryardError(f"--format: {unknown_name('format', wanted, FORMATS)}")
        return wanted
    if output is not None:
        packed = output.suffix.lower() in COMPRESSIONS
        ending = (output.with_suffix("") if packed else output).suffix.lower()
        if ending not in ENDINGS or (packed and ENDINGS[ending] in BINARY):
            raise QueryardError(
                f"-o {output}: the ending does not tell the format; add --format "
                f"({', '.join(FORMATS)}), or use {', '.join(ENDINGS)}, for text also with "
                f"{' or '.join(COMPRESSIONS)} behind it"
            )
        return ENDINGS[ending]
    return "table" if sys.stdout.isatty() else "csv"


@contextmanager
def opened(output: Path | None, form: Format) -> Iterator[IO[bytes]]:
    """The file, which appears when it is whole, or the standard output; text may be compressed."""
    ending = "" if output is None else output.suffix.lower()
    compression = COMPRESSIONS.get(ending)
    if compression is not None and form in BINARY:
        raise QueryardError(
            f"-o {output}: {form} files are not compressed as a whole; leave out {ending}"
        )
    with _opened(output, form) as file:
        if compression is None:
            yield file
        else:
            with pa.CompressedOutputStream(file, compression) as packed:
                yield packed


@contextmanager
def _opened(output: Path | None, form: Format) -> Iterator[IO[bytes]]:
    if output is None:
        if form in BINARY and sys.stdout.isatty():
            raise QueryardError(
                f"{form} is not for eyes: name a file (-o rows.{form}) or redirect the output"
            )
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    folder = output.absolute().parent
    if not folder.is_dir():
        raise QueryardError(f"-o {output}: there is no folder {str(folder)!r}; make it first")
    if output.is_dir():
        raise QueryardError(f"-o {output}: is a folder; name a file in it")
    if output.exists() and not output.is_file():  # a pipe, a device
        with output.open("wb") as file:
            yield file
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{output.name}-", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(temporary, _mode_of(output))
        os.replace(temporary, output)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode_of(output: Path) -> int:
    """The rights of a file as anybody else would have made it."""
    if output.exists():
        return output.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def write_rows(rows: Rows, batches: Iterable[Any], form: Format, file: IO[bytes]) -> int:
    """Write all batches; the number of rows."""
    check_columns(rows.schema, form)
    counted = _Counted(batches)
    match form:
        case "csv" | "tsv":
            file.write(csv_header(rows.schema.names, DELIMITERS[form]))
            for batch in counted:
                file.write(csv_rows(batch, rows.types, DELIMITERS[form]))
        case "json":
            before = b"[\n"
            for batch in counted:
                if lines := json_lines(batch, rows.types):
                    # No text has an end of line in it: JSON writes those as two signs.
                    file.write(before + lines[:-1].replace(b"}\n", b"},\n"))
                    before = b",\n"
            file.write(b"[]\n" if before == b"[\n" else b"\n]\n")
        case "jsonl":
            for batch in counted:
                file.write(json_lines(batch, rows.types))
        case "parquet":
            _write_parquet(rows.schema, counted, file)
        case "arrow":
            _write_arrow(rows.schema, counted, file)
        case "table":
            raise AssertionError("tables are not written in batches")
    return counted.rows


def check_columns(schema: Any, form: Format) -> None:
    """Complain about columns that a format cannot hold, before anything is computed for it."""
    if form in BY_NAME:
        for name, count in Counter(schema.names).items():
            if count > 1:
                raise QueryardError(
                    f"{count} columns are called {name!r}, and readers of {form} would find only "
                    f"one; give each a name of its own (SELECT … AS {name}_1), or write csv"
                )
    if form == "parquet":
        for field in schema:
            if field.type != _INTERVAL and _holds_interval(field.type):
                raise QueryardError(
                    f"column {field.name!r} holds INTERVALs inside of {field.type}, which cannot "
                    "be written to Parquet; cast it to VARCHAR, or write arrow"
                )


def intervals_as_text(schema: Any, form: Format) -> list[str]:
    """The columns that are written as text because the format has no such values."""
    return [f.name for f in schema if form == "parquet" and f.type == _INTERVAL]


def _holds_interval(kind: Any) -> bool:
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return kind == _INTERVAL or any(map(_holds_interval, inner))


class _Counted:
    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches = batches
        self.rows = 0

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            self.rows += batch.num_rows
            yield batch


def _write_parquet(schema: Any, batches: Iterable[Any], file: IO[bytes]) -> None:
    import pyarrow.parquet as pq

    kept = pa.schema([field.with_type(_parquet_type(field.type)) for field in schema])
    with pq.ParquetWriter(file, kept, compression="zstd") as writer:
        for group in _groups(batches):
            table = pa.Table.from_batches(group, schema)
            if kept != schema:
                table = _with_intervals_as_text(table, kept)
            writer.write_table(table, row_group_size=GROUP_ROWS)


def _parquet_type(kind: Any) -> Any:
    """Arrow writes no intervals to Parquet; they become DuckDB's text, which can be cast back."""
    return pa.string() if kind == _INTERVAL else kind


def _with_intervals_as_text(table: Any, kept: Any) -> Any:
    columns = []
    for field, column in zip(kept, table.columns, strict=True):
        if column.type != field.type:
            column = pa.array(written_values(column, "INTERVAL"), pa.string())
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=kept)


def _groups(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Small batches together, so that row groups are not tiny."""
    group: list[Any] = []
    rows = size = 0
    for batch in batches:
        group.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


def _write_arrow(schema: Any, batches: Iterable[Any], file: IO[bytes]) -> None:
    """A file if one can go back in it, else a stream; readers tell them apart."""
    make = pa.ipc.new_file if file.seekable() and file is not _stdout() else pa.ipc.new_stream
    with make(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _stdout() -> IO[bytes] | None:
    return getattr(sys.stdout, "buffer", None)
