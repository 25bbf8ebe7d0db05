"""A shorter switch interval of Python's global lock (GIL) while queries run.

A thread that comes back from DuckDB waits for the lock while another thread computes in Python: for
up to one switch interval, 5 ms by default, at every step of every query. While queries run the
interval is shorter; a program without queries keeps its own.
"""

from __future__ import annotations

import sys
import threading

INTERVAL_S = 0.0005

_lock = threading.Lock()
_users = 0
_before_s = 0.0


def begin() -> None:
    """A query has begun."""
    global _users, _before_s
    with _lock:
        _users += 1
        if _users == 1:
            _before_s = sys.getswitchinterval()
            # A program that has set a shorter interval keeps it.
            _set(min(INTERVAL_S, _before_s))


def end() -> None:
    """A query has ended."""
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _set(_before_s)


def _set(interval_s: float) -> None:
    # Python truncates to microseconds; without rounding, each restore would lose one.
    sys.setswitchinterval(interval_s + 5e-7)
