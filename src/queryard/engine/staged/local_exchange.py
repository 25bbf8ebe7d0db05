"""The exchange of one process: rows in memory up to a budget, and in files beyond it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import pyarrow as pa

from .cancellation import Cancellation
from .exchange import Partitions, Piece, PieceLost, Superseded
from .partitioning import SLAB_BYTES, Slabs, Tally, kept_schema
from .store import EntryWriter, Held, MissingRows, Store

_SLAB_SHARE = 1 / 16  # of the budget at most


class LocalExchange:
    """Rows pass from task to task as they are: nothing is copied or written before it must be.

    `publish` keeps a reference only: such rows are in memory anyway, and do not count.
    """

    def __init__(
        self, memory_bytes: float, directory: str | Path | None = None, place: str = "local"
    ) -> None:
        self.store = Store(memory_bytes, directory)
        self._place = place
        self._lock = threading.Lock()
        self._attempts: dict[str, int] = {}  # of what stands, or stood until it was dropped
        self._published: dict[str, pa.Table] = {}
        self._settled_bytes = 0

    @property
    def place(self) -> str:
        return self._place

    def open(
        self, key: str, attempt: int, schema: pa.Schema, partitions: Partitions | None
    ) -> LocalWriter:
        return LocalWriter(self, key, attempt, schema, partitions)

    def publish(self, key: str, rows: pa.Table) -> Piece:
        with self._lock:
            self._published[key] = rows
        return Piece(key, None, self._place, rows.num_rows, rows.nbytes)

    def fetch(self, pieces: Sequence[Piece], cancelled: Cancellation | None = None) -> pa.Table:
        held: list[Held] = []
        lost: list[Piece] = []
        for piece in pieces:
            published = self._published.get(piece.key)
            if published is not None:
                held.append(Held(published.schema, published.to_batches()))
                continue
            try:
                held.append(self.store.get(piece.key, piece.part))
            except MissingRows:
                lost.append(piece)
        if lost:
            raise PieceLost(lost)
        batches = [batch for each in held for batch in each.batches]
        return pa.Table.from_batches(batches, held[0].schema)

    def rows_of(self, piece: Piece, attempt: int) -> pa.Table:
        """The rows of a piece as an attempt has made them; raises `PieceLost` if another stands."""
        with self._lock:  # so that no other attempt takes its place meanwhile
            if self._attempts.get(piece.key) != attempt:
                raise PieceLost([piece])
            return self.fetch([piece])

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._published.pop(key, None)
            self.store.drop(key)

    def settle(self) -> None:
        spilled_bytes = self.store.spilled_bytes
        if spilled_bytes > self._settled_bytes:
            self._settled_bytes = spilled_bytes
            # Allocators keep what was freed, and memory is short where rows spill.
            pa.default_memory_pool().release_unused()
            pa.system_memory_pool().release_unused()  # malloc's, where DuckDB's batches lie

    def close(self) -> None:
        """Forget everything and remove the files."""
        self._published.clear()
        self.store.close()

    # --- for writers --------------------------------------------------------------------------

    def stand(self, key: str, attempt: int, entry: EntryWriter) -> None:
        """Let an output that is complete stand, unless that of a later attempt does."""
        with self._lock:
            standing = self._attempts.get(key, attempt)
            if standing > attempt:
                raise Superseded(f"attempt {attempt} of {key} came after attempt {standing}")
            entry.commit()
            self._attempts[key] = attempt


class LocalWriter:
    """An output on its way into the store, with a buffer of rows that are still to be sorted."""

    def __init__(
        self,
        exchange: LocalExchange,
        key: str,
        attempt: int,
        schema: pa.Schema,
        partitions: Partitions | None,
    ) -> None:
        self._exchange = exchange
        self._store = exchange.store
        self._key = key
        self._attempt = attempt
        self._entry = self._store.open(key, kept_schema(schema, partitions))
        self._tally = Tally()
        self._slabs: Slabs | None = None
        if partitions is not None:
            most_bytes = min(SLAB_BYTES, self._store.memory_bytes * _SLAB_SHARE)
            self._slabs = Slabs(schema, partitions.column, most_bytes, self._keep)

    def append(self, batch: pa.RecordBatch) -> None:
        if self._slabs is None:
            self._keep(batch, None)
            return
        self._store.reserve(batch.nbytes)
        if self._slabs.add(batch):
            self._sort(self._slabs)

    def commit(self) -> tuple[Piece, ...]:
        if self._slabs is not None:
            self._sort(self._slabs)
        self._exchange.stand(self._key, self._attempt, self._entry)
        return self._tally.pieces(self._key, self._exchange.place)

    def _keep(self, batch: pa.RecordBatch, part: int | None) -> None:
        self._entry.append(batch, part or 0)
        self._tally.add(batch, part)

    def _sort(self, slabs: Slabs) -> None:
        reserved_bytes = slabs.bytes
        try:
            slabs.sort()
        finally:
            slabs.clear()
            self._store.release(reserved_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._slabs is not None:
            self._store.release(self._slabs.bytes)
            self._slabs.clear()
        self._entry.__exit__(*exception)
