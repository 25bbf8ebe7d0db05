"""Rows that a client brings by COPY, kept in a file until all are there, and then inserted at once.

One statement inserts them, so that all of them are there or none.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from queryard.engine.instances.instance import Instance
from queryard.sql.catalog.quoting import identifier, literal

from .copy_binary import CopyBinary
from .copy_lines import CopyLines
from .copy_options import CopyIn
from .copy_values import cell, needs_reading, read
from .errors import PostgresError
from .types import wire_type

# Rows are written once they take so many bytes.
GROUP_BYTES = 8 << 20
# The memory for a look at rows that could not be converted.
LOOK_BYTES = 128 << 20


class RowsIn:
    """The rows of one COPY; one thread at a time."""

    def __init__(
        self, copy: CopyIn, names: list[str], kinds: list[str], folder: Path, most_bytes: int
    ) -> None:
        """`kinds` are DuckDB's types. What is kept in `folder` takes at most so many bytes."""
        self._copy = copy
        self._names = names
        self._kinds = kinds
        self._folder = folder
        self._most_bytes = most_bytes
        self._reader: CopyLines | CopyBinary = (
            CopyBinary(copy.table, names, [wire_type(kind).oid for kind in kinds])
            if copy.format == "binary"
            else CopyLines(copy, names)
        )
        columns = [f"c{place}" for place in range(len(names))]
        self._schema = pa.schema(
            [("line", pa.int64()), *((column, pa.string()) for column in columns)]
        )
        self.path = folder / "rows.parquet"
        self._writer = pq.ParquetWriter(self.path, self._schema, compression="lz4")
        self._waiting: list[Any] = []
        self._waiting_bytes = 0
        self._came_bytes = 0
        self.rows = 0

    def feed(self, data: bytes) -> None:
        self._came_bytes += len(data)
        if self._came_bytes > self._most_bytes:
            raise PostgresError(
                "54000",
                f"COPY {self._copy.table}: more than {self._most_bytes:,} bytes came",
                hint="send it in parts, or raise `copy` in [service.limits]",
            )
        self._take(self._reader.feed(data))

    def end(self) -> None:
        """All rows came."""
        self._take(self._reader.end())
        self._write()
        self._writer.close()

    def _take(self, batches: Iterable[Any]) -> None:
        for batch in batches:
            made = self._made_readable(batch)
            self.rows += made.num_rows
            self._waiting.append(made)
            self._waiting_bytes += made.nbytes
            if self._waiting_bytes > GROUP_BYTES:
                self._write()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting, self._schema))
            self._waiting, self._waiting_bytes = [], 0

    def _made_readable(self, batch: Any) -> Any:
        """Texts that DuckDB does not read are made such that it does."""
        if self._copy.format == "binary":
            return batch
        columns = list(batch.columns)
        for place, kind in enumerate(self._kinds):
            if needs_reading(kind):
                columns[place + 1] = pa.array(self._read(batch, place, kind), pa.string())
        return pa.record_batch(columns, schema=self._schema)

    def _read(self, batch: Any, place: int, kind: str) -> list[str | None]:
        found = []
        for number, text in enumerate(batch.column(place + 1).to_pylist()):
            try:
                found.append(read(text, kind))
            except (ValueError, PostgresError) as error:
                where = self._where(batch.column(0)[number].as_py(), place, text)
                if isinstance(error, PostgresError):
                    error.where = where
                    raise
                words = f"invalid input for type {kind}: {text[:80]!r}"
                raise PostgresError("22P02", words, where=where) from None
        return found

    def statement(self) -> str:
        """What inserts the rows."""
        names = ", ".join(map(identifier, self._names))
        cells = [cell(f"c{place}", kind) for place, kind in enumerate(self._kinds)]
        return (
            f"INSERT INTO {self._copy.table} ({names}) "
            f"SELECT {', '.join(cells)} FROM read_parquet({literal(str(self.path))})"
        )

    def culprit(self) -> str:
        """The first value that cannot be converted: its line and its column; "" if it is none."""
        checks = [
            (place, f"c{place} IS NOT NULL AND {cell(f'c{place}', kind, 'TRY_CAST')} IS NULL")
            for place, kind in enumerate(self._kinds)
            if kind != "VARCHAR" and not needs_reading(kind)
        ]
        first: tuple[int, int, str] | None = None
        instance = Instance(1, LOOK_BYTES, self._folder)
        try:
            for place, condition in checks:
                rows = instance.control.rows(
                    f"SELECT line, c{place} AS text FROM read_parquet({literal(str(self.path))}) "
                    f"WHERE {condition} ORDER BY line LIMIT 1"
                )
                if rows and (first is None or rows[0]["line"] < first[0]):
                    first = rows[0]["line"], place, rows[0]["text"]
        finally:
            instance.close()
        return "" if first is None else self._where(*first)

    def _where(self, line: int, place: int, text: str) -> str:
        return f'COPY {self._copy.table}, line {line}, column {self._names[place]}: "{text[:100]}"'

    def close(self) -> None:
        """Remove what was kept."""
        self._writer.close()
        shutil.rmtree(self._folder, ignore_errors=True)
