"""Parameters of a statement as another process can read them.

A parameter may be of a class that only this process knows, or a view of its memory.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from .parameters import WrongParameters, shape_of, unwrapped


def plain(parameters: Sequence[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """The same values, of types that every process knows; raises `WrongParameters`.

    >>> plain([memoryview(b"a"), (1, True)])
    [b'a', [1, True]]
    """
    if isinstance(parameters, Mapping):
        return {_plain_name(name): _plain(unwrapped(value)) for name, value in parameters.items()}
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise WrongParameters(f"parameters come in a list, a tuple or a dict, got {parameters!r}")
    return [_plain(unwrapped(value)) for value in parameters]


def _plain_name(name: object) -> str:
    if not isinstance(name, str):
        raise WrongParameters(f"{name!r} is no name of a parameter")
    return str.__str__(name)


def _plain(value: Any) -> Any:
    """A value of which DuckDB's value is the same; subclasses may be known to this process only."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            return float(value)
        case str():
            return str.__str__(str(value))
        case uuid.UUID():
            return str(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case dt.datetime():
            return _plain_moment(value)
        case dt.date():
            return dt.date(value.year, value.month, value.day)
        case dt.time():
            shape_of(value)  # without a time zone
            return dt.time(value.hour, value.minute, value.second, value.microsecond)
        case dt.timedelta():
            return dt.timedelta(value.days, value.seconds, value.microseconds)
        case decimal.Decimal():
            return decimal.Decimal(value)
        case list() | tuple():
            return [_plain(item) for item in value]
    shape_of(value)  # which raises
    raise AssertionError(f"no plain value of {value!r}, which has a shape")


def _plain_moment(value: dt.datetime) -> dt.datetime:
    """With a fixed distance from UTC in place of a time zone."""
    offset = value.utcoffset()
    if offset is None and value.tzinfo is not None:
        raise WrongParameters(f"the time zone of {value!r} does not say how far it is from UTC")
    zone = None if offset is None else dt.timezone(offset)
    date = value.year, value.month, value.day
    return dt.datetime(
        *date, value.hour, value.minute, value.second, value.microsecond, tzinfo=zone
    )
