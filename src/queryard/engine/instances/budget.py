"""How much of the machine instances use: slots, and memory with its division.

All DuckDB instances together never exceed the budget.
"""

from __future__ import annotations

import contextlib
import math
import os
from dataclasses import dataclass

from queryard.core.amounts import some_bytes
from queryard.core.errors import QueryardError
from queryard.core.readable import several
from queryard.sql.catalog import Catalog

from .instance import MIN_MEMORY_BYTES

# The rest is for results that are held, and for everything else on the machine.
MACHINE_SHARE = 0.7
# A client's own instance holds temporary tables, frames and database files for good. Its part is
# fixed: memory that is in use there cannot be taken back for a query.
SESSION_SHARE = 0.25


# Far more than any machine has cores; a slip of the keyboard would start as many threads.
MOST_SLOTS = 1024


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes for the session's instance and for all pooled instances together."""

    session_bytes: int
    pool_bytes: int


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
    if bounds[1] > MOST_SLOTS:
        raise QueryardError(
            f"slots: {bounds[1]:,} is too many, as each is a thread; give at most {MOST_SLOTS:,} "
            f"(this machine has {several(os.cpu_count() or 1, 'core')})"
        )
    return bounds


def memory_budget(memory: int | str | None) -> int:
    """The bytes asked for; a share of the machine's by default."""
    if memory is not None:
        asked = int(some_bytes(memory, "memory"))
        if asked < 4 * MIN_MEMORY_BYTES:
            least = f"{math.ceil(4 * MIN_MEMORY_BYTES / 1e6)} MB"
            raise QueryardError(f"memory: {written(memory)} is too little; give at least {least}")
        total = machine_bytes()
        if total is not None and asked > total:
            raise QueryardError(
                f"memory: {written(memory)} is more than this machine has ({total / 1e9:.1f} GB); "
                f'give less, such as "{total * MACHINE_SHARE / 1e9:.1f} GB", which is the default'
            )
        return asked
    total = machine_bytes()
    return 4 << 30 if total is None else int(total * MACHINE_SHARE)


def machine_bytes() -> int | None:
    """The memory of this machine, where it can be told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def divide(memory_bytes: int, catalog: Catalog, writes: bool = False) -> Budget:
    """The session's part and the pool's; most goes to where the tables are read."""
    kinds = {table.kind for table in catalog.tables.values()}
    in_session = bool(kinds) and kinds <= ({"frame", "database"} if writes else {"frame"})
    session = int(memory_bytes * (1 - SESSION_SHARE if in_session else SESSION_SHARE))
    return Budget(session, memory_bytes - session)


def written(memory: int | str) -> str:
    """An amount as its author wrote it.

    >>> written("10MB"), written(5_000)
    ('10MB', '5,000 bytes')
    """
    return memory if isinstance(memory, str) else f"{memory:,} bytes"
