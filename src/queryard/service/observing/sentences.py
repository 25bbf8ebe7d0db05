"""What holds a query, in one short sentence that names no other query and no other tenant."""

from __future__ import annotations

from queryard.core.readable import several
from queryard.live.overview import Glance, Hold

_SENTENCES: dict[Hold, str] = {
    "slots": "It has begun, and other queries have its slots for now.",
    "reader": "Its reader is behind; it goes on when rows are taken.",
    "entering": "It is on its way to the scheduler.",
    "planning": "It is being planned, or waits for its client's connection.",
    "shared": "It shares the execution of an identical query.",
    "cap": "Its pool holds all the slots it may have.",
}


def short_why(query: Glance, free_bytes: float, is_paused: bool = False) -> str:
    """Why a query waits, or what works on it."""
    if query.slots:
        return f"{several(query.slots, 'slot')} at work on it."
    if query.hold == "memory" and not query.position:
        return f"It needs {_size(query.memory_bytes)} of memory; {_size(free_bytes)} are free."
    if query.hold in ("order", "memory"):
        if is_paused:
            return "The server is paused: no waiting query starts."
        if query.position is None:
            return "It waits for slots, or for other jobs of its own."
        if query.position == 0:
            return "It is next in its pool."
        return f"{several(query.position, 'waiting query')} before it in its pool."
    return _SENTENCES.get(query.hold, "")


def _size(amount: float) -> str:
    """Bytes in words.

    >>> _size(1.5e9), _size(20e6), _size(0)
    ('1.5 GB', '20 MB', '0 MB')
    """
    return f"{amount / 1e9:.1f} GB" if amount >= 1e9 else f"{amount / 1e6:.0f} MB"
