"""Parameters of statements as JSON; what JSON lacks is written with its type."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.engine.parameters import WrongParameters, shape_of, unwrapped

TYPE = "@type"


def as_json(parameters: Sequence[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """Values for a statement; those that SQL cannot hold are refused as in an embedded session.

    >>> as_json([1, dt.date(2026, 11, 18)])
    [1, {'@type': 'DATE', 'value': '2026-11-18'}]
    """
    if isinstance(parameters, Mapping):
        return {name: _checked(value) for name, value in parameters.items()}
    return [_checked(value) for value in parameters]


def _checked(value: Any) -> Any:
    value = unwrapped(value)
    shape_of(value)
    return _value(value)


def _value(value: Any) -> Any:
    match value:
        case str():
            return _text(value)
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else _typed("DOUBLE", str(value))
        case decimal.Decimal():
            return _typed("DECIMAL", str(value))
        case bytes() | bytearray() | memoryview():
            return _typed("BLOB", base64.b64encode(value).decode())
        case dt.datetime():
            kind = "TIMESTAMP" if value.tzinfo is None else "TIMESTAMPTZ"
            return _typed(kind, value.isoformat())
        case dt.date():
            return _typed("DATE", value.isoformat())
        case dt.time():
            return _typed("TIME", value.isoformat())
        case dt.timedelta():
            return _typed("INTERVAL", value.total_seconds())
        case uuid.UUID():
            return _typed("UUID", str(value))
        case list() | tuple():
            return [_value(item) for item in value]
    raise AssertionError(f"no JSON of {value!r}, which has a shape")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise WrongParameters(f"{value!r} is no valid text: {error.reason}") from None
    return value


def _typed(kind: str, value: object) -> dict[str, object]:
    return {TYPE: kind, "value": value}
