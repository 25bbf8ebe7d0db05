"""Times and sizes as people write them: "2 min", "1 h 30 min", "64 MB".

A bare number is in the base unit, seconds or bytes. Sizes follow the SI: a MB is a million
bytes and a MiB is 1024 * 1024, as in DuckDB.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from queryard.core.errors import InvalidRecord, unknown_name

SECONDS: Mapping[str, float] = {
    "ms": 1e-3,
    "s": 1.0,
    "sec": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
BYTES: Mapping[str, float] = {"B": 1.0} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kMGTP", 1)
    for unit, base in (("B", 1000.0), ("iB", 1024.0))
}

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_TERM = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*")


def parse_seconds(value: object) -> float:
    """Seconds, from a number or a text with units.

    >>> parse_seconds("1 h 30 min"), parse_seconds("250ms"), parse_seconds(2)
    (5400.0, 0.25, 2.0)
    """
    return _parse(value, "time", SECONDS, '90, "90 s", "2 min", "1 h 30 min"')


def parse_bytes(value: object) -> float:
    """Bytes, from a number or a text with a unit.

    >>> parse_bytes("64 MB"), parse_bytes("1 KiB"), parse_bytes(10)
    (64000000.0, 1024.0, 10.0)
    """
    return _parse(value, "size", BYTES, '1000, "64 MB", "24 GiB"')


def _parse(value: object, what: str, units: Mapping[str, float], examples: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidRecord(f"expected a {what} such as {examples}; got {value!r}")
    total = _sum_terms(value, what, units, examples) if isinstance(value, str) else float(value)
    if not 0 <= total < math.inf:
        raise InvalidRecord(f"a {what} must be finite and at least 0, got {value!r}")
    return total


def _sum_terms(text: str, what: str, units: Mapping[str, float], examples: str) -> float:
    by_folded = {name.lower(): factor for name, factor in units.items()}
    total, at = 0.0, 0
    while at < len(text) or not text:
        term = _TERM.match(text, at)
        if term is None:
            raise InvalidRecord(f"{text!r} is not a {what}; write one such as {examples}")
        unit = term[2]
        if unit and unit.lower() not in by_folded:
            raise InvalidRecord(f"{text!r}: {unknown_name(f'unit of {what}', unit, units)}")
        total += float(term[1]) * (by_folded[unit.lower()] if unit else 1.0)
        at = term.end()
    return total


def several(number: float, what: str) -> str:
    """So many of something.

    >>> several(1.2, "row"), several(0, "row"), several(1234, "map task"), several(2, "query")
    ('1 row', '0 rows', '1,234 map tasks', '2 queries')
    """
    text = f"{number:,.0f}"
    if text == "1":
        return f"1 {what}"
    return f"{text} {what[:-1]}ies" if what.endswith("y") else f"{text} {what}s"
