"""What the operating system knows of a thread."""

from __future__ import annotations

from collections.abc import Iterable


def all_asleep(threads: Iterable[int]) -> bool | None:
    """Whether none of these threads (by native id) computes; None where it cannot be known.

    >>> import threading
    >>> all_asleep([threading.get_native_id()]) in (False, None)
    True
    """
    try:
        return all(_state(thread) == "S" for thread in threads)
    except OSError:  # not Linux, or the thread is gone
        return None


def _state(thread: int) -> str:
    with open(f"/proc/self/task/{thread}/stat", encoding="ascii", errors="replace") as stat:
        # The name in parentheses may hold anything.
        return stat.read().rpartition(")")[2].split()[0]
