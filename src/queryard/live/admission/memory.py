"""What queries reserve of the memory of a host."""

from __future__ import annotations

from typing import NamedTuple

from queryard.core.errors import QueryardError
from queryard.core.state import SMALL_PARTS
from queryard.engine.instances.budget import written
from queryard.engine.instances.instance import MIN_MEMORY_BYTES
from queryard.estimate.work import Prediction

from ..amounts import as_bytes
from ..request import QueryRequest

# A query reserves a share of the rest, so that several can run at once, but at least enough to run.
QUERY_SHARE = 0.2
ENOUGH_BYTES = 1 << 30
# The smallest reservation of a query that reads a table.
LEAST_BYTES = 128 << 20
# Only a few sizes: an instance that changes its limit loses its cache.
SIZES = (LEAST_BYTES, 3 * LEAST_BYTES, 8 * LEAST_BYTES)
# The part of the memory that is kept for small queries.
KEPT_SHARE = 0.125
# How much memory a query may fill per core-second of predicted work.
FILLED_BYTES_S = 1 << 30


def kept_bytes(pool_bytes: int) -> float:
    """Memory kept for small queries; 0 where not even the smallest would fit into it.

    >>> kept_bytes(16 << 30) / (1 << 30), kept_bytes(1 << 30)
    (2.0, 0.0)
    """
    kept = KEPT_SHARE * pool_bytes
    return kept if kept >= SMALL_PARTS * LEAST_BYTES else 0.0


def small_sizes(pool_bytes: int) -> tuple[int, ...]:
    """What small queries reserve, where there is memory for many of them."""
    return tuple(size for size in SIZES[:2] if size * SMALL_PARTS <= kept_bytes(pool_bytes))


def reservation(memory: int | str | None, pool_bytes: int) -> int:
    """The bytes one query reserves: what it asked for (an instance needs some), or a part."""
    if memory is None:
        return min(pool_bytes, max(int(pool_bytes * QUERY_SHARE), ENOUGH_BYTES))
    asked = max(as_bytes(memory, "memory"), MIN_MEMORY_BYTES)
    if asked > pool_bytes:
        raise QueryardError(
            f"memory: {written(memory)} is more than the {pool_bytes / 1e6:,.0f} MB there are for "
            "queries; ask for less, or give connect(memory=…) more"
        )
    return asked


class Reserved(NamedTuple):
    """What a query reserves; `most_bytes` is more where that is a guess."""

    memory_bytes: int
    most_bytes: int


class Reservations:
    """What queries reserve of the memory of one host."""

    def __init__(self, pool_bytes: int) -> None:
        self.follow(pool_bytes)

    def follow(self, pool_bytes: int) -> None:
        """From now on one host has so much for queries."""
        self.pool_bytes = pool_bytes
        self.usual_bytes = reservation(None, pool_bytes)

    def staged(self, request: QueryRequest, most_bytes: int) -> int:
        return request.memory_bytes or most_bytes

    def native(self, request: QueryRequest, prediction: Prediction, most_bytes: int) -> Reserved:
        if request.memory_bytes is not None:
            return Reserved(request.memory_bytes, request.memory_bytes)
        # One query must not reserve all memory on a guess.
        guessed_bytes = min(most_bytes, self.pool_bytes // 2)
        return Reserved(chosen_bytes(request, prediction, guessed_bytes), most_bytes)


def chosen_bytes(request: QueryRequest, prediction: Prediction, most_bytes: int) -> int:
    """What a query reserves: what it asked for, what its template has needed, or a guess.

    A very short query cannot fill much memory. If the guess was too low and the query runs out of
    memory, it runs again with the usual reservation.
    """
    if not any("from" in statement.words for statement in request.statements):
        return MIN_MEMORY_BYTES  # SELECT 42
    # Earlier measurements may have missed the peak, and too little memory makes a query slow.
    guessed = LEAST_BYTES // 4 + int(prediction.work_s * FILLED_BYTES_S)
    needed = max(guessed, prediction.memory_bytes or 0)
    return min(next((size for size in SIZES if needed <= size), most_bytes), most_bytes)
