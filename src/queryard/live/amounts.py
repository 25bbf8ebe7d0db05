"""Amounts and times that a session is given, with the name of what they are for."""

from __future__ import annotations

import datetime

from queryard.core.amounts import InvalidAmount, parse_seconds, some_bytes
from queryard.core.amounts import some_seconds as as_seconds
from queryard.core.errors import QueryardError

__all__ = ["as_age", "as_bytes", "as_seconds", "as_time_left"]


def as_bytes(amount: int | float | str, what: str) -> int:
    """Whole bytes from a number or a text.

    >>> as_bytes("1.5 GB", "memory"), as_bytes(4096, "memory")
    (1500000000, 4096)
    """
    return int(some_bytes(amount, what))


def as_age(amount: float | str, what: str) -> float:
    """Seconds that something may be old; 0 is an age.

    >>> as_age("1 s", "fresh"), as_age(0, "fresh")
    (1.0, 0.0)
    """
    try:
        return parse_seconds(amount)
    except InvalidAmount as error:
        raise QueryardError(f"{what}: {error}") from None


def as_time_left(when: float | str | datetime.timedelta | datetime.datetime, what: str) -> float:
    """Seconds from now until a time: an amount of them, or a point in time.

    >>> as_time_left("2 min", "deadline")
    120.0
    """
    if isinstance(when, datetime.timedelta):
        when = when.total_seconds()
    if not isinstance(when, datetime.datetime):
        return as_seconds(when, what)
    left_s = (when - datetime.datetime.now(when.tzinfo)).total_seconds()
    if left_s <= 0:
        raise QueryardError(f"{what}: {when} has passed; give a time to come")
    return left_s
