"""The rows of the catalogs that everything else is told from, made of the facts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from .objects import (
    INFORMATION_SCHEMA,
    OWNER,
    PG_CATALOG,
    Objects,
)
from .relations import Relation, answered
from .rows_keys import (
    pg_attrdef,
    pg_constraint,
    pg_depend,
    pg_description,
    pg_index,
    pg_rewrite,
)
from .rows_static import (
    BTREE,
    HEAP,
    pg_am,
    pg_collation,
    pg_language,
    pg_opclass,
    pg_proc,
    pg_tablespace,
    pg_type,
)
from .texts import quote_ident
from .types import (
    column_type,
    held_as,
    types_by_name,
    types_by_oid,
)

UTF8 = 6
_PAGE_BYTES = 8192

Columns = Mapping[str, Any]
"""The columns of a relation by name: a list has a value per row, anything else is in every row."""


def table_of(relation: Relation, rows: int, columns: Columns) -> pa.Table:
    """A relation as an Arrow table; columns that are not given are NULL."""
    unknown = columns.keys() - {column.name for column in relation.columns}
    if unknown:
        raise ValueError(f"{relation.key} has no columns {sorted(unknown)}")
    made = {}
    for column in relation.columns:
        value = columns.get(column.name)
        kind = arrow_type(held_as(column.type))
        if isinstance(value, list):
            made[column.name] = pa.array(value, kind)
        else:
            made[column.name] = pa.array([value] * rows, kind)
    return pa.table(made)


@cache
def arrow_type(held: str) -> Any:
    """The Arrow type of a type of DuckDB that the catalogs use."""
    if held.endswith("[]"):
        return pa.list_(arrow_type(held[:-2]))
    return {
        "BIGINT": pa.int64(),
        "BLOB": pa.binary(),
        "BOOLEAN": pa.bool_(),
        "DOUBLE": pa.float64(),
        "FLOAT": pa.float32(),
        "INTEGER": pa.int32(),
        "SMALLINT": pa.int16(),
        "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
        "VARCHAR": pa.string(),
    }[held]


def pg_namespace(objects: Objects) -> tuple[int, Columns]:
    names = list(objects.namespaces)
    return len(names), {
        "oid": list(objects.namespaces.values()),
        "nspname": names,
        "nspowner": OWNER,
    }


def pg_class(objects: Objects) -> tuple[int, Columns]:
    system, tables, indexes = answered(), objects.tables, objects.indexed
    namespaces = {"pg_catalog": PG_CATALOG, "information_schema": INFORMATION_SCHEMA}
    kinds = [found.kind for found in system]
    kinds += ["v" if table.facts.view else "r" for table in tables]
    kinds += ["i"] * len(indexes)
    checks = _counts(objects, "check")
    others: list[int] = [0] * len(indexes)
    acl = f"{quote_ident(objects.facts.user)}=r/{quote_ident(objects.facts.user)}"
    return len(kinds), {
        "oid": [found.oid for found in system]
        + [table.oid for table in tables]
        + [found.index for found in indexes],
        "relname": [found.name for found in system]
        + [table.facts.name for table in tables]
        + [found.index_name for found in indexes],
        "relnamespace": [namespaces[found.schema] for found in system]
        + [table.namespace for table in tables]
        + [found.table.namespace for found in indexes],
        "reltype": 0,
        "reloftype": 0,
        "relowner": OWNER,
        "relam": [{"r": HEAP, "i": BTREE, "v": 0}[kind] for kind in kinds],
        "relfilenode": 0,
        "reltablespace": 0,
        "relpages": [0] * len(system)
        + [math.ceil((table.facts.bytes or 0) / _PAGE_BYTES) for table in tables]
        + others,
        # PostgreSQL says -1 for "not known".
        "reltuples": [-1.0] * len(system)
        + [-1.0 if table.facts.rows is None else table.facts.rows for table in tables]
        + [-1.0 if f.table.facts.rows is None else f.table.facts.rows for f in indexes],
        "relallvisible": 0,
        "reltoastrelid": 0,
        "relhasindex": [False] * len(system)
        + [table.oid in objects.with_index for table in tables]
        + [False] * len(indexes),
        "relisshared": False,
        "relpersistence": "p",
        "relkind": kinds,
        "relnatts": [len(found.columns) for found in system]
        + [len(table.facts.columns) for table in tables]
        + [len(found.columns) for found in indexes],
        "relchecks": [0] * len(system) + [checks.get(table.oid, 0) for table in tables] + others,
        "relhasrules": [kind == "v" for kind in kinds],
        # PostgreSQL keeps foreign keys by triggers; psql asks for keys only where there are some.
        "relhastriggers": [False] * len(system)
        + [table.oid in objects.with_foreign_key for table in tables]
        + [False] * len(indexes),
        "relhassubclass": False,
        "relrowsecurity": False,
        "relforcerowsecurity": False,
        "relispopulated": True,
        "relreplident": ["d" if kind == "r" else "n" for kind in kinds],
        "relispartition": False,
        "relrewrite": 0,
        # Without a list the owner may do all with a table.
        "relacl": [None] * len(system)
        + [None if table.facts.writable else [acl] for table in tables]
        + [None] * len(indexes),
        "relfrozenxid": 0,
        "relminmxid": 0,
    }


def _counts(objects: Objects, kind: str) -> dict[int, int]:
    counts: dict[int, int] = {}
    for found in objects.constraints:
        if found.key.kind == kind:
            counts[found.table.oid] = counts.get(found.table.oid, 0) + 1
    return counts


@cache
def _system_attributes() -> tuple[tuple[Any, ...], ...]:
    """The columns of the catalogs themselves, in the order of `_ATTRIBUTE`."""
    named = types_by_name()
    return tuple(
        (found.oid, column.name, named[column.type].oid, number, -1, 0, column.not_null, False)
        for found in answered()
        for number, column in enumerate(found.columns, 1)
    )


_ATTRIBUTE = (
    "attrelid",
    "attname",
    "atttypid",
    "attnum",
    "atttypmod",
    "attndims",
    "attnotnull",
    "atthasdef",
)


def pg_attribute(objects: Objects) -> tuple[int, Columns]:
    found: list[tuple[Any, ...]] = list(_system_attributes())
    for table in objects.tables:
        for number, column in enumerate(table.facts.columns, 1):
            type_ = column_type(column.type)
            found.append(
                (
                    table.oid,
                    column.name,
                    type_.oid,
                    number,
                    type_.modifier,
                    type_.dimensions,
                    column.not_null,
                    column.default is not None,
                )
            )
    for index in objects.indexed:
        for number, place in enumerate(index.columns, 1):
            column = index.table.facts.columns[place - 1]
            type_ = column_type(column.type)
            found.append(
                (index.index, column.name, type_.oid, number, type_.modifier, 0, False, False)
            )
    by_oid = types_by_oid()
    types = [by_oid[row[2]] for row in found]
    columns: dict[str, Any] = {
        name: [row[place] for row in found] for place, name in enumerate(_ATTRIBUTE)
    }
    return len(found), columns | {
        "attstattarget": -1,
        "attlen": [type_.length for type_ in types],
        "attcacheoff": -1,
        "attbyval": [type_.by_value for type_ in types],
        "attalign": [type_.align for type_ in types],
        "attstorage": [type_.storage for type_ in types],
        "attcompression": "",
        "atthasmissing": False,
        "attidentity": "",
        "attgenerated": "",
        "attisdropped": False,
        "attislocal": True,
        "attinhcount": 0,
        "attcollation": [type_.collation for type_ in types],
    }


def pg_database(objects: Objects) -> tuple[int, Columns]:
    return 1, {
        "oid": objects.database,
        "datname": objects.facts.database,
        "datdba": OWNER,
        "encoding": UTF8,
        "datlocprovider": "c",
        "datistemplate": False,
        "datallowconn": True,
        "datconnlimit": -1,
        "datfrozenxid": 0,
        "datminmxid": 0,
        "dattablespace": 1663,
        "datcollate": "C.UTF-8",
        "datctype": "C.UTF-8",
    }


def pg_roles(objects: Objects) -> tuple[int, Columns]:
    return 1, {
        "rolname": objects.facts.user,
        "rolsuper": False,
        "rolinherit": True,
        "rolcreaterole": False,
        "rolcreatedb": False,
        "rolcanlogin": True,
        "rolreplication": False,
        "rolconnlimit": -1,
        "rolpassword": "********",
        "rolbypassrls": False,
        "oid": OWNER,
    }


BASE = {
    made.__name__: made
    for made in (
        pg_am,
        pg_attrdef,
        pg_attribute,
        pg_class,
        pg_collation,
        pg_constraint,
        pg_database,
        pg_depend,
        pg_description,
        pg_index,
        pg_language,
        pg_namespace,
        pg_opclass,
        pg_proc,
        pg_rewrite,
        pg_roles,
        pg_tablespace,
        pg_type,
    )
}
