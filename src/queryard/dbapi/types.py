"""The type objects and constructors of PEP 249."""

from __future__ import annotations

import datetime as dt
import time

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:
    return dt.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:
    return dt.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:
    return dt.datetime(*time.localtime(ticks)[:6])


class TypeObject:
    """Equals every SQL type of its kind, which is what `Cursor.description` tells.

    >>> NUMBER == "DECIMAL(15,2)", STRING == "BIGINT"
    (True, False)
    """

    def __init__(self, name: str, *heads: str) -> None:
        self.name = name
        self._heads = frozenset(heads)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.name == other.name
        if isinstance(other, str):
            # Lists of something are no such thing.
            return not other.endswith("]") and other.partition("(")[0] in self._heads
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


STRING = TypeObject("STRING", "VARCHAR", "UUID", "ENUM", "JSON")
BINARY = TypeObject("BINARY", "BLOB", "BIT")
NUMBER = TypeObject(
    "NUMBER",
    "BOOLEAN",
    *(sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")),
    "HUGEINT",
    "UHUGEINT",
    "BIGNUM",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)
DATETIME = TypeObject(
    "DATETIME",
    "DATE",
    "TIME",
    "TIME_NS",
    "TIME WITH TIME ZONE",
    "TIMESTAMP",
    "TIMESTAMP_S",
    "TIMESTAMP_MS",
    "TIMESTAMP_NS",
    "TIMESTAMP WITH TIME ZONE",
    "INTERVAL",
)
ROWID = TypeObject("ROWID")
