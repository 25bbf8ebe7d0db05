"""Waiting in tests for what another thread or process does: always with a limit."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator
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
    found: list[T] = []

    @functools.wraps(holds)  # so that its source is shown
    def look() -> bool:
        found[:] = [holds()]
        return bool(found[0])

    for _ in turns_until(look, within_s, what):
        time.sleep(LOOK_S)
    return found[0]


def turns_until(
    holds: Callable[[], object], within_s: float = PATIENCE_S, what: str = ""
) -> Iterator[None]:
    """The turns of a loop that goes on until something holds, with the same limit.

    >>> counts = iter([0, 0, 3])
    >>> [print("turn") for _ in turns_until(lambda: next(counts))]
    turn
    turn
    [None, None]
    """
    until_s = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > until_s:
            raise AssertionError(f"not within {within_s:g} s: {what or _source(holds)}")
        yield


def wait_until_settled(look: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """What a call gives once it gives the same three times in a row."""
    found = [look()]

    def is_settled() -> bool:
        return len(found) > 2 and found[-3] == found[-2] == found[-1]

    for _ in turns_until(is_settled, within_s, "it is settled"):
        time.sleep(SETTLES_S)
        found.append(look())
    return found[-1]


def _source(holds: Callable[[], object]) -> str:
    try:
        return inspect.getsource(holds).strip()
    except (OSError, TypeError):
        return repr(inspect.unwrap(holds))
