"""Rows on their way to a client: taken piece by piece, cut to what was asked for, encoded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .encoding.rows import DATA_ROW, Sent, encode_rows, pieces_of
from .types import Column

FEW_ROWS = 1024
# Few rows of so many bytes are encoded faster than a thread is woken for it.
FEW_BYTES = 1 << 16
Encoder = Callable[[Any], list[Any]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows as bytes; `ended` if no more will come."""

    data: tuple[Any, ...]
    rows: int
    ended: bool


class Rows:
    """The rows of one result; one thread at a time. What was cut off comes with the next chunk."""

    def __init__(
        self,
        columns: tuple[Column, ...],
        batches: Iterable[Any],
        close: Callable[[], None] = lambda: None,
        is_small: Callable[[int, int], bool] = lambda rows, size_bytes: False,
    ) -> None:
        """`is_small` says whether all rows are there, and fewer than a number of rows and bytes."""
        self.columns = columns
        self._is_small = is_small
        self._pieces: Iterator[Any] = (piece for batch in batches for piece in pieces_of(batch))
        self._rest: Any = None
        self._close = close

    @property
    def at_hand(self) -> bool:
        """Whether `next` neither waits nor takes long."""
        return self._rest is None and self._is_small(FEW_ROWS, FEW_BYTES)

    def next(self, most: int | None, encode: Encoder) -> Chunk:
        """The next rows, at most so many; it waits for the query.

        They are one piece of a batch, so that the client takes them while the next are encoded.
        A piece of few rows is the last one, as a rule: the end is awaited as well.
        """
        data: list[Any] = []
        rows = 0
        while rows < FEW_ROWS and (most is None or rows < most):
            piece = self.take()
            if piece is None:
                return Chunk(tuple(data), rows, True)
            if most is not None and piece.num_rows > most - rows:
                self._rest = piece.slice(most - rows)
                piece = piece.slice(0, most - rows)
            data += encode(piece)
            rows += piece.num_rows
        return Chunk(tuple(data), rows, False)

    def take(self) -> Any:
        """The next rows as they come; None at the end. It waits for the query."""
        piece, self._rest = self._rest, None
        return next(self._pieces, None) if piece is None else piece

    def close(self) -> None:
        """No more rows are wanted; a query that still runs is cancelled."""
        self._rest = None
        self._pieces = iter(())
        self._close()


def data_rows(columns: Sequence[Column], forms: Sequence[int], zone: str) -> Encoder:
    """Rows as the messages of a result."""
    sent = [Sent(column.type.oid, form) for column, form in zip(columns, forms, strict=True)]
    return lambda batch: [encode_rows(batch, sent, DATA_ROW, zone)]


def no_rows(batch: Any) -> list[Any]:
    """Rows that are passed over."""
    return []
