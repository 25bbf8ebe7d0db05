"""Sorts the rows of a map task by the partition they go to, slab by slab."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from .exchange import Partitions, Piece

_SLAB_ROWS = 1 << 20  # sorted at once: fits caches better, and text stays below 2 GB
SLAB_BYTES = 32 << 20


def kept_schema(schema: pa.Schema, partitions: Partitions | None) -> pa.Schema:
    """The columns that are kept of rows that may name their partition."""
    if partitions is None:
        return schema
    return schema.remove(schema.get_field_index(partitions.column))


class Slabs:
    """Buffers rows until there are enough to sort; `keep` is called with rows of one partition.

    Within each partition rows stay in their order, so that a reduce task reads slices and nothing
    is copied again.
    """

    def __init__(
        self,
        schema: pa.Schema,
        column: str,
        most_bytes: float,
        keep: Callable[[pa.RecordBatch, int], None],
    ) -> None:
        self.bytes = 0
        self._schema = schema
        self._place = schema.get_field_index(column)
        self._most_bytes = most_bytes
        self._keep = keep
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> bool:
        """Buffer rows; True if it is time to sort."""
        self._batches.append(batch)
        self._rows += batch.num_rows
        self.bytes += batch.nbytes
        return self._rows >= _SLAB_ROWS or self.bytes >= self._most_bytes

    def sort(self) -> None:
        """Sort all buffered rows and pass them to `keep`."""
        slab = pa.Table.from_batches(self._batches, self._schema)
        self._batches.clear()
        if self._rows:
            for part, rows in _by_partition(slab, self._place):
                self._keep(rows, part)
        self.clear()

    def clear(self) -> None:
        """Drop the buffered rows."""
        self._batches.clear()
        self._rows = self.bytes = 0


def _by_partition(slab: pa.Table, place: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a table, by the number in the column at `place`."""
    numbers = pa.concat_arrays(slab.column(place).chunks)
    counts = pc.value_counts(numbers)
    found = sorted(
        zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    )
    order = pc.sort_indices(numbers)  # which is stable
    (rows,) = slab.remove_column(place).combine_chunks().take(order).to_batches()
    first = 0
    for part, count in found:
        yield part, rows.slice(first, count)
        first += count


class Tally:
    """How many rows and bytes an output has, by partition."""

    def __init__(self) -> None:
        self._counts: dict[int | None, list[int]] = {}

    def add(self, batch: pa.RecordBatch, part: int | None) -> None:
        counts = self._counts.setdefault(part, [0, 0])
        counts[0] += batch.num_rows
        counts[1] += batch.nbytes

    def pieces(self, key: str, holder: str) -> tuple[Piece, ...]:
        """One per partition that has rows; if none has, one for the columns."""
        found = (
            Piece(key, part, holder, rows, size)
            for part, (rows, size) in sorted(self._counts.items(), key=lambda item: item[0] or 0)
            if rows
        )
        return tuple(found) or (Piece(key, None, holder, 0, 0),)
