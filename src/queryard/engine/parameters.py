"""Python values for the parameters of a statement (`?`, `$1`, `$name`).

A value first gets a *shape*, the SQL type that holds it: a name, `("DECIMAL", width, scale)` or
`("LIST", shape)`. The items of a list share the narrowest shape that holds all of them.
"""

from __future__ import annotations

import ctypes as c
import datetime as dt
import decimal
import reprlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any

from queryard.core.errors import QueryardError
from queryard.core.readable import several

from .capi import Decimal, Handle, HugeInt, Interval, library, take_text
from .errors import failure

_EPOCH_DAY = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1)
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)

Shape = str | tuple[Any, ...]

# duckdb_type
_IDS = {
    "NULL": 36,
    "BOOLEAN": 1,
    "INTEGER": 4,
    "BIGINT": 5,
    "HUGEINT": 16,
    "DOUBLE": 11,
    "VARCHAR": 17,
    "BLOB": 18,
    "DATE": 13,
    "TIME": 14,
    "TIMESTAMP": 12,
    "TIMESTAMP WITH TIME ZONE": 31,
    "INTERVAL": 15,
}
_DIGITS = {"BOOLEAN": 1, "INTEGER": 10, "BIGINT": 19, "HUGEINT": 38}


class WrongParameters(QueryardError):
    """Too few, too many, misnamed, or of a type that SQL does not know."""


def bind(prepared: Handle, parameters: Sequence[Any] | Mapping[str, Any]) -> None:
    """Give a prepared statement its parameters, by place or by name."""
    duck = library()
    count = int(duck.nparams(prepared))
    names = [take_text(duck.parameter_name(prepared, place)) for place in range(1, count + 1)]
    for place, given in enumerate(_in_order(names, parameters), start=1):
        value = unwrapped(given)
        with _freed(_make(value, shape_of(value)), duck.destroy_value) as handle:
            if duck.bind_value(prepared, place, handle):
                raise failure(f"DuckDB does not take {value!r} for parameter {names[place - 1]}")


