"""PostgreSQL's types: their rows in `pg_type`, their names, and the types of DuckDB they stand for.

Within the catalog a type is called by its `typname`: `int4`, `name`, `_text` for text[].
"""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib import resources
from typing import NamedTuple


def read_data(name: str) -> str:
    """A file of facts about PostgreSQL, as `tools.postgres_catalog_data` wrote it."""
    folder = resources.files("queryard.service.postgres.catalog") / "data"
    return (folder / name).read_text(encoding="utf-8")


class PgType(NamedTuple):
    """A type as `pg_type` has it; `formatted` is its name in SQL."""

    name: str
    oid: int
    length: int
    by_value: bool
    element: int
    array: int
    align: str
    storage: str
    collation: int
    category: str
    formatted: str


@cache
def type_rows() -> tuple[dict[str, str], ...]:
    """All types, as texts."""
    return tuple(csv.DictReader(read_data("types.csv").splitlines()))


@cache
def types_by_name() -> dict[str, PgType]:
    return {
        row["typname"]: PgType(
            row["typname"],
            int(row["oid"]),
            int(row["typlen"]),
            row["typbyval"] == "True",
            int(row["typelem"]),
            int(row["typarray"]),
            row["typalign"],
            row["typstorage"],
            int(row["typcollation"]),
            row["typcategory"],
            row["formatted"],
        )
        for row in type_rows()
    }


@cache
def types_by_oid() -> dict[int, PgType]:
    return {found.oid: found for found in types_by_name().values()}


def oid_of(name: str) -> int:
    """
    >>> oid_of("int4"), oid_of("_text")
    (23, 1009)
    """
    return types_by_name()[name].oid


def array_of(name: str) -> str:
    """The array type of a type; an array of arrays is the same type in PostgreSQL."""
    return name if name.startswith("_") else f"_{name}"


def element_of(name: str | None) -> str | None:
    """The type of the elements of an array or vector, or None.

    >>> element_of("_oid"), element_of("int2vector"), element_of("text")
    ('oid', 'int2', None)
    """
    if name in _VECTORS:
        return _VECTORS[name]
    return name[1:] if name is not None and name.startswith("_") else None


_VECTORS = {"int2vector": "int2", "oidvector": "oid"}

# How else types are called in SQL, and the domains of information_schema.
_SYNONYMS = {
    "bigint": "int8",
    "boolean": "bool",
    "bit varying": "varbit",
    "cardinal_number": "int4",
    "character": "bpchar",
    "character varying": "varchar",
    "character_data": "varchar",
    "decimal": "numeric",
    "double": "float8",
    "double precision": "float8",
    "float": "float8",
    "int": "int4",
    "integer": "int4",
    "real": "float4",
    "smallint": "int2",
    "sql_identifier": "name",
    "string": "text",
    "time with time zone": "timetz",
    "time without time zone": "time",
    "time_stamp": "timestamptz",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "yes_or_no": "varchar",
}


def type_named(text: str) -> str | None:
    """The `typname` that a name in SQL means, or None.

    >>> type_named("INTEGER"), type_named("pg_catalog.int4"), type_named("character varying(10)[]")
    ('int4', 'int4', '_varchar')
    >>> type_named('"char"'), type_named("char"), type_named("hstore")
    ('char', 'bpchar', None)
    """
    name = text.strip().lower()
    dimensions = re.search(r"(\s*\[\d*\])+$", name)
    if dimensions:
        name = name[: dimensions.start()]
    name = re.sub(r"\s*\([\d\s,]*\)", "", name)
    for schema in ("pg_catalog.", "information_schema."):
        name = name.removeprefix(schema)
    if name == "char":
        name = "bpchar"
    name = name.strip('"')
    name = _SYNONYMS.get(name, name)
    if name not in types_by_name():
        return None
    return array_of(name) if dimensions else name


# The types of DuckDB in which the values of a type are held.
_HELD = {
    "bool": "BOOLEAN",
    "bytea": "BLOB",
    "cid": "BIGINT",
    "date": "DATE",
    "float4": "FLOAT",
    "float8": "DOUBLE",
    "int2": "SMALLINT",
    "int2vector": "SMALLINT[]",
    "int4": "INTEGER",
    "int8": "BIGINT",
    "interval": "INTERVAL",
    "json": "JSON",
    "jsonb": "JSON",
    "numeric": "DECIMAL(38,6)",
    "oid": "BIGINT",
    "oidvector": "BIGINT[]",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "uuid": "UUID",
    "xid": "BIGINT",
}

REGISTERED = frozenset(
    {"regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"}
)
"""Types whose values are OIDs and whose texts are the names of what the OIDs mean."""

TEXTS = frozenset({"text", "varchar", "name", "bpchar", "char", "unknown", "cstring"})
INTEGERS = frozenset({"int2", "int4", "int8", "oid", "xid", "cid"})


def held_as(name: str) -> str:
    """The type of DuckDB that holds values of a type.

    >>> held_as("_oid"), held_as("regclass"), held_as("name")
    ('BIGINT[]', 'BIGINT', 'VARCHAR')
    """
    if name in _HELD:
        return _HELD[name]
    if name in REGISTERED:
        return "BIGINT"
    if name.startswith("_"):
        return f"{held_as(name[1:])}[]"
    if name == "anyarray":
        return "VARCHAR[]"
    return "VARCHAR"


