"""Statistics from Parquet footers: at once, without reading data.

Rows, nulls and ranges are what the writer says. Distinct counts are estimates: no more than the
range of a type allows, and about as many as the dictionaries of the row groups have entries.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from queryard.sql.catalog.formats import hive_values
from queryard.sql.catalog.model import Column
from queryard.sql.catalog.parquet import ParquetTable

from .clustering import clustered_by_ranges
from .model import ColumnStatistics, Histogram, TableStatistics
from .positions import TEXT_WIDTH, fixed_width_bytes, most_distinct, position

KEY_LIKE = 0.3
"""From this share of different values in a row group on, others are expected to bring new ones."""

KEY = 0.8
"""From this share on all values are taken to differ: sizes of dictionaries are not that exact."""


BUCKETS = 64

LONGEST_REFERENCE_BYTES = 3.5
"""What a value takes at most, where it is the number of an entry in a dictionary."""


@dataclass(slots=True)
class _Chunks:
    """What the footers say of one column, over all its row groups."""

    nulls: int = 0
    values: int = 0
    uncompressed_bytes: int = 0
    ranges: list[tuple[Any, Any]] = field(default_factory=list)
    rows_in_ranges: list[int] = field(default_factory=list)
    range_known: bool = True
    nulls_known: bool = True
    dictionaries: list[tuple[float, int]] = field(default_factory=list)
    """For each row group: bytes of its dictionary (0 without one), rows."""

    def add(self, chunk: Any) -> None:
        self.values += chunk.num_values
        self.uncompressed_bytes += chunk.total_uncompressed_size
        dictionary = 0.0
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            stored = max(0, chunk.data_page_offset - chunk.dictionary_page_offset)
            packing = chunk.total_uncompressed_size / max(1, chunk.total_compressed_size)
            dictionary = stored * packing
            # References are short; longer values were written plainly, the dictionary being full.
            rest = chunk.total_uncompressed_size - dictionary
            if rest > LONGEST_REFERENCE_BYTES * chunk.num_values:
                dictionary = 0.0
        if chunk.num_values:
            self.dictionaries.append((dictionary, chunk.num_values))
        found = chunk.statistics
        if found is None:
            self.range_known = self.nulls_known = False
            return
        if found.has_null_count:
            self.nulls += found.null_count
        else:
            self.nulls_known = False
        low, high = _range(found)
        if low is not None and high is not None:
            self.ranges.append((low, high))
            self.rows_in_ranges.append(chunk.num_values)
        elif not (found.has_null_count and found.null_count == chunk.num_values):
            self.range_known = False


def footer_statistics(table: ParquetTable) -> TableStatistics:
    """What the footers of a Parquet table tell."""
    chunks: dict[str, _Chunks] = {}
    for footer in table.footers:
        paths = [
            footer.metadata.schema.column(i).path.lower()
            for i in range(footer.metadata.num_columns)
        ]
        for number in range(footer.metadata.num_row_groups):
            group = footer.metadata.row_group(number)
            for place, path in enumerate(paths):
                chunks.setdefault(path, _Chunks()).add(group.column(place))
    for path in _converted(table):
        # What is written there is of another type than the values of the table.
        chunks.setdefault(path, _Chunks()).range_known = False
    rows = table.rows or 0.0
    hive = {key.lower() for key in table.hive_columns}
    columns = {}
    for column in table.columns:
        if column.name.lower() in hive:
            columns[column.name] = _of_folders(column, [file.uri for file in table.files])
        elif column.name == table.filename_column:
            columns[column.name] = _of_files(table)
        else:
            found = chunks.get(column.name.lower())
            columns[column.name] = _of_chunks(column, found, rows)
    return TableStatistics(rows, table.bytes, columns, "footers")


def _converted(table: ParquetTable) -> set[str]:
    """Columns, in lower case, that some file of a table read by name has with another type."""
    if not table.by_name:
        return set()
    types = {column.name.lower(): column.type for column in table.columns}
    return {
        column.name.lower()
        for layout in {table.layout(file.uri) for file in table.files}
        for column in layout
        if types.get(column.name.lower()) != column.type
    }


def _of_files(table: ParquetTable) -> ColumnStatistics:
    """The column with the paths of the files."""
    uris = sorted(file.uri for file in table.files)
    width = sum(len(uri) for uri in uris) / len(uris)
    return ColumnStatistics(0.0, uris[0], uris[-1], float(len(uris)), width, None, True)


def _of_chunks(column: Column, chunks: _Chunks | None, rows: float) -> ColumnStatistics:
    if chunks is None or not chunks.values:  # nested, or no rows at all
        width = fixed_width_bytes(column.type) or TEXT_WIDTH
        return ColumnStatistics(0.0, None, None, rows, width)
    low, high = _whole_range(chunks)
    # A file of a table read by name that does not have the column has no values of it.
    absent = max(0.0, rows - chunks.values)
    known = chunks.nulls if chunks.nulls_known else 0
    nulls = min(1.0, (known + absent) / max(rows, chunks.values))
    present = rows * (1 - nulls)
    width = fixed_width_bytes(column.type) or _text_width(chunks, low, high)
    clustered = clustered_by_ranges(chunks.ranges) if chunks.range_known else None
    distinct = min(
        present,
        most_distinct(column.type, low, high),
        _by_dictionaries(chunks, width + (0 if fixed_width_bytes(column.type) else 4), clustered),
    )
    distinct = max(distinct, min(1.0, present))
    histogram = _by_groups(chunks, distinct) if clustered else None
    return ColumnStatistics(nulls, low, high, distinct, width, histogram, clustered)


def _by_groups(chunks: _Chunks, distinct: float) -> Histogram | None:
    """The histogram of a column in whose order the rows lie: those of a group between its ends."""
    ends = [(position(low), position(high)) for low, high in chunks.ranges]
    places = [(low, high) for low, high in ends if low is not None and high is not None]
    if not places or len(places) < len(ends):
        return None
    first, last = min(low for low, _ in places), max(high for _, high in places)
    width = (last - first) / BUCKETS
    if not 0 < width < math.inf:
        return None
    counts = [0.0] * BUCKETS
    for (low, high), rows in zip(places, chunks.rows_in_ranges, strict=True):
        begin = min(int((low - first) / width), BUCKETS - 1)
        end = min(int((high - first) / width), BUCKETS - 1)
        span = max(high - low, width * 1e-9)
        for bucket in range(begin, end + 1):
            left, right = first + bucket * width, first + (bucket + 1) * width
            inside = max(min(high, right) - max(low, left), 0.0) / span if end > begin else 1.0
            counts[bucket] += rows * inside
    total = sum(counts) or 1.0
    return Histogram(first, last, tuple(counts), tuple(distinct * c / total for c in counts))


def _by_dictionaries(chunks: _Chunks, entry_bytes: float, clustered: bool | None) -> float:
    """About as many values as the fullest dictionary; more, if row groups have their own."""
    most = share = total = 0.0
    for dictionary_bytes, rows in chunks.dictionaries:
        entries = min(rows, dictionary_bytes / entry_bytes) if dictionary_bytes else rows
        most, share = max(most, entries), max(share, entries / rows)
        total += entries
    if share >= KEY:
        return chunks.values
    if clustered:
        return math.ceil(total)
    return chunks.values * share if share >= KEY_LIKE else math.ceil(most)


def _text_width(chunks: _Chunks, low: object, high: object) -> float:
    stored = chunks.uncompressed_bytes / chunks.values
    if stored > 4:  # without dictionary: a length of four bytes, and the text
        return max(1.0, stored - 4)
    samples = [len(text.encode()) for text in (low, high) if isinstance(text, str)]
    return sum(samples) / len(samples) if samples else TEXT_WIDTH


def _whole_range(chunks: _Chunks) -> tuple[Any, Any]:
    if not chunks.range_known or not chunks.ranges:
        return None, None
    try:
        return min(low for low, _ in chunks.ranges), max(high for _, high in chunks.ranges)
    except TypeError:
        return None, None


def _range(found: Any) -> tuple[Any, Any]:
    """Least and greatest value of a chunk, as far as they are of a kind that can be used."""
    if not found.has_min_max:
        return None, None
    try:
        low, high = found.min, found.max
    except (NotImplementedError, ValueError, OverflowError):  # types pyarrow has no value for
        return None, None
    low, high = _ordinary(low), _ordinary(high)
    unusable = any(isinstance(v, bytes) or (isinstance(v, float) and v != v) for v in (low, high))
    return (None, None) if unusable else (low, high)


def _ordinary(value: Any) -> Any:
    """Times of nanoseconds, which come as a kind of their own, in microseconds."""
    convert = getattr(value, "to_pydatetime", None)
    return value if convert is None else convert(warn=False)


def _of_folders(column: Column, uris: Iterable[str]) -> ColumnStatistics:
    """A partition column: its values are the names of folders."""
    uris = list(uris)
    values = hive_values(uris, column.name)
    present = [value for value in values if value is not None]
    try:
        typed = [_typed(value, column.type) for value in present]
    except ValueError:  # DuckDB knows more ways to write a value
        typed = []
    low, high = (min(typed), max(typed)) if typed else (None, None)
    null_files = sum(1 for uri in uris if hive_values([uri], column.name) == {None})
    width = fixed_width_bytes(column.type) or TEXT_WIDTH
    return ColumnStatistics(
        null_files / len(uris), low, high, float(len(present)), width, None, True
    )


def _typed(value: str, type_: str) -> Any:
    if type_ == "BIGINT":
        return int(value)
    if type_ == "DATE":
        return datetime.date.fromisoformat(value)
    if type_ == "TIMESTAMP":
        return datetime.datetime.fromisoformat(value)
    if type_ == "VARCHAR":
        return value
    raise ValueError(f"values of type {type_} are not read here")
