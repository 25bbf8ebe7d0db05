"""Brings rows of many map tasks together by partition, for the reduce tasks of a job."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from .store import Store

_SLAB_ROWS = 1 << 20  # sorted at once: fits caches better, and text stays below 2 GB


class Exchange:
    """What the map tasks of one job send to its reduce tasks.

    A map task puts a table once; the column `part` says where each row goes. The rows are sorted by
    partition, so that a reduce task reads slices and nothing is copied again.
    """

    def __init__(self, job: str, partitions: int, part: str, store: Store) -> None:
        self._job = job
        self._partitions = partitions
        self._part = part
        self._store = store

    def put(self, task: int, table: pa.Table) -> None:
        """Keep what a map task sends, instead of what it sent before."""
        key = ("sent", self._job, task)
        if self._partitions == 1:
            self._store.put(key, table.schema, table.to_batches())
            return
        place = table.schema.get_field_index(self._part)
        schema = table.schema.remove(place)
        sent: list[list[pa.RecordBatch]] = [[] for _ in range(self._partitions)]
        for start in range(0, table.num_rows, _SLAB_ROWS):
            slab = table.slice(start, _SLAB_ROWS).combine_chunks()
            for partition, rows in _by_partition(slab, place, self._partitions):
                sent[partition] += rows.to_batches()
        marks = (0, *itertools.accumulate(len(batches) for batches in sent))
        self._store.put(key, schema, [batch for batches in sent for batch in batches], marks)

    def get(self, partition: int, tasks: range) -> pa.Table:
        """All rows that some of the map tasks (those of one side) sent to a partition."""
        found: list[pa.RecordBatch] = []
        schema: pa.Schema | None = None
        for task in tasks:
            held = self._store.get(("sent", self._job, task))
            schema = held.schema
            if self._partitions == 1:
                found += held.batches
            else:
                found += held.batches[held.marks[partition] : held.marks[partition + 1]]
        if schema is None:
            raise ValueError(f"job {self._job!r}: no map tasks were named to read from")
        return pa.Table.from_batches(found, schema)


def _by_partition(slab: pa.Table, place: int, partitions: int) -> list[tuple[int, pa.Table]]:
    """The rows of a table with one chunk, by the number in the column at `place`."""
    numbers = slab.column(place).to_numpy()
    order = np.argsort(numbers, kind="stable")
    rows = slab.remove_column(place).take(pa.array(order))
    bounds = np.searchsorted(numbers[order], np.arange(partitions + 1))
    return [
        (number, rows.slice(int(first), int(last - first)))
        for number, (first, last) in enumerate(itertools.pairwise(bounds))
        if last > first
    ]