class ColumnType(NamedTuple):
    """The type of a column in PostgreSQL: an OID, and what `atttypmod` says of its size."""

    oid: int
    modifier: int = -1
    dimensions: int = 0


_FROM_DUCKDB = {
    "BIGINT": "int8",
    "BIGNUM": "numeric",
    "BIT": "text",
    "BLOB": "bytea",
    "BOOLEAN": "bool",
    "DATE": "date",
    "DOUBLE": "float8",
    "FLOAT": "float4",
    "HUGEINT": "numeric",
    "INTEGER": "int4",
    "INTERVAL": "interval",
    "JSON": "json",
    "SMALLINT": "int2",
    "TIME": "time",
    "TIME WITH TIME ZONE": "timetz",
    "TIME_NS": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TINYINT": "int2",
    "UBIGINT": "numeric",
    "UHUGEINT": "numeric",
    "UINTEGER": "int8",
    "USMALLINT": "int4",
    "UTINYINT": "int2",
    "UUID": "uuid",
    "VARCHAR": "text",
}

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)$")
_LIST = re.compile(r"(.*)\[\d*\]$", re.DOTALL)


def column_type(duckdb: str) -> ColumnType:
    """The type that a client is told for a type of DuckDB.

    Lists of lists, structs, maps and unions are sent as JSON; what else is not known, as text.

    >>> column_type("DECIMAL(18,3)")
    ColumnType(oid=1700, modifier=1179655, dimensions=0)
    >>> column_type("INTEGER[]").oid, column_type("STRUCT(a INTEGER)").oid
    (1007, 114)
    """
    plain = _FROM_DUCKDB.get(duckdb)
    if plain is not None:
        return ColumnType(oid_of(plain))
    decimal = _DECIMAL.match(duckdb)
    if decimal:
        precision, scale = int(decimal[1]), int(decimal[2])
        return ColumnType(oid_of("numeric"), ((precision << 16) | scale) + 4)
    listed = _LIST.match(duckdb)
    if listed:
        element = column_type(listed[1])
        found = types_by_oid()[element.oid]
        if element.dimensions or found.name == "json" or not found.array:
            return ColumnType(oid_of("json"))
        return ColumnType(found.array, element.modifier, 1)
    if duckdb.startswith(("STRUCT(", "MAP(", "UNION(")):
        return ColumnType(oid_of("json"))
    return ColumnType(oid_of("text"))


def type_of_values(duckdb: str) -> str:
    """The name of the type that a client is told for a type of DuckDB.

    >>> type_of_values("VARCHAR[]")
    '_text'
    """
    return types_by_oid()[column_type(duckdb).oid].name


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """A type's name in SQL with its size, as PostgreSQL's `format_type`.

    >>> format_type(1700, 1179655), format_type(1043, 14), format_type(1009, None)
    ('numeric(18,3)', 'character varying(10)', 'text[]')
    >>> format_type(999999, None), format_type(0, None), format_type(None, 3)
    ('???', '-', None)
    """
    if oid is None:
        return None
    if oid == 0:
        return "-"
    found = types_by_oid().get(oid)
    if found is None:
        return "???"
    if found.name.startswith("_"):
        element = format_type(found.element, modifier)
        return f"{element}[]"
    if modifier is None or modifier < 0:
        # Without a length `character` would mean a length of one.
        return "bpchar" if found.name == "bpchar" and modifier is not None else found.formatted
    if found.name == "numeric":
        size = modifier - 4
        return f"numeric({size >> 16},{size & 0xFFFF})"
    if found.name in ("varchar", "bpchar"):
        return f"{found.formatted}({modifier - 4})"
    return found.formatted


def array_elements(text: str) -> list[str | None]:
    """The elements of an array of one dimension in PostgreSQL's text form.

    Spaces around elements do not count. A text of another form is a ValueError.

    >>> array_elements('{a, "b c" ,NULL,"x\\\\"y","NULL"}')
    ['a', 'b c', None, 'x"y', 'NULL']
    >>> array_elements("{}"), array_elements('{""}')
    ([], [''])
    """
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}") and len(body) > 1):
        raise ValueError(f"malformed array literal: {text!r}")
    found: list[str | None] = []
    rest = body[1:-1].strip()
    while rest:
        element = _ELEMENT.match(rest)
        if element is None:
            raise ValueError(f"malformed array literal: {text!r}")
        quoted, bare, comma = element.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            found.append(None if bare.upper() == "NULL" else re.sub(r"\\(.)", r"\1", bare))
        rest = rest[element.end() :]
        if bool(rest) != bool(comma):
            raise ValueError(f"malformed array literal: {text!r}")
    return found


_ELEMENT = re.compile(
    r"""\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^\s,"{}\\]|\\.)(?:(?:[^,"{}\\]|\\.)*(?:[^\s,"{}\\]|\\.))?))\s*(,?)""",
    re.DOTALL,
)
