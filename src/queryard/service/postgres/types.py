"""DuckDB's types as PostgreSQL's: the number, the modifier, and the cast that Arrow needs first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from queryard.sql.catalog.quoting import identifier

from . import oids
from .replies import Field


@dataclass(frozen=True, slots=True)
class WireType:
    """How values of a type of DuckDB's are sent; `cast` is SQL with {} in the place of a column."""

    oid: int
    modifier: int = -1
    cast: str = ""


_PLAIN = {
    "BOOLEAN": oids.BOOL,
    "TINYINT": oids.INT2,
    "UTINYINT": oids.INT2,
    "SMALLINT": oids.INT2,
    "USMALLINT": oids.INT4,
    "INTEGER": oids.INT4,
    "UINTEGER": oids.INT8,
    "BIGINT": oids.INT8,
    "UBIGINT": oids.NUMERIC,
    "HUGEINT": oids.NUMERIC,
    "FLOAT": oids.FLOAT4,
    "DOUBLE": oids.FLOAT8,
    "DATE": oids.DATE,
    "TIME": oids.TIME,
    "TIME_NS": oids.TIME,
    "TIMESTAMP": oids.TIMESTAMP,
    "TIMESTAMP_S": oids.TIMESTAMP,
    "TIMESTAMP_MS": oids.TIMESTAMP,
    "TIMESTAMP_NS": oids.TIMESTAMP,
    "TIMESTAMP WITH TIME ZONE": oids.TIMESTAMPTZ,
    "INTERVAL": oids.INTERVAL,
    "VARCHAR": oids.TEXT,
    "NULL": oids.TEXT,
    '"NULL"': oids.TEXT,
    "UNKNOWN": oids.TEXT,
    "BLOB": oids.BYTEA,
    "UUID": oids.UUID,
    "JSON": oids.JSON,
}
# What Arrow cannot hold, or holds without its meaning, is sent as a text of DuckDB's.
_AS_TEXT = {"UHUGEINT": oids.NUMERIC, "BIGNUM": oids.NUMERIC, "TIME WITH TIME ZONE": oids.TIMETZ}
_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_LIST = re.compile(r"(.*)\[\d*\]", re.DOTALL)
_TO_TEXT = "CAST({} AS VARCHAR)"
_TO_TEXTS = "CAST({} AS VARCHAR[])"
_TO_JSON = "to_json({})"
# The name of an ENUM or a STRUCT may have megabytes; those are not remembered.
SHORT = 500


def wire_type(name: str) -> WireType:
    """How a type is sent.

    >>> wire_type("DECIMAL(18,3)")
    WireType(oid=1700, modifier=1179655, cast='')
    >>> wire_type("INTEGER[]"), wire_type("INTEGER[][]")
    (WireType(oid=1007, modifier=-1, cast=''), WireType(oid=114, modifier=-1, cast='to_json({})'))
    >>> wire_type("BIT")
    WireType(oid=25, modifier=-1, cast='CAST({} AS VARCHAR)')
    """
    return _wire_type(name) if len(name) <= SHORT else _wire_type.__wrapped__(name)


@lru_cache(maxsize=2_000)
def _wire_type(name: str) -> WireType:
    if (oid := _PLAIN.get(name)) is not None:
        return WireType(oid)
    if (oid := _AS_TEXT.get(name)) is not None:
        return WireType(oid, cast=_TO_TEXT)
    if (decimal := _DECIMAL.fullmatch(name)) is not None:
        width, scale = map(int, decimal.groups())
        return WireType(oids.NUMERIC, ((width << 16) | scale) + 4)
    if (of := _LIST.fullmatch(name)) is not None:
        return _array(of.group(1))
    if name.startswith(("STRUCT(", "MAP(", "UNION(")):
        return WireType(oids.JSON, cast=_TO_JSON)
    if name.startswith("ENUM("):
        return WireType(oids.TEXT)
    return WireType(oids.TEXT, cast=_TO_TEXT)


def _array(element: str) -> WireType:
    """Arrays have one dimension here: DuckDB's lists of lists may be ragged, PostgreSQL's not."""
    of = wire_type(element)
    array = oids.ARRAYS.get(of.oid)
    if array is None or of.oid == oids.JSON:
        return WireType(oids.JSON, cast=_TO_JSON)
    if of.cast:
        return WireType(array, cast=_TO_TEXTS)
    return WireType(array)


# What the types that clients name are in DuckDB; "" for those that any text is.
DUCKDB = {
    oids.BOOL: "BOOLEAN",
    oids.INT2: "SMALLINT",
    oids.INT4: "INTEGER",
    oids.INT8: "BIGINT",
    oids.OID: "UINTEGER",
    oids.FLOAT4: "FLOAT",
    oids.FLOAT8: "DOUBLE",
    oids.NUMERIC: "DECIMAL(38,10)",
    oids.DATE: "DATE",
    oids.TIME: "TIME",
    oids.TIMETZ: "TIME WITH TIME ZONE",
    oids.TIMESTAMP: "TIMESTAMP",
    oids.TIMESTAMPTZ: "TIMESTAMP WITH TIME ZONE",
    oids.INTERVAL: "INTERVAL",
    oids.BYTEA: "BLOB",
    oids.UUID: "UUID",
    oids.JSON: "JSON",
    oids.JSONB: "JSON",
    **dict.fromkeys((oids.TEXT, oids.VARCHAR, oids.BPCHAR, oids.NAME, oids.CHAR), "VARCHAR"),
    oids.UNKNOWN: "",
    0: "",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result: its name, and how it is sent."""

    name: str
    type: WireType

    def field(self, form: int) -> Field:
        oid = self.type.oid
        return Field(self.name, oid, oids.size_of(oid), self.type.modifier, form)


def columns_of(names: tuple[str, ...], types: tuple[str, ...]) -> tuple[Column, ...]:
    return tuple(Column(name, wire_type(kind)) for name, kind in zip(names, types, strict=True))


def with_casts(sql: str, columns: tuple[Column, ...]) -> str:
    """A query whose awkward columns are cast before Arrow sees them; itself, if it has none.

    >>> columns = columns_of(("b", "n"), ("BIT", "INTEGER"))
    >>> with_casts("SELECT b, n FROM t", columns)
    'SELECT CAST(c0 AS VARCHAR) AS "b", c1 AS "n" FROM (SELECT b, n FROM t\\n) AS q(c0, c1)'
    """
    if not any(column.type.cast for column in columns):
        return sql
    cells = [
        f"{(column.type.cast or '{}').format(f'c{place}')} AS {identifier(column.name)}"
        for place, column in enumerate(columns)
    ]
    names = ", ".join(f"c{place}" for place in range(len(columns)))
    return f"SELECT {', '.join(cells)} FROM ({sql}\n) AS q({names})"
