"""Parameters of statements as JSON; what JSON lacks is written with its type."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import math
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from queryard.core.errors import QueryardError

TYPE = "@type"


def as_json(parameters: Sequence[Any] | Mapping[str, Any]) -> list[Any] | dict[str, Any]:
    """Values for a statement.

    >>> as_json([1, dt.date(2026, 11, 18)])
    [1, {'@type': 'DATE', 'value': '2026-11-18'}]
    """
    if isinstance(parameters, Mapping):
        return {name: _value(value, name) for name, value in parameters.items()}
    return [_value(value, number) for number, value in enumerate(parameters, 1)]


def _value(value: Any, name: object) -> Any:
    if hasattr(value, "item") and not isinstance(value, Sequence):
        value = value.item()  # a number of numpy's
    match value:
        case None | bool() | int() | str():
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
            return [_value(item, name) for item in value]
    raise QueryardError(
        f"parameter {name}: a value of type {type(value).__name__} cannot be sent to a server; "
        "give numbers, texts, bytes, dates, times, UUIDs, or lists of them"
    )


def _typed(kind: str, value: object) -> dict[str, object]:
    return {TYPE: kind, "value": value}
