"""How much of the machine a session uses: its slots, its memory, and how the latter is divided.

All DuckDB instances together never exceed the budget.
"""

from __future__ import annotations

import contextlib
import math
import os
from typing import NamedTuple

from queryard.core.errors import QueryardError
from queryard.core.state import SMALL_PARTS
from queryard.engine.instance import MIN_MEMORY_BYTES
from queryard.engine.native import Budget
from queryard.estimate.work import Prediction
from queryard.sql.catalog import Catalog

from ..amounts import as_bytes
from ..request import QueryRequest

# The rest is for the results people hold, and for everything else on the machine.
MACHINE_SHARE = 0.7
# The session's instance holds temporary tables, frames and database files for good. Its part is
# fixed: memory that is in use there cannot be taken back for a query.
SESSION_SHARE = 0.25
# A query reserves a part of the rest, so that a few can be started at once, but enough to run.
QUERY_SHARE = 0.2
ENOUGH_BYTES = 1 << 30
# A query of which little is known reserves this much, and this much more for every second it works.
LEAST_BYTES = 128 << 20
# Few different sizes: an instance that changes its limit loses what it has cached.
SIZES = (LEAST_BYTES, 3 * LEAST_BYTES, 8 * LEAST_BYTES)
# The part of the memory that is kept for small queries.
KEPT_SHARE = 0.125
FILLED_BYTES_S = 1 << 30


def slot_range(slots: object) -> tuple[int, int]:
    """The least and the most slots asked for; all cores by default.

    >>> slot_range(4), slot_range((1, 4))
    ((4, 4), (1, 4))
    """
    if slots is None:
        with contextlib.suppress(AttributeError):
            return (len(os.sched_getaffinity(0)),) * 2
        return (os.cpu_count() or 1,) * 2
    bounds = tuple(slots) if isinstance(slots, tuple | list) else (slots, slots)
    whole = all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds)
    if len(bounds) != 2 or not whole or not 1 <= bounds[0] <= bounds[1]:
        raise QueryardError(
            "slots: must be a whole number of at least 1, or the least and the most as (1, 8), "
            f"got {slots!r}"
        )
    return bounds


def memory_budget(memory: int | str | None) -> int:
    """The bytes asked for; a share of the machine's by default."""
    if memory is not None:
        asked = as_bytes(memory, "memory")
        if asked < 4 * MIN_MEMORY_BYTES:
            least = f"{math.ceil(4 * MIN_MEMORY_BYTES / 1e6)} MB"
            raise QueryardError(f"memory: {_written(memory)} is too little; give at least {least}")
        return asked
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 4 << 30
    return int(total * MACHINE_SHARE)


def divide(memory_bytes: int, catalog: Catalog, writes: bool = False) -> Budget:
    """The session's part and the pool's; most goes to where the tables are read."""
    kinds = {table.kind for table in catalog.tables.values()}
    in_session = bool(kinds) and kinds <= ({"frame", "database"} if writes else {"frame"})
    session = int(memory_bytes * (1 - SESSION_SHARE if in_session else SESSION_SHARE))
    return Budget(session, memory_bytes - session)


def kept_bytes(pool_bytes: int) -> float:
    """What is kept for small queries; nothing where even the smallest are too large for that.

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
            f"memory: {_written(memory)} is more than the {pool_bytes / 1e6:,.0f} MB there are for "
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
        self.pool_bytes = pool_bytes
        self.usual_bytes = reservation(None, pool_bytes)

    def staged(self, request: QueryRequest, most_bytes: int) -> int:
        return request.memory_bytes or most_bytes

    def native(self, request: QueryRequest, prediction: Prediction, most_bytes: int) -> Reserved:
        if request.memory_bytes is not None:
            return Reserved(request.memory_bytes, request.memory_bytes)
        # However little there is, one query must not take all of it on a guess.
        guessed_bytes = min(most_bytes, self.pool_bytes // 2)
        return Reserved(chosen_bytes(request, prediction, guessed_bytes), most_bytes)


def chosen_bytes(request: QueryRequest, prediction: Prediction, most_bytes: int) -> int:
    """What a query reserves: what it asked for, what its like have needed, or a guess.

    A query that computes for a moment cannot fill much memory. Where the guess was too low and the
    query runs out of it, it is run again with what is usual.
    """
    if not any("from" in statement.words for statement in request.statements):
        return MIN_MEMORY_BYTES  # SELECT 42
    # What was seen of its like may have missed the peak, and less than it needs makes it slow.
    guessed = LEAST_BYTES // 4 + int(prediction.work_s * FILLED_BYTES_S)
    needed = max(guessed, prediction.memory_bytes or 0)
    return min(next((size for size in SIZES if needed <= size), most_bytes), most_bytes)


def _written(memory: int | str) -> str:
    """An amount as its author wrote it.

    >>> _written("10MB"), _written(5_000)
    ('10MB', '5,000 bytes')
    """
    return memory if isinstance(memory, str) else f"{memory:,} bytes"
