"""Times and sizes as people write them ("2 min", "64 MB"), and counts as people read them.

A bare number is in the base unit, seconds or bytes. Upper and lower case are not told apart. Sizes
follow the SI: a MB is a million bytes and a MiB is 1024 * 1024, as in DuckDB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from .errors import InvalidRecord, unknown_name


class InvalidAmount(InvalidRecord):
    """A text or a value that is no time, or no size."""


class _Kind(NamedTuple):
    name: str
    units: Mapping[str, float]
    examples: str


_TIME = _Kind(
    "time",
    {"ms": 1e-3, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0},
    '90, "90 s", "2 min", "1 h 30 min"',
)
_SIZE = _Kind(
    "size",
    {"B": 1.0}
    | {
        f"{prefix}{unit}": base**power
        for power, prefix in enumerate("kMGTP", 1)
        for unit, base in (("B", 1000.0), ("iB", 1024.0))
    },
    '1000, "64 MB", "24 GiB"',
)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TERM = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*")


def parse_seconds(value: object) -> float:
    """Seconds, from a number or a text with units; 0 is a time.

    >>> parse_seconds("1 h 30 min"), parse_seconds("250ms"), parse_seconds(2)
    (5400.0, 0.25, 2.0)
    """
    return _at_least_0(value, _TIME)


def parse_bytes(value: object) -> float:
    """Bytes, from a number or a text with a unit; 0 is a size.

    >>> parse_bytes("64 MB"), parse_bytes("1 KiB"), parse_bytes(10)
    (64000000.0, 1024.0, 10.0)
    """
    return _at_least_0(value, _SIZE)


def some_seconds(value: object, what: str) -> float:
    """Seconds above 0; errors are about `what`.

    >>> some_seconds("5 min", "time limit"), some_seconds(2, "time limit")
    (300.0, 2.0)
    """
    return _above_0(value, _TIME, what)


def some_bytes(value: object, what: str) -> float:
    """Bytes above 0; errors are about `what`.

    >>> some_bytes("1.5 GB", "memory"), some_bytes(4096, "memory")
    (1500000000.0, 4096.0)
    """
    return _above_0(value, _SIZE, what)


def _at_least_0(value: object, kind: _Kind) -> float:
    total = _total(value, kind)
    if not 0 <= total < math.inf:
        raise InvalidAmount(f"a {kind.name} must be finite and at least 0, got {value!r}")
    return total


def _above_0(value: object, kind: _Kind, what: str) -> float:
    try:
        total = _total(value, kind)
    except InvalidAmount as error:
        raise InvalidAmount(f"{what}: {error}") from None
    if not 0 < total < math.inf:
        raise InvalidAmount(f"{what}: must be finite and above 0, got {value!r}")
    return total


def _total(value: object, kind: _Kind) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidAmount(f"expected a {kind.name} such as {kind.examples}; got {value!r}")
    return _sum_terms(value, kind) if isinstance(value, str) else float(value)


def _sum_terms(text: str, kind: _Kind) -> float:
    by_folded = {name.lower(): factor for name, factor in kind.units.items()}
    total, at = 0.0, 0
    while at < len(text) or not text:
        term = _TERM.match(text, at)
        # "1 000" is not 1, and "2030-01-01" is no number of seconds.
        is_one_of_several = term is not None and (at > 0 or term.end() < len(text))
        if term is None or (is_one_of_several and (not term[2] or term[1][0] in "+-")):
            raise InvalidAmount(f"{text!r} is not a {kind.name}; write one such as {kind.examples}")
        unit = term[2]
        if unit and unit.lower() not in by_folded:
            wrong = unknown_name(f"unit of {kind.name}", unit, kind.units)
            raise InvalidAmount(f"{text!r}: {wrong}")
        total += float(term[1]) * (by_folded[unit.lower()] if unit else 1.0)
        at = term.end()
    return total
