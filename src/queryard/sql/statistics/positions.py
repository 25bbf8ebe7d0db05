"""Values on an axis of numbers, so that histograms and ranges of all types are computed alike.

>>> import datetime
>>> position(datetime.date(1970, 1, 11)), position(2.5), position("text")
(10.0, 2.5, None)
"""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY_ZERO = datetime.date(1970, 1, 1)

INTEGERS = frozenset(
    {
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
        "UHUGEINT",
    }
)
WITH_ZONE = "TIMESTAMP WITH TIME ZONE"
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_WIDTHS = {
    "BOOLEAN": 1.0,
    "TINYINT": 1.0,
    "UTINYINT": 1.0,
    "SMALLINT": 2.0,
    "USMALLINT": 2.0,
    "INTEGER": 4.0,
    "UINTEGER": 4.0,
    "FLOAT": 4.0,
    "DATE": 4.0,
    "BIGINT": 8.0,
    "UBIGINT": 8.0,
    "DOUBLE": 8.0,
    "TIME": 8.0,
    "HUGEINT": 16.0,
    "UHUGEINT": 16.0,
    "INTERVAL": 16.0,
    "UUID": 16.0,
}
TEXT_WIDTH = 16.0
"""What a text is taken for as long as it is not known: DuckDB's own size of a reference."""


def position(value: object) -> float | None:
    """Where a Python value lies on the axis; None for what has no place on it."""
    if isinstance(value, bool | int | float | Decimal):
        try:
            found = float(value)
        except OverflowError:
            return None
        return found if math.isfinite(found) else None
    if isinstance(value, datetime.datetime):
        aware = value.tzinfo is not None
        plain = value.astimezone(datetime.UTC).replace(tzinfo=None) if aware else value
        return (plain - _EPOCH).total_seconds()
    if isinstance(value, datetime.date):
        return float((value - _DAY_ZERO).days)
    if isinstance(value, datetime.time):
        return value.hour * 3600.0 + value.minute * 60 + value.second + value.microsecond / 1e6
    return None


def is_timestamp(type_: str) -> bool:
    """Whether a type is a point in time, of whatever resolution, with or without a zone."""
    return type_.startswith("TIMESTAMP")


def has_zone(type_: str) -> bool:
    """Whether a timestamp is a moment everywhere, not the reading of some clock."""
    return is_timestamp(type_) and ("ZONE" in type_ or "TZ" in type_)


def ordinary_sql(column: str, type_: str) -> str:
    """A quoted column with timestamps of every resolution as the ordinary one, in microseconds.

    >>> ordinary_sql('"t"', "TIMESTAMP_NS"), ordinary_sql('"n"', "BIGINT")
    ('CAST("t" AS TIMESTAMP)', '"n"')
    """
    if is_timestamp(type_) and type_ not in ("TIMESTAMP", WITH_ZONE):
        return f"CAST({column} AS {WITH_ZONE if has_zone(type_) else 'TIMESTAMP'})"
    return column


def can_be_infinite(type_: str) -> bool:
    """Whether values of a type may have no place on the axis."""
    return type_ in _FLOATS or type_ == "DATE" or is_timestamp(type_)


def position_sql(column: str, type_: str) -> str | None:
    """The same in SQL, for a quoted column of a DuckDB type; None where there is no axis.

    >>> position_sql('"d"', "DATE")
    'CAST("d" - DATE \\'1970-01-01\\' AS DOUBLE)'
    """
    if type_ in INTEGERS or type_ in _FLOATS or type_ == "BOOLEAN" or type_.startswith("DECIMAL"):
        inner = f"CAST({column} AS TINYINT)" if type_ == "BOOLEAN" else column
        return f"CAST({inner} AS DOUBLE)"
    if type_ == "DATE":
        return f"CAST({column} - DATE '1970-01-01' AS DOUBLE)"
    if is_timestamp(type_) or type_ == "TIME":
        return f"epoch({ordinary_sql(column, type_)})"
    return None


def value_sql(place: str, type_: str) -> str | None:
    """The value at a place on the axis, in SQL; None where there is no axis.

    >>> value_sql("p", "INTEGER")
    'CAST(round(p) AS INTEGER)'
    """
    if type_ in INTEGERS:
        return f"CAST(round({place}) AS {type_})"
    if type_ in _FLOATS or type_.startswith("DECIMAL"):
        return f"CAST({place} AS {type_})"
    if type_ == "DATE":
        return f"(DATE '1970-01-01' + CAST(floor({place}) AS INTEGER))"
    if type_ == "TIMESTAMP":
        return f"make_timestamp(CAST({place} * 1000000 AS BIGINT))"
    return None


def fixed_width_bytes(type_: str) -> float | None:
    """Bytes of every value of a type, None where they differ.

    >>> fixed_width_bytes("DECIMAL(15,2)"), fixed_width_bytes("VARCHAR")
    (8.0, None)
    """
    if type_ in _WIDTHS:
        return _WIDTHS[type_]
    if is_timestamp(type_):
        return 8.0
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_):
        digits = int(found[1])
        return 2.0 if digits <= 4 else 4.0 if digits <= 9 else 8.0 if digits <= 18 else 16.0
    return None


def most_distinct(type_: str, low: object, high: object) -> float:
    """How many values a column of this type and range can have at most.

    >>> most_distinct("INTEGER", 1, 7), most_distinct("VARCHAR", "a", "b")
    (7.0, inf)
    >>> most_distinct("VARCHAR", "a", "a"), most_distinct("DOUBLE", 0.0, 0.0)
    (1.0, inf)
    >>> most_distinct("DECIMAL(15,2)", Decimal("0.00"), Decimal("0.10"))
    11.0
    """
    if type_ == "BOOLEAN":
        return 2.0
    # The range of fractional numbers leaves out infinite ones and NaN.
    if low is None or high is None or isinstance(low, float):
        return math.inf
    if low == high:
        return 1.0
    # On the values themselves: as positions, large numbers that differ may be the same.
    if isinstance(low, int) and isinstance(high, int):
        return float(high - low + 1)
    if type_ == "DATE" and isinstance(low, datetime.date) and isinstance(high, datetime.date):
        return float((high - low).days + 1)
    if isinstance(low, Decimal) and isinstance(high, Decimal):
        found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_)
        return math.inf if found is None else float((high - low).scaleb(int(found[2])) + 1)
    return math.inf
