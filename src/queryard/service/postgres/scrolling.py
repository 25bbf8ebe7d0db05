"""Cursors that go back: their rows are kept, as long as that is cheap."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from .commands import Direction
from .errors import PostgresError
from .rows import Chunk, Encoder, Rows

# The rows of one cursor that are kept.
MOST_BYTES = 64 << 20


class Scroll:
    """A place among the rows of a result: 0 is before the first, one more than all after the last.

    One thread at a time uses it.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._batches: list[Any] = []
        self._count = 0
        self._bytes = 0
        self._ended = False
        self._at = 0

    def fetch(self, how: Direction, rows: int | None, encode: Encoder) -> Chunk:
        """The rows that a FETCH asks for; the place moves along."""
        if how == "forward":
            first = self._at + 1
            last = self._fill(None if rows is None else self._at + rows)
            self._at = self._at + rows if rows is not None and self._at + rows <= last else last + 1
            places = range(first, min(last, self._at) + 1)
        elif how == "backward":
            last = self._at
            self._at = 0 if rows is None else max(0, self._at - rows)
            places = range(last - 1, max(self._at, 1) - 1, -1)
        else:
            assert rows is not None
            places = self._jump(rows if how == "absolute" else self._at + rows, how)
        data = [part for batch in self._taken(places) for part in encode(batch)]
        return Chunk(tuple(data), len(places), False)

    def _jump(self, place: int, how: Direction) -> range:
        """Go to a row; from the end if it is below 0, and was not counted from where it is."""
        if how == "absolute" and place < 0:
            place = max(0, self._fill(None) + 1 + place)
        count = self._fill(max(place, 0))
        self._at = min(max(place, 0), count + 1)
        return range(self._at, self._at + 1) if 1 <= self._at <= count else range(0)

    def _fill(self, until: int | None) -> int:
        """Keep rows up to a place, or all; how many there are by then."""
        while not self._ended and (until is None or self._count < until):
            piece = self._rows.take()
            if piece is None:
                self._ended = True
                break
            self._bytes += piece.nbytes
            if self._bytes > MOST_BYTES:
                raise PostgresError(
                    "54000",
                    f"the rows of a SCROLL cursor are kept, and take more than {MOST_BYTES:,} "
                    "bytes here",
                    hint="declare it with NO SCROLL, or select less",
                )
            self._batches.append(piece)
            self._count += piece.num_rows
        return self._count

    def _taken(self, places: range) -> list[Any]:
        """Rows by their numbers, from 1."""
        if not places:
            return []
        table = pa.Table.from_batches(self._batches)
        if places.step > 0:
            table = table.slice(places[0] - 1, len(places))
        else:
            table = table.take(pa.array([place - 1 for place in places]))
        found: list[Any] = table.combine_chunks().to_batches()
        return found
