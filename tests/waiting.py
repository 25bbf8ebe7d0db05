"""Waiting in tests for what another thread or process does: always with a limit."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
# Long enough for a busy machine, and less than what ends a run that hangs.
PATIENCE_S = 60.0
LOOK_S = 0.002
# How long something must stay as it is between two looks.
SETTLES_S = 0.05


def wait_until(holds: Callable[[], T], within_s: float = PATIENCE_S, what: str = "") -> T:
    """Call until the result is true, and return it; after some seconds fail.

    The error names `what` did not come true; without it, it shows the source of `holds`.

    >>> counts = iter([0, 0, 3])
    >>> wait_until(lambda: next(counts))
    3
    >>> wait_until(lambda: False, 0.01, "the query has ended")
    Traceback (most recent call last):
    AssertionError: not within 0.01 s: the query has ended
    """
    until_s = time.monotonic() + within_s
    while not (found := holds()):
        if time.monotonic() > until_s:
            raise AssertionError(f"not within {within_s:g} s: {what or _source(holds)}")
        time.sleep(LOOK_S)
    return found


def wait_until_settled(look: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """What a call gives once it gives the same three times in a row."""
    until_s = time.monotonic() + within_s
    found = [look()]
    while len(found) < 3 or found[-3] != found[-2] or found[-2] != found[-1]:
        if time.monotonic() > until_s:
            raise AssertionError(f"not settled within {within_s:g} s: {found[-3:]}")
        time.sleep(SETTLES_S)
        found.append(look())
    return found[-1]


def _source(holds: Callable[[], object]) -> str:
    try:
        return inspect.getsource(holds).strip()
    except (OSError, TypeError):
        return repr(holds)
