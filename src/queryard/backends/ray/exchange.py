"""Rows pass between nodes through Ray's object store.

A task puts its rows at the node where it runs, in a few bundles: an object costs a millisecond or
two whatever its size, and none can be fetched in part. The node's process owns what it puts: with
the process, and with its node, the rows are gone. Whether they are still needed is for others to
say.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import pyarrow as pa

from queryard.engine.staged.cancellation import Cancellation
from queryard.engine.staged.exchange import Partitions, Piece, PieceLost, Superseded, written
from queryard.engine.staged.partitioning import SLAB_BYTES, Slabs, kept_schema

# Outputs below this are one object: to fetch all of it costs less than a second object.
SMALL_BYTES = 1 << 20
# So many bundles at most.
MOST_BUNDLES = 16
# So many bytes of an output are kept back before they are put; then the object store spills.
FLUSH_BYTES = 64 << 20
# How often a task that waits for rows looks whether it must stop.
_LOOK_S = 0.1


class Stretch(NamedTuple):
    """Rows of one object."""

    ref: Any
    first: int
    rows: int


class Where(NamedTuple):
    """The `ref` of a piece: where its rows lie, and for the first piece of an output its columns.

    A piece is only asked for its columns if it is the first of its output.
    """

    stretches: tuple[Stretch, ...]
    columns: bytes = b""


class RayExchange:
    """What one query has put at one place; any thread may call it."""

    def __init__(self, ray: Any, place: str, bundles: int) -> None:
        """`bundles` is into how many objects a large output is divided."""
        self._ray = ray
        self._place = place
        self._bundles = max(1, min(bundles, MOST_BUNDLES))
        self._lock = threading.Lock()
        self._attempts: dict[str, int] = {}
        # Objects live as long as their owner holds a reference.
        self._held: dict[str, list[Any]] = {}
        self._lost: set[str] = set()

    @property
    def place(self) -> str:
        return self._place

    @property
    def objects(self) -> int:
        """How many objects are held."""
        with self._lock:
            return sum(map(len, self._held.values()))

    def open(
        self, key: str, attempt: int, schema: pa.Schema, partitions: Partitions | None
    ) -> RayWriter:
        return RayWriter(self, key, attempt, schema, partitions)

    def publish(self, key: str, rows: pa.Table) -> Piece:
        return written(self, key, rows)

    def fetch(self, pieces: Sequence[Piece], cancelled: Cancellation | None = None) -> pa.Table:
        stretches = [
            (piece, stretch)
            for piece in pieces
            if piece.rows
            for stretch in _where(piece).stretches
        ]
        if not stretches:
            return columns_of(_where(pieces[0])).empty_table()
        refs = list(dict.fromkeys(stretch.ref for _, stretch in stretches))
        self._await(refs, [piece for piece, _ in stretches], cancelled)
        tables: dict[Any, pa.Table] = {}
        lost: list[Piece] = []
        for piece, stretch in stretches:
            try:
                if stretch.ref not in tables:
                    tables[stretch.ref] = self._ray.get(stretch.ref)
            except self._ray.exceptions.ObjectLostError:
                lost.append(piece)
        if lost:
            raise PieceLost(lost)
        return pa.concat_tables(
            tables[stretch.ref].slice(stretch.first, stretch.rows) for _, stretch in stretches
        )

    def _await(
        self, refs: list[Any], pieces: Sequence[Piece], cancelled: Cancellation | None
    ) -> None:
        """Wait until all objects are at this node; it is told at once that a place is gone."""
        while True:
            ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=_LOOK_S)
            if len(ready) == len(refs):
                return
            if cancelled is not None:
                cancelled.check()
            if gone := [piece for piece in pieces if piece.holder in self._lost]:
                raise PieceLost(gone)

    def lose(self, place: str) -> None:
        """A place is gone: tasks that wait for rows from there need not find out themselves."""
        self._lost.add(place)

    def drop(self, keys: Iterable[str]) -> None:
        with self._lock:
            for key in keys:
                self._held.pop(key, None)

    def settle(self) -> None:
        pass  # the object store spills by itself

    def close(self) -> None:
        """Let go of all objects."""
        with self._lock:
            self._held.clear()

    # --- for writers --------------------------------------------------------------------------

    def bundles_of(self, size_bytes: int) -> int:
        """Into how many objects to divide so many bytes of partitions."""
        return 1 if size_bytes < SMALL_BYTES else self._bundles

    def put(self, rows: pa.Table) -> Any:
        return self._ray.put(rows)

    def stand(self, key: str, attempt: int, refs: list[Any]) -> None:
        """Let an output that is complete stand, unless that of a later attempt does."""
        with self._lock:
            standing = self._attempts.get(key, attempt)
            if standing > attempt:
                raise Superseded(f"attempt {attempt} of {key} came after attempt {standing}")
            self._attempts[key] = attempt
            self._held[key] = refs


class RayWriter:
    """An output on its way into the object store."""

    def __init__(
        self,
        exchange: RayExchange,
        key: str,
        attempt: int,
        schema: pa.Schema,
        partitions: Partitions | None,
    ) -> None:
        self._exchange = exchange
        self._key = key
        self._attempt = attempt
        self._partitions = 1 if partitions is None else partitions.number
        self._schema = kept_schema(schema, partitions)
        self._batches: dict[int | None, list[pa.RecordBatch]] = {}
        self._bytes = 0
        self._refs: list[Any] = []
        self._stretches: dict[int | None, list[Stretch]] = {}
        self._sizes: dict[int | None, int] = {}
        self._slabs: Slabs | None = None
        if partitions is not None:
            self._slabs = Slabs(schema, partitions.column, SLAB_BYTES, self._keep)

    def append(self, batch: pa.RecordBatch) -> None:
        if self._slabs is None:
            self._keep(batch, None)
        elif self._slabs.add(batch):
            self._slabs.sort()
        if self._bytes >= FLUSH_BYTES:
            self._flush()

    def commit(self) -> tuple[Piece, ...]:
        if self._slabs is not None:
            self._slabs.sort()
        self._flush()
        self._exchange.stand(self._key, self._attempt, self._refs)
        columns = self._schema.serialize().to_pybytes()
        place = self._exchange.place
        pieces = [
            Piece(
                self._key,
                part,
                place,
                sum(stretch.rows for stretch in stretches),
                self._sizes[part],
                Where(tuple(stretches)),
            )
            for part, stretches in sorted(self._stretches.items(), key=lambda item: item[0] or 0)
        ]
        if not pieces:
            return (Piece(self._key, None, place, 0, 0, Where((), columns)),)
        first = pieces[0]
        return (first._replace(ref=first.ref._replace(columns=columns)), *pieces[1:])

    def _keep(self, batch: pa.RecordBatch, part: int | None) -> None:
        if batch.num_rows:
            self._batches.setdefault(part, []).append(batch)
            self._bytes += batch.nbytes
            self._sizes[part] = self._sizes.get(part, 0) + batch.nbytes

    def _flush(self) -> None:
        """Put what has come so far: neighbouring partitions together, in a few objects."""
        bundles: dict[int, list[int | None]] = {}
        number = min(self._exchange.bundles_of(self._bytes), self._partitions)
        for part in sorted(self._batches, key=lambda part: part or 0):
            bundles.setdefault((part or 0) * number // self._partitions, []).append(part)
        for parts in bundles.values():
            batches = [batch for part in parts for batch in self._batches[part]]
            ref = self._exchange.put(pa.Table.from_batches(batches, self._schema))
            self._refs.append(ref)
            first = 0
            for part in parts:
                rows = sum(batch.num_rows for batch in self._batches[part])
                self._stretches.setdefault(part, []).append(Stretch(ref, first, rows))
                first += rows
        self._batches.clear()
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # What was put without a commit has no other reference, and goes with this one.
        self._refs = []
        self._stretches = {}
        self._batches.clear()


def columns_of(where: Where) -> pa.Schema:
    """The columns of an output, from its first piece."""
    return pa.ipc.read_schema(pa.BufferReader(where.columns))


def _where(piece: Piece) -> Where:
    found = piece.ref
    assert isinstance(found, Where), f"{piece.key}: put by another kind of exchange"
    return found
