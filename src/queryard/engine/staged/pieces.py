"""Which pieces of the outputs of tasks another task reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from .exchange import Piece


def of_partition(held: Sequence[Sequence[Piece]], number: int) -> tuple[Piece, ...]:
    """The pieces of one partition; at least one, for the columns."""
    found = []
    for pieces in held:
        place = 0 if pieces[0].part is None else bisect_left(pieces, number, key=_part)
        if place < len(pieces) and pieces[place].part in (None, number):
            found.append(pieces[place])
    return with_rows([found]) if found else (held[0][0]._replace(part=number).without_rows(),)


def with_rows(held: Sequence[Sequence[Piece]]) -> tuple[Piece, ...]:
    """The pieces that have rows; if none has, one for the columns."""
    return tuple(p for pieces in held for p in pieces if p.rows) or (held[0][0],)


def _part(piece: Piece) -> int:
    return piece.part or 0
