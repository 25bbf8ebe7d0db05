"""Python values for the rows of an answer: as DuckDB's own Python package gives them.

Arrow has no integers of 128 bits, no UUIDs and no bit strings, and its dates may lie beyond those
of Python. What Python cannot hold (the year 294247) is told as text. An INTERVAL becomes a
timedelta, in which a month is 30 days; where values are written down, its text is used instead.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from .type_parts import is_unnamed, parts_of

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_EPOCH = dt.datetime(1970, 1, 1)
_LAST_DAY = dt.date.max.toordinal()
# How many of a unit of Arrow's are a microsecond: (numerator, denominator).
_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_DAY_MICROS = 86_400_000_000
# DuckDB's infinities.
_INFINITE_DAY = 2**31 - 1
_INFINITE_TIME = 2**63 - 1


class _Form(NamedTuple):
    """What becomes of an interval of months, days and nanoseconds, and of a tuple."""

    interval: Callable[[Any], Any]
    has_tuples: bool


def python_values(column: Any, sql_type: str) -> list[Any]:
    """The values of an Arrow column of a known SQL type.

    >>> python_values(pa.array([1, None]), "BIGINT")
    [1, None]
    """
    return _converted(column, sql_type, _Form(_timedelta, has_tuples=True))


def written_values(column: Any, sql_type: str) -> list[Any]:
    """The same for files: intervals are texts, as DuckDB writes them.

    >>> written_values(pa.array([pa.MonthDayNano([14, -3, 0])]), "INTERVAL")
    ['1 year 2 months -3 days']
    """
    return _converted(column, sql_type, _Form(interval_text, has_tuples=False))


def _converted(column: Any, sql_type: str, form: _Form) -> list[Any]:
    if not len(column):
        return []  # Arrow would import pandas to make an empty array, which takes a second
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # more than one array can hold
        return [value for chunk in column.chunks for value in _values(chunk, sql_type, form)]
    return _values(column, sql_type, form)


def _values(array: Any, sql_type: str, form: _Form) -> list[Any]:
    """The values of an array; of a type of a user's own, Arrow's type alone tells what it is."""
    convert = _BY_SQL_TYPE.get(sql_type)
    if convert is not None:
        return _mapped(array, convert)
    kind = array.type
    if pa.types.is_date32(kind):
        return _mapped(array.cast(pa.int32()), _date)
    if pa.types.is_timestamp(kind):
        return _timestamps(array)
    if pa.types.is_time(kind):
        return _times(array)
    if kind == pa.month_day_nano_interval():
        return _mapped(array, form.interval)
    if pa.types.is_map(kind):
        return _maps(array, sql_type, form)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array, sql_type, form)
    if pa.types.is_fixed_size_list(kind):
        return _arrays(array, sql_type, form)
    if pa.types.is_struct(kind):
        return _structs(array, sql_type, form)
    plain: list[Any] = array.to_pylist()
    return plain


def _mapped(raw: Any, convert: Callable[[Any], Any]) -> list[Any]:
    return [None if v is None else convert(v) for v in raw.to_pylist()]


# --- dates and times -----------------------------------------------------------------------------


def _date(days: int) -> dt.date | str:
    """
    >>> _date(0), _date(2932896), _date(2147483646)
    (datetime.date(1970, 1, 1), datetime.date(9999, 12, 31), '5881580-07-10')
    """
    ordinal = days + _EPOCH_DAY
    if 1 <= ordinal <= _LAST_DAY:
        return dt.date.fromordinal(ordinal)
    if days == _INFINITE_DAY:
        return dt.date.max
    if days == -_INFINITE_DAY:
        return dt.date.min
    return _far_date(days)


def _far_date(days: int) -> str:
    """A date outside Python's years, by the calendar's cycle of 400 years."""
    cycles, inside = divmod(days + _EPOCH_DAY - 1, 146_097)
    near = dt.date.fromordinal(inside + 1)
    year = near.year + 400 * cycles
    text = f"{near.month:02d}-{near.day:02d}"
    return f"{year:04d}-{text}" if year > 0 else f"{1 - year:04d}-{text} (BC)"


def _timestamps(array: Any) -> list[Any]:
    up, down = _MICROS[array.type.unit]
    zone = dt.UTC if array.type.tz is not None else None
    local = None if zone is None else _zone(array.type.tz)

    def convert(raw: int) -> dt.datetime | str:
        if abs(raw) == _INFINITE_TIME:
            edge = dt.datetime.max if raw > 0 else dt.datetime.min
            return edge.replace(tzinfo=zone)
        micros = raw * up // down
        days, rest = divmod(micros, _DAY_MICROS)
        date = _date(days)
        if isinstance(date, str):
            clock = (dt.datetime.min + dt.timedelta(microseconds=rest)).time()
            time = f"{clock:%H:%M:%S}{_fraction(clock.microsecond)}"
            return f"{date} {time}{'' if zone is None else '+00'}"
        moment = _EPOCH + dt.timedelta(days=days, microseconds=rest)
        if zone is None:
            return moment
        try:
            return moment.replace(tzinfo=zone).astimezone(local)
        except OverflowError:  # local time is in the year 0 or 10000
            return moment.replace(tzinfo=zone)

    return _mapped(array.cast(pa.int64()), convert)


def _zone(name: str) -> dt.tzinfo:
    """A time zone by its name; where this machine does not know it, UTC, which is the same time."""
    import zoneinfo

    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        return dt.UTC


def _times(array: Any) -> list[Any]:
    up, down = _MICROS[array.type.unit]
    raw = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())

    def convert(value: int) -> dt.time | str:
        micros = value * up // down
        if micros >= _DAY_MICROS:
            return "24:00:00"  # the end of a day, which Python does not know
        return (dt.datetime.min + dt.timedelta(microseconds=micros)).time()

    return _mapped(raw, convert)


def _timedelta(value: Any) -> dt.timedelta:
    """A month is 30 days, as to DuckDB."""
    days = value.days + 30 * value.months
    return dt.timedelta(days=days, microseconds=value.nanoseconds // 1_000)


def interval_text(value: Any) -> str:
    """Months, days and time, which are not the same everywhere in the year, as DuckDB writes them.

    >>> interval_text(pa.MonthDayNano([-1, 1, 90_061_500_000_000]))
    '-1 month 1 day 25:01:01.5'
    >>> interval_text(pa.MonthDayNano([0, 0, 0]))
    '00:00:00'
    """
    years, months = divmod(abs(value.months), 12)
    sign = -1 if value.months < 0 else 1
    parts = [
        f"{count} {unit}{'' if abs(count) == 1 else 's'}"
        for count, unit in ((sign * years, "year"), (sign * months, "month"), (value.days, "day"))
        if count
    ]
    micros = value.nanoseconds // 1_000
    if micros or not parts:
        seconds, fraction = divmod(abs(micros), 1_000_000)
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        parts.append(f"{'-' if micros < 0 else ''}{clock}{_fraction(fraction)}")
    return " ".join(parts)


def _fraction(micros: int) -> str:
    return f".{micros:06d}".rstrip("0") if micros else ""


# --- nested --------------------------------------------------------------------------------------


def _parts(sql_type: str, count: int) -> tuple[str, ...]:
    """The types inside; "" where the name does not tell them."""
    found = parts_of(sql_type)
    return found if len(found) == count else ("",) * count


def _lists(array: Any, sql_type: str, form: _Form) -> list[Any]:
    (inside,) = _parts(sql_type, 1)
    children = _values(array.flatten(), inside, form)
    found: list[Any] = []
    at = 0
    for length in pc.list_value_length(array).to_pylist():
        if length is None:
            found.append(None)
        else:
            found.append(children[at : at + length])
            at += length
    return found


def _arrays(array: Any, sql_type: str, form: _Form) -> list[Any]:
    size = array.type.list_size
    (inside,) = _parts(sql_type, 1)
    children = iter(_values(array.flatten(), inside, form))  # without those of NULL
    return [
        tuple(next(children) for _ in range(size)) if is_there else None
        for is_there in array.is_valid().to_pylist()
    ]


def _structs(array: Any, sql_type: str, form: _Form) -> list[Any]:
    fields = array.flatten()
    names = [array.type.field(i).name for i in range(array.type.num_fields)]
    inside = _parts(sql_type, len(fields))
    columns = [_values(field, kind, form) for field, kind in zip(fields, inside, strict=True)]
    valid = array.is_valid().to_pylist()
    if not columns:
        return [{} if is_there else None for is_there in valid]
    rows = zip(*columns, strict=True)
    as_tuples = form.has_tuples and is_unnamed(sql_type)
    return [
        None if not is_there else row if as_tuples else dict(zip(names, row, strict=True))
        for is_there, row in zip(valid, rows, strict=True)
    ]


def _maps(array: Any, sql_type: str, form: _Form) -> list[Any]:
    # The children of an array that was cut are still those of the whole.
    first, *ends = array.offsets.to_pylist()
    length = (ends[-1] if ends else first) - first
    of_keys, of_values = _parts(sql_type, 2)
    keys = _values(array.keys.slice(first, length), of_keys, form)
    values = _values(array.items.slice(first, length), of_values, form)
    found: list[Any] = []
    begin = 0
    for is_there, end in zip(array.is_valid().to_pylist(), ends, strict=True):
        part = slice(begin, end - first)
        found.append(_map(keys[part], values[part]) if is_there else None)
        begin = end - first
    return found


def _map(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    try:
        return dict(zip(keys, values, strict=True))
    except TypeError:  # keys that cannot be looked up, such as lists
        return {"key": keys, "value": values}


# --- types that Arrow lacks ----------------------------------------------------------------------


def _unsigned(value: decimal.Decimal | float) -> int:
    # Arrow's decimal of these bits has a sign.
    whole = int(value)
    return whole if whole >= 0 else whole + 2**128


def _bits(raw: bytes) -> str:
    """A BIT: the first byte says how many bits of the second are not used.

    >>> _bits(bytes([3, 0b11110101]))
    '10101'
    """
    return "".join(f"{byte:08b}" for byte in raw[1:])[raw[0] :]


def _bignum(raw: bytes) -> str:
    """A BIGNUM, in decimal digits: three bytes of header, then the number, big end first.

    Of a negative number all bits are inverted.
    """
    negative = not raw[0] & 0x80
    body = bytes(byte ^ 0xFF for byte in raw[3:]) if negative else raw[3:]
    number = int.from_bytes(body, "big")
    return _digits(-number if negative else number)


def _digits(number: int) -> str:
    # Python refuses to write integers of more than 4,300 digits; Decimal does not.
    with decimal.localcontext(decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX)):
        return str(number) if abs(number) < 10**4000 else f"{decimal.Decimal(number):f}"


_BY_SQL_TYPE: dict[str, Callable[[Any], Any]] = {
    "HUGEINT": int,
    "UHUGEINT": _unsigned,
    "UUID": lambda text: text if isinstance(text, uuid.UUID) else uuid.UUID(text),
    "BIT": lambda raw: _bits(raw) if isinstance(raw, bytes) else raw,
    "BIGNUM": lambda raw: _bignum(raw) if isinstance(raw, bytes) else raw,
}
