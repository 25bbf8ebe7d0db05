"""Tables of Parquet files, which are split by row groups.

A split is a range of rows that begins and ends with a row group: DuckDB then reads those groups
and no others. Each split parses the footer of its file (about 10 ms for 260 row groups; an instance
with `parquet_metadata_cache` set does so once), so splits should not be smaller than a task needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .file_table import FileTable, packed
from .locations import filesystem, scheme_of
from .model import CatalogError, Column, DataFile, SourceSplit, checked_target
from .quoting import call

ROW_NUMBER = "file_row_number"
"""DuckDB's name for the position of a row; where a table has such a column, files stay whole."""


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Where the rows of a group are in their file; its bytes are its share of the file."""

    first_row: int
    rows: int
    bytes: float


@dataclass(frozen=True, slots=True)
class Footer:
    """A file and what its end says of it."""

    file: DataFile
    metadata: Any  # pyarrow.parquet.FileMetaData
    groups: tuple[RowGroup, ...]

    @property
    def rows(self) -> int:
        return int(self.metadata.num_rows)


class ParquetTable(FileTable):
    """Parquet files with the same columns. All footers are read when the table is opened."""

    kind = "parquet"
    function = "read_parquet"

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._opened[1]

    @property
    def rows(self) -> float | None:
        return float(sum(footer.rows for footer in self.footers))

    @property
    def footers(self) -> tuple[Footer, ...]:
        """One per file, in the order of the files."""
        return self._opened[0]

    def splits(self, target_bytes: float) -> tuple[SourceSplit, ...]:
        """Ranges of row groups of large files, and small files together."""
        target = checked_target(target_bytes)
        pieces: list[list[Footer] | tuple[Footer, Sequence[RowGroup]]] = []
        by_uri = {footer.file.uri: footer for footer in self.footers}
        for large, run in itertools.groupby(
            self.footers, lambda footer: self.can_cut and footer.file.bytes > target
        ):
            if large:
                pieces.extend((footer, part) for footer in run for part in _cut(footer, target))
            else:
                packs = packed([footer.file for footer in run], target)
                pieces.extend([by_uri[file.uri] for file in pack] for pack in packs)
        return self._numbered(pieces)

    def row_group_splits(self) -> tuple[SourceSplit, ...]:
        """One per row group. Empty groups are left out, unless there is nothing else."""
        if not self.can_cut:
            return self._numbered([[footer] for footer in self.footers])
        pieces = [
            (footer, [group]) for footer in self.footers for group in footer.groups if group.rows
        ]
        return self._numbered(pieces or [list(self.footers)])

    @property
    def can_cut(self) -> bool:
        """Whether parts of a file can be read by the positions of their rows."""
        return all(column.name.lower() != ROW_NUMBER for column in self.columns)

    def _numbered(
        self, pieces: Sequence[list[Footer] | tuple[Footer, Sequence[RowGroup]]]
    ) -> tuple[SourceSplit, ...]:
        splits = []
        for index, piece in enumerate(pieces):
            if isinstance(piece, list):
                rows = float(sum(footer.rows for footer in piece))
                splits.append(self._whole_files(index, [footer.file for footer in piece], rows))
            else:
                splits.append(self._row_range(index, *piece))
        return tuple(splits)

    def _row_range(self, index: int, footer: Footer, groups: Sequence[RowGroup]) -> SourceSplit:
        if len(groups) == len(footer.groups):
            return self._whole_files(index, [footer.file], float(footer.rows))
        first, last = groups[0], groups[-1]
        end = last.first_row + last.rows - 1
        relation = self.rows_between(footer, first.first_row, end)
        rows, size = sum(group.rows for group in groups), sum(group.bytes for group in groups)
        places = self.places_of([footer.file.uri])
        return SourceSplit(self.key, index, size, float(rows), relation, places=places)

    def rows_between(self, footer: Footer, first: int, last: int) -> str:
        """The rows of a file from one position to another, as a relation of the table's columns."""
        return self._rows_of([footer.file.uri], f"{ROW_NUMBER} BETWEEN {first} AND {last}")

    def whole_file(self, uri: str) -> str:
        """The rows of a file as a relation of the table's columns."""
        return self._rows_of([uri])

    def reading(self, uris: Sequence[str]) -> str:
        """Some of the files as DuckDB reads them, with the names it has for the places of rows.

        Not for files that are read by name: those have columns of their own.
        """
        return self._read(uris)

    @property
    def _reading_options(self) -> Mapping[str, object]:
        return {**self._hive_options, **self._filename_options, **self._given}

    @property
    def _given(self) -> Mapping[str, object]:
        return {name: self.options[name] for name in ("binary_as_string",) if name in self.options}

    @property
    def relation(self) -> str:
        by_name = {"union_by_name": True} if self.by_name else {}
        uris = (file.uri for file in self._files)
        return call(self.function, uris, {**self._reading_options, **by_name})

    def layout(self, uri: str) -> tuple[Column, ...]:
        with self._opening:
            return self._layouts[uri]

    @property
    def _opened(self) -> tuple[tuple[Footer, ...], tuple[Column, ...]]:
        with self._opening:
            return self._contents

    @cached_property
    def _contents(self) -> tuple[tuple[Footer, ...], tuple[Column, ...]]:
        footers = tuple(_read_footer(file) for file in self._files)
        if self.by_name:
            uris = [file.uri for file in self._files]
            return footers, self._metadata.columns(self.relation, uris, f"table {self.key}")
        self._check_drift(footers)
        # Other files have the same columns as the first, but a partition column needs all folders.
        source = call(self.function, [self._files[0].uri], self._reading_options)
        uri = self._files[0].uri
        return footers, self._metadata.columns(source, [uri], uri)

    @cached_property
    def _layouts(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of every file; DuckDB is asked once per different schema."""
        seen: list[tuple[Any, tuple[Column, ...]]] = []
        found = {}
        for footer in self.footers:
            schema, uri = footer.metadata.schema, footer.file.uri
            known = next((columns for other, columns in seen if schema.equals(other)), None)
            if known is None:
                known = tuple(self._duckdb_columns(uri).values())
                seen.append((schema, known))
            found[uri] = known
        return found

    def _check_drift(self, footers: Sequence[Footer]) -> None:
        first = footers[0]
        suspects = [f for f in footers[1:] if not f.metadata.schema.equals(first.metadata.schema)]
        if not suspects:
            return
        # Nullability, order and encodings may differ; what DuckDB makes of the columns may not.
        expected = self._duckdb_columns(first.file.uri)
        for footer in suspects:
            self._compare(expected, self._duckdb_columns(footer.file.uri), footer.file.uri)

    def _duckdb_columns(self, uri: str) -> dict[str, Column]:
        source = call(self.function, [uri], {"hive_partitioning": False, **self._given})
        columns = self._metadata.columns(source, [uri], uri)
        return {column.name.lower(): column for column in columns}

    def _compare(self, expected: dict[str, Column], found: dict[str, Column], uri: str) -> None:
        first = self._files[0].uri
        remedy = (
            f"say union_by_name = true for the table {self.key} in a catalog file (or in "
            "`tables=`), bring its files to the same columns, or name separate tables"
        )
        for name, column in expected.items():
            if name not in found:
                raise CatalogError(
                    f"{uri}: has no column {column.name!r}, which {first} has; {remedy}"
                )
            if found[name].type != column.type:
                raise CatalogError(
                    f"{uri}: the column {column.name!r} is {found[name].type}, "
                    f"but {column.type} in {first}; {remedy}"
                )
        for name, column in found.items():
            if name not in expected:
                raise CatalogError(
                    f"{uri}: has a column {column.name!r}, which {first} has not; {remedy}"
                )


def _read_footer(file: DataFile) -> Footer:
    try:
        if scheme := scheme_of(file.uri):
            with filesystem(scheme).open(file.uri, "rb") as stream:
                metadata = pq.read_metadata(stream)
        else:
            metadata = pq.read_metadata(file.uri)
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())
        raise CatalogError(f"{file.uri}: cannot be read as Parquet ({reason})") from error
    return Footer(file, metadata, tuple(_row_groups(file, metadata)))


def _row_groups(file: DataFile, metadata: Any) -> Iterator[RowGroup]:
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    total = sum(group.total_byte_size for group in groups)
    first_row = 0
    for group in groups:
        share = group.total_byte_size / total if total else 1 / len(groups)
        yield RowGroup(first_row, group.num_rows, file.bytes * share)
        first_row += group.num_rows


def _cut(footer: Footer, target_bytes: float) -> Iterator[Sequence[RowGroup]]:
    """Ranges of row groups of about equal size, none empty of rows (unless the file is)."""
    groups = [group for group in footer.groups if group.rows]
    if not groups:
        yield footer.groups
        return
    pieces = max(1, round(footer.file.bytes / target_bytes))
    size = sum(group.bytes for group in groups) / pieces
    piece: list[RowGroup] = []
    done = 0.0
    number = 0
    for group in groups:
        middle = done + group.bytes / 2
        if piece and int(middle // size) > number:
            yield piece
            piece = []
        number = int(middle // size)
        piece.append(group)
        done += group.bytes
    yield piece
