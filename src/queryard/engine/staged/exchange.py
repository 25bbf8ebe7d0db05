"""Brings rows of many map tasks together by partition, for the reduce tasks of a job."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from .store import EntryWriter, Store

_SLAB_ROWS = 1 << 20  # sorted at once: fits caches better, and text stays below 2 GB
_SLAB_BYTES = 32 << 20
_SLAB_SHARE = 1 / 16  # of the budget at most


class Exchange:
    """What the map tasks of one job send to its reduce tasks.

    The column `part` of what a map task sends says where each row goes. Rows are sorted by
    partition, slab by slab, so that a reduce task reads slices and nothing is copied again.
    """

    def __init__(self, job: str, partitions: int, part: str, store: Store) -> None:
        self._job = job
        self._partitions = partitions
        self._part = part
        self._store = store

    def open(self, task: int, schema: pa.Schema) -> EntryWriter | Sending:
        """Begin what a map task sends; it takes the place of what it sent before at `commit`."""
        key = ("sent", self._job, task)
        if self._partitions == 1:
            return self._store.open(key, schema)
        place = schema.get_field_index(self._part)
        writer = self._store.open(key, schema.remove(place))
        return Sending(self._store, writer, schema, place, self._partitions)

    def get(self, partition: int, tasks: range) -> pa.Table:
        """All rows that some of the map tasks (those of one side) sent to a partition."""
        part = None if self._partitions == 1 else partition
        held = [self._store.get(("sent", self._job, task), part) for task in tasks]
        if not held:
            raise ValueError(f"job {self._job!r}: no map tasks were named to read from")
        batches = [batch for each in held for batch in each.batches]
        return pa.Table.from_batches(batches, held[0].schema)


class Sending:
    """The rows of one map task on their way, a slab of them in hand."""

    def __init__(
        self, store: Store, writer: EntryWriter, schema: pa.Schema, place: int, partitions: int
    ) -> None:
        self._store = store
        self._writer = writer
        self._schema = schema
        self._place = place
        self._partitions = partitions
        self._most_bytes = min(_SLAB_BYTES, store.memory_bytes * _SLAB_SHARE)
        self._slab: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Send rows, each to the partition it names."""
        self._store.reserve(batch.nbytes)
        self._slab.append(batch)
        self._rows += batch.num_rows
        self._bytes += batch.nbytes
        if self._rows >= _SLAB_ROWS or self._bytes >= self._most_bytes:
            self._sort()

    def commit(self) -> None:
        """All is sent."""
        self._sort()
        self._writer.commit()

    def _sort(self) -> None:
        if self._rows:
            slab = pa.Table.from_batches(self._slab, self._schema)
            self._slab.clear()
            for partition, rows in _by_partition(slab, self._place, self._partitions):
                self._writer.append(rows, partition)
        self._let_go()

    def _let_go(self) -> None:
        self._slab.clear()
        self._store.release(self._bytes)
        self._rows = self._bytes = 0

    def __enter__(self) -> Sending:
        return self

    def __exit__(self, *exception: object) -> None:
        self._let_go()
        self._writer.__exit__(*exception)


def _by_partition(
    slab: pa.Table, place: int, partitions: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a table, by the number in the column at `place`."""
    numbers = slab.column(place).to_numpy()
    order = np.argsort(numbers, kind="stable")
    bounds = np.searchsorted(numbers[order], np.arange(partitions + 1))
    (rows,) = slab.remove_column(place).combine_chunks().take(pa.array(order)).to_batches()
    for number, (first, last) in enumerate(itertools.pairwise(bounds)):
        if last > first:
            yield number, rows.slice(int(first), int(last - first))
