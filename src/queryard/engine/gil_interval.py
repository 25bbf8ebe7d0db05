"""Short turns at Python's lock while queries are on their way.

A thread that comes back from DuckDB waits for the lock for up to a turn of whoever computes in
Python beside it: 5 ms by default, at every step of every query. While anything is on its way the
turns are shorter; a program without queries keeps what it had.
"""

from __future__ import annotations

import sys
import threading

TURN_S = 0.0005

_lock = threading.Lock()
_users = 0
_before_s = 0.0


def begin() -> None:
    """Somebody has a query on its way."""
    global _users, _before_s
    with _lock:
        _users += 1
        if _users == 1:
            _before_s = sys.getswitchinterval()
            # Somebody who wants still shorter turns keeps them.
            _set(min(TURN_S, _before_s))


def end() -> None:
    """It has ended."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _set(_before_s)


def _set(turn_s: float) -> None:
    # Python cuts off what is less than a microsecond: by itself, each return would cost one.
    sys.setswitchinterval(turn_s + 5e-7)
