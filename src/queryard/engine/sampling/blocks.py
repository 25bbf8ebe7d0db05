"""Random blocks of a table that has no shuffled copy: its files, or runs of row groups of them.

Rows of a block are neighbours, so blocks differ more from each other than random rows would. A
table of many files is read file by file, which costs no more than reading it whole; a range of rows
of a file costs some milliseconds whatever it holds, so that ranges are made large.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from queryard.sql.catalog.locations import local_file, scheme_of
from queryard.sql.catalog.model import CatalogError, Column, Table
from queryard.sql.catalog.parquet import ROW_NUMBER, Footer, ParquetTable
from queryard.sql.catalog.quoting import identifier
from queryard.sql.statistics.store import data_fingerprint

from .model import Kind, Part, part_column, rotated

MOST_BLOCKS, FEWEST_BLOCKS = 100, 20


@dataclass(frozen=True, slots=True)
class RandomBlocks:
    """A Parquet table in blocks."""

    source: ParquetTable
    fingerprint: str
    parts: tuple[Part, ...]

    @property
    def kind(self) -> Kind:
        return "random blocks"

    @property
    def table(self) -> str:
        return self.source.key

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.source.columns

    @property
    def part_column(self) -> str:
        return part_column(self.columns)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(Path(file.uri) for file in self.source.files)

    @property
    def total_rows(self) -> int:
        return sum(part.rows for part in self.parts)

    def relation(self, parts: Sequence[Part]) -> str:
        """One read for whole files, and one for each file of which only ranges are wanted."""
        whole = [part for part in parts if part.first_row is None]
        cut = sorted(
            (part for part in parts if part.first_row is not None),
            key=lambda part: (part.file, part.first_row or 0),
        )
        if self.source.by_name or not self._sees_files:
            reads = [self._one(part) for part in parts]
        else:
            reads = [self._whole(whole)] if whole else []
            reads += [self._ranges(list(run)) for _, run in groupby(cut, lambda part: part.file)]
        return f"({' UNION ALL '.join(reads)})"

    @property
    def _sees_files(self) -> bool:
        """Whether DuckDB's names for the places of rows mean those, not columns of the table."""
        return all(column.name.lower() != "file_index" for column in self.columns)

    def held(self) -> AbstractContextManager[None]:
        """The files are the user's own."""
        return nullcontext()

    def is_current(self) -> bool:
        """Files elsewhere are not looked at again."""
        files = [file for file in self.source.files if not scheme_of(file.uri)]
        try:
            return all(local_file(Path(file.uri)) == file for file in files)
        except CatalogError:
            return False

    def start(self, offset: int) -> RandomBlocks:
        return replace(self, parts=rotated(self.parts, offset))

    def _one(self, part: Part) -> str:
        """Files may have different columns: each part is brought to those of the table."""
        if part.first_row is None:
            rows = self.source.whole_file(part.file)
        else:
            footer = next(f for f in self.source.footers if f.file.uri == part.file)
            last = part.first_row + part.rows - 1
            rows = self.source.rows_between(footer, part.first_row, last)
        return f"SELECT *, {part.number} AS {identifier(self.part_column)} FROM {rows}"

    def _whole(self, parts: Sequence[Part]) -> str:
        numbers = ", ".join(str(part.number) for part in parts)
        number = f"CAST([{numbers}][CAST(file_index AS BIGINT) + 1] AS INTEGER)"
        return self._select(number, [part.file for part in parts], "")

    def _ranges(self, parts: Sequence[Part]) -> str:
        """Ranges of one file, in order."""
        between = [
            f"{ROW_NUMBER} BETWEEN {first} AND {first + part.rows - 1}"
            for part in parts
            for first in (part.first_row or 0,)
        ]
        where = " WHERE " + " OR ".join(between)
        if len(parts) == 1:
            return self._select(str(parts[0].number), [parts[0].file], where)
        cases = " ".join(
            f"WHEN {condition} THEN {part.number}"
            for condition, part in zip(between, parts, strict=True)
        )
        return self._select(f"CAST(CASE {cases} END AS INTEGER)", [parts[0].file], where)

    def _select(self, number: str, files: Sequence[str], where: str) -> str:
        names = ", ".join(identifier(column.name) for column in self.columns)
        column = identifier(self.part_column)
        return f"SELECT {names}, {number} AS {column} FROM {self.source.reading(files)}{where}"


def random_blocks(
    table: Table, seed: int = 0, most: int = MOST_BLOCKS, fewest: int = FEWEST_BLOCKS
) -> RandomBlocks | None:
    """The blocks of a table in a random circular order; None where it has too few.

    A table of at least `fewest` files is read by files, small ones one by one. Else row groups
    are put together to at most `most` blocks, each of neighbours of one file. Text, databases and
    frames have no blocks.
    """
    if not isinstance(table, ParquetTable):
        return None
    filled = [footer for footer in table.footers if footer.rows]
    if len(filled) >= fewest or not table.can_cut:
        runs: list[tuple[Footer, int | None, int, float]] = [
            (footer, None, footer.rows, float(footer.file.bytes)) for footer in filled
        ]
    else:
        runs = list(_runs(filled, most))
    if len(runs) < 2:
        return None
    parts = [
        Part(number, rows, size, footer.file.uri, first)
        for number, (footer, first, rows, size) in enumerate(runs)
    ]
    random.Random(seed).shuffle(parts)
    return RandomBlocks(table, data_fingerprint(table), tuple(parts))


def _runs(footers: Sequence[Footer], most: int) -> Iterator[tuple[Footer, int | None, int, float]]:
    """Runs of row groups of about equal numbers of rows, at most so many."""
    target = 1.0
    if sum(group.rows > 0 for footer in footers for group in footer.groups) > most:
        # Each file may end with a run that is not full.
        target = sum(footer.rows for footer in footers) / max(1, most - len(footers))
    for footer in footers:
        groups = [group for group in footer.groups if group.rows]
        first, rows, size = groups[0].first_row, 0, 0.0
        for at, group in enumerate(groups):
            rows += group.rows
            size += group.bytes
            if rows >= target or at == len(groups) - 1:
                whole = rows == footer.rows
                yield footer, None if whole else first, rows, size
                first, rows, size = group.first_row + group.rows, 0, 0.0
