"""Amounts and times as people write them: "8 GB", "5 min"."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from queryard.core.errors import QueryardError, unknown_name

_BYTES = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")


def as_bytes(amount: int | float | str, what: str) -> int:
    """Bytes from a number or a text.

    >>> as_bytes("1.5 GB", "memory"), as_bytes(4096, "memory")
    (1500000000, 4096)
    """
    return int(_amount(amount, what, _BYTES, "b"))


def as_seconds(amount: int | float | str, what: str) -> float:
    """Seconds from a number or a text.

    >>> as_seconds("5 min", "time limit"), as_seconds(2, "time limit")
    (300.0, 2.0)
    """
    return float(_amount(amount, what, _SECONDS, "s"))


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


def _amount(amount: object, what: str, units: Mapping[str, float], unit: str) -> float:
    example = f"such as {10 if unit == 'b' else 5} {'GB' if unit == 'b' else 'min'}"
    if isinstance(amount, str):
        found = _AMOUNT.fullmatch(amount)
        if found is None:
            raise QueryardError(f"{what}: {amount!r} is no amount; write a number {example}")
        written = found.group(2).lower() or unit
        if written not in units:
            raise QueryardError(f"{what}: {unknown_name('unit', found.group(2), units)}")
        value = float(found.group(1)) * units[written]
    elif isinstance(amount, int | float) and not isinstance(amount, bool):
        value = float(amount)
    else:
        raise QueryardError(f"{what}: {amount!r} is no amount; write a number {example}")
    if not 0 < value < float("inf"):
        raise QueryardError(f"{what}: must be above 0, got {amount!r}")
    return value
