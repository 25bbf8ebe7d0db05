"""How rows pass between tasks: an exchange keeps what tasks put, and says where it lies.

An exchange may be the memory of one process, a folder, or the processes of a cluster, each with
what its tasks have made. A task never knows which: it is given pieces, and the exchange of its node
knows how to get them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import pyarrow as pa

from queryard.engine.errors import InputMissing, QueryCancelled

from .cancellation import Cancellation


class Partitions(NamedTuple):
    """The number of partitions, and the column that says to which a row goes; it is not kept."""

    column: str
    number: int


class Piece(NamedTuple):
    """Rows of one output that can be fetched by themselves.

    A piece of 0 rows stands for the columns only: whatever else lies under `ref` is not read.
    """

    key: str
    part: int | None  # the partition; None: all rows of the output
    holder: str  # the place that holds the piece; if the place is lost, so is the piece
    rows: int
    bytes: int
    ref: Any = None  # what the exchange needs to find it; plain data, or the exchange's own handle

    def without_rows(self) -> Piece:
        """Only the columns."""
        return self._replace(rows=0, bytes=0)


class PieceLost(InputMissing):
    """Rows that a task reads are gone with the place that held them, or cannot be had from it.

    `why` says more, where more is known.
    """

    def __init__(self, pieces: Iterable[Piece], why: str = "") -> None:
        lost = tuple(pieces)
        self.outputs = tuple(dict.fromkeys((piece.key, piece.holder) for piece in lost))
        """The key of each, with the place that held it."""
        self.keys = tuple(dict.fromkeys(key for key, _ in self.outputs))
        self.holders = tuple(dict.fromkeys(holder for _, holder in self.outputs))
        super().__init__(
            f"rows of {', '.join(self.keys)} are gone from {', '.join(self.holders)}"
            f"{f' ({why})' if why else ''}; the tasks that made them must run again"
        )
        self.why = why

    def __reduce__(self) -> tuple[Any, ...]:
        lost = [Piece(key, None, holder, 0, 0) for key, holder in self.outputs]
        return type(self), (lost, self.why)


class Superseded(QueryCancelled):
    """An attempt of a task came too late: the rows of a later attempt stand."""


class Writer(Protocol):
    """An output in the making, of one thread. Left without `commit`, nothing stays of it."""

    def append(self, batch: pa.RecordBatch) -> None:
        """Add rows."""

    def commit(self) -> tuple[Piece, ...]:
        """Make all rows visible at once.

        The pieces come in the order of partitions. Those without rows are left out, but there is
        at least one. Raises `Superseded` if a later attempt stands.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class Exchange(Protocol):
    """What tasks at one place put, and the way to what others have put. Any thread may call it."""

    @property
    def place(self) -> str:
        """Where the rows lie that are put here."""

    def open(
        self, key: str, attempt: int, schema: pa.Schema, partitions: Partitions | None
    ) -> Writer:
        """Begin an output; it takes the place of the output of an earlier attempt."""

    def publish(self, key: str, rows: pa.Table) -> Piece:
        """Put rows that exist already, once for all tasks that read them."""

    def fetch(self, pieces: Sequence[Piece], cancelled: Cancellation | None = None) -> pa.Table:
        """The rows of pieces of one shape, in their order; raises `PieceLost`.

        Where that takes long, `cancelled` stops it.
        """

    def drop(self, keys: Iterable[str]) -> None:
        """Forget outputs, if they are there."""

    def settle(self) -> None:
        """A task has ended: memory that it has freed may go back to the system."""


def written(exchange: Exchange, key: str, rows: pa.Table) -> Piece:
    """Publish rows as an output of one attempt, where an exchange keeps both in the same way."""
    with exchange.open(key, 0, rows.schema, None) as writer:
        for batch in rows.to_batches():
            writer.append(batch)
        (piece,) = writer.commit()
    return piece