def _in_order(names: list[str], parameters: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """The values in the order of the statement's parameters.

    >>> _in_order(["1", "2"], ["a", "b"]), _in_order(["x"], {"x": 1})
    (['a', 'b'], [1])
    """
    if isinstance(parameters, Mapping):
        wrong = set(names).symmetric_difference(parameters)
        if wrong:
            raise WrongParameters(
                f"the statement has the parameters {sorted(names)}, given were "
                f"{sorted(map(str, parameters))}; {sorted(map(str, wrong))} do not match"
            )
        return [parameters[name] for name in names]
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise WrongParameters(
            f"parameters come in a list, a tuple or a dict, got {parameters!r}; "
            f"write [{parameters!r}]"
        )
    if len(parameters) != len(names):
        raise WrongParameters(
            f"the statement has {several(len(names), 'parameter')}, {len(parameters)} were given"
        )
    # DuckDB names unnamed ones by their place; `$2` may come before `$1`.
    if all(name.isdigit() and int(name) <= len(names) for name in names):
        return [parameters[int(name) - 1] for name in names]
    return list(parameters)


def unwrapped(value: Any) -> Any:
    """A value without what NumPy and pandas put around it; what is missing to them is None.

    >>> import numpy as np
    >>> unwrapped([np.int64(3), np.datetime64("NaT"), np.array([1.5])])
    [3, None, [1.5]]
    """
    if isinstance(value, list | tuple):
        return [unwrapped(item) for item in value]
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if not (hasattr(value, "tolist") and hasattr(value, "dtype")):
        return value
    if (kind := str(value.dtype)) in ("datetime64[ns]", "timedelta64[ns]"):
        value = value.astype(kind.replace("ns", "us"))  # nanoseconds would become a number
    return unwrapped(value.tolist())


# --- shapes ----------------------------------------------------------------------------------


def shape_of(value: Any) -> Shape:
    """The SQL type that holds a value.

    >>> shape_of(1), shape_of([1, None, 2.5]), shape_of(decimal.Decimal("1.50"))
    ('INTEGER', ('LIST', 'DOUBLE'), ('DECIMAL', 3, 2))
    """
    match value:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int():
            return _integer_shape(value)
        case float():
            return "DOUBLE"
        case str() | uuid.UUID():
            return "VARCHAR"
        case bytes() | bytearray() | memoryview():
            return "BLOB"
        case dt.datetime():
            return "TIMESTAMP" if value.tzinfo is None else "TIMESTAMP WITH TIME ZONE"
        case dt.date():
            return "DATE"
        case dt.time():
            if value.tzinfo is not None:
                raise WrongParameters(f"{value!r} has a time zone; pass a datetime, or no zone")
            return "TIME"
        case dt.timedelta():
            return "INTERVAL"
        case decimal.Decimal():
            return _decimal_shape(value)
        case list() | tuple():
            nothing: Shape = "NULL"
            return ("LIST", reduce(_common, map(shape_of, value), nothing))
    raise WrongParameters(
        f"a {type(value).__name__} cannot be a parameter ({reprlib.repr(value)}); use None, "
        "bool, int, float, str, bytes, Decimal, date, time, datetime, timedelta, UUID, or a list "
        "of one of them"
    )


def _integer_shape(value: int) -> Shape:
    # As in DuckDB's own package: `round(x, ?)` and DATE + ? take no BIGINT.
    if -(2**31) <= value < 2**31:
        return "INTEGER"
    if -(2**63) <= value < 2**63:
        return "BIGINT"
    if -(2**127) <= value < 2**127:
        return "HUGEINT"
    raise WrongParameters(f"the integer {value} does not fit into 128 bits")


def _decimal_shape(value: decimal.Decimal) -> Shape:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return "DOUBLE"  # NaN and infinities
    scale = max(-exponent, 0)
    width = min(max(len(digits) + max(exponent, 0), scale + 1), max(38, len(digits)))
    if width > 38:
        raise WrongParameters(f"the decimal {value} has more than 38 digits")
    return ("DECIMAL", width, scale)


def _common(left: Shape, right: Shape) -> Shape:
    """The narrowest shape that holds both."""
    if left == right or right == "NULL":
        return left
    if left == "NULL":
        return right
    if left[0] == "LIST" and right[0] == "LIST":
        return ("LIST", _common(left[1], right[1]))
    for one, other in ((left, right), (right, left)):
        if one == "DOUBLE" and (other in _DIGITS or other[0] == "DECIMAL"):
            return one
        if one == "TIMESTAMP" and other == "DATE":
            return one
    if left in _DIGITS and right in _DIGITS:
        return max(str(left), str(right), key=lambda name: _DIGITS[name])
    numbers = [_as_decimal(shape) for shape in (left, right)]
    if None not in numbers:
        scale = max(shape[2] for shape in numbers if shape)
        width = max(shape[1] - shape[2] for shape in numbers if shape) + scale
        return ("DECIMAL", width, scale) if width <= 38 else "DOUBLE"
    raise WrongParameters(f"a list cannot hold {_text(left)} and {_text(right)} at once")


def _as_decimal(shape: Shape) -> tuple[Any, ...] | None:
    if shape[0] == "DECIMAL" and isinstance(shape, tuple):
        return shape
    return ("DECIMAL", _DIGITS[shape], 0) if isinstance(shape, str) and shape in _DIGITS else None


def _text(shape: Shape) -> str:
    if isinstance(shape, str):
        return shape
    return f"{_text(shape[1])}[]" if shape[0] == "LIST" else f"DECIMAL({shape[1]},{shape[2]})"


# --- DuckDB's values and types ---------------------------------------------------------------


def _make(value: Any, shape: Shape) -> Any:
    """A `duckdb_value` of the shape."""
    duck = library()
    if value is None:
        return duck.create_null_value()
    if isinstance(shape, tuple):
        return _list(value, shape[1]) if shape[0] == "LIST" else _decimal(value, *shape[1:])
    match shape:
        case "BOOLEAN":
            return duck.create_bool(value)
        case "INTEGER":
            return duck.create_int32(int(value))
        case "BIGINT":
            return duck.create_int64(int(value))
        case "HUGEINT":
            return duck.create_hugeint(_hugeint(int(value)))
        case "DOUBLE":
            return duck.create_double(float(value))
        case "VARCHAR":
            raw = _encoded(str(value))
            return duck.create_varchar_length(raw, len(raw))
        case "BLOB":
            raw = bytes(value)
            return duck.create_blob(raw, len(raw))
        case "DATE":
            return duck.create_date((value - _EPOCH_DAY).days)
        case "TIME":
            whole = dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
            return duck.create_time(whole // _MICROSECOND + value.microsecond)
        case "TIMESTAMP":
            moment = (
                value if isinstance(value, dt.datetime) else dt.datetime(*value.timetuple()[:3])
            )
            return duck.create_timestamp((moment - _EPOCH) // _MICROSECOND)
        case "TIMESTAMP WITH TIME ZONE":
            return duck.create_timestamp_tz((value - _EPOCH_UTC) // _MICROSECOND)
        case "INTERVAL":
            micros = (value - dt.timedelta(days=value.days)) // _MICROSECOND
            return duck.create_interval(Interval(0, value.days, micros))
    raise AssertionError(f"no value of shape {shape!r}")


def _hugeint(value: int) -> HugeInt:
    return HugeInt(value & (2**64 - 1), value >> 64)


def _decimal(value: Any, width: int, scale: int) -> Any:
    with decimal.localcontext(decimal.Context(prec=80)):
        number = int(
            decimal.Decimal(int(value) if isinstance(value, bool) else value).scaleb(scale)
        )
    return library().create_decimal(Decimal(width, scale, _hugeint(number)))


def _list(values: Sequence[Any], item: Shape) -> Any:
    duck = library()
    made = [_make(value, item) for value in values]
    try:
        with _freed(_type(item), duck.destroy_logical_type) as kind:
            return duck.create_list_value(kind, (Handle * len(made))(*made), len(made))
    finally:
        for value in made:
            duck.destroy_value(c.byref(Handle(value)))


def _type(shape: Shape) -> Any:
    """A `duckdb_logical_type`."""
    duck = library()
    if isinstance(shape, str):
        return duck.create_logical_type(_IDS[shape])
    if shape[0] == "DECIMAL":
        return duck.create_decimal_type(shape[1], shape[2])
    with _freed(_type(shape[1]), duck.destroy_logical_type) as inner:
        return duck.create_list_type(inner)


@contextmanager
def _freed(raw: Any, free: Callable[[Any], None]) -> Iterator[Handle]:
    if not raw:
        raise WrongParameters("DuckDB makes no value of this parameter")
    handle = Handle(raw)
    try:
        yield handle
    finally:
        free(c.byref(handle))


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WrongParameters(f"{text!r} is no valid text: {error.reason}") from None
