"""Parameters of statements in JSON; what JSON lacks is written with its type."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from queryard.core.errors import unknown_name

from ..problems import InvalidRequest

TYPE = "@type"


def _timestamptz(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("it has no time zone, as '+01:00'")
    return found


def _seconds(amount: Any) -> dt.timedelta:
    return dt.timedelta(seconds=float(amount))


_MADE: Mapping[str, Callable[[Any], Any]] = {
    "BLOB": lambda text: base64.b64decode(text, validate=True),
    "DATE": dt.date.fromisoformat,
    "DECIMAL": decimal.Decimal,
    "DOUBLE": float,
    "HUGEINT": int,
    "INTERVAL": _seconds,
    "TIME": dt.time.fromisoformat,
    "TIMESTAMP": dt.datetime.fromisoformat,
    "TIMESTAMPTZ": _timestamptz,
    "UUID": uuid.UUID,
}


def parameters_of(given: object) -> list[Any] | dict[str, Any]:
    """Values for a statement, from a list or an object of JSON.

    >>> parameters_of([1, {"@type": "DATE", "value": "2026-11-18"}])
    [1, datetime.date(2026, 11, 18)]
    """
    if given is None:
        return []
    if isinstance(given, Mapping):
        return {name: _value(value) for name, value in given.items()}
    assert isinstance(given, Sequence)
    return [_value(value) for value in given]


def _value(given: Any) -> Any:
    if isinstance(given, list):
        return [_value(item) for item in given]
    if not isinstance(given, dict):
        return given
    if given.keys() != {TYPE, "value"}:
        raise InvalidRequest(
            f'parameters: an object has "{TYPE}" and "value", as {{"{TYPE}": "DATE", "value": '
            f'"2026-11-18"}}, got the keys {sorted(given)}'
        )
    name, value = str(given[TYPE]).upper(), given["value"]
    if name not in _MADE:
        raise InvalidRequest(f"parameters: {unknown_name('type', name, _MADE)}")
    if value is None:
        return None
    try:
        return _MADE[name](value)
    except (ValueError, TypeError, ArithmeticError, OverflowError) as error:
        raise InvalidRequest(f"parameters: {value!r} is no {name} ({error})") from None


def deadline_of(given: float | str | None) -> float | str | dt.datetime | None:
    """A deadline: seconds from now, a text such as "10 s", or a point in time.

    >>> deadline_of("10 s"), deadline_of("2026-11-18T06:00:00+00:00").year
    ('10 s', 2026)
    """
    if isinstance(given, str):
        try:
            return dt.datetime.fromisoformat(given)
        except ValueError:
            return given
    return given
