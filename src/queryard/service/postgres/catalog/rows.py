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
from .relations import Relation, answered, relations
from .rows_static import (
    BTREE,
    HEAP,
    default_opclass,
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


def pg_attrdef(objects: Objects) -> tuple[int, Columns]:
    found = [
        (table.oid, number, column.default)
        for table in objects.tables
        for number, column in enumerate(table.facts.columns, 1)
        if column.default is not None
    ]
    return len(found), {
        "oid": list(range(1, len(found) + 1)),
        "adrelid": [row[0] for row in found],
        "adnum": [row[1] for row in found],
        "adbin": [row[2] for row in found],
    }


def pg_index(objects: Objects) -> tuple[int, Columns]:
    found = objects.indexed
    types = [
        [types_by_oid()[column_type(f.table.facts.columns[n - 1].type).oid] for n in f.columns]
        for f in found
    ]
    primary = [f.key.kind == "primary" for f in found]
    return len(found), {
        "indexrelid": [f.index for f in found],
        "indrelid": [f.table.oid for f in found],
        "indnatts": [len(f.columns) for f in found],
        "indnkeyatts": [len(f.columns) for f in found],
        "indisunique": True,
        "indnullsnotdistinct": False,
        "indisprimary": primary,
        "indisexclusion": False,
        "indimmediate": True,
        "indisclustered": False,
        "indisvalid": True,
        "indcheckxmin": False,
        "indisready": True,
        "indislive": True,
        "indisreplident": False,
        "indkey": [list(f.columns) for f in found],
        "indcollation": [[type_.collation for type_ in row] for row in types],
        "indclass": [[default_opclass().get(type_.oid, 0) for type_ in row] for row in types],
        "indoption": [[0] * len(f.columns) for f in found],
    }


_CONSTRAINT_KINDS = {"primary": "p", "unique": "u", "foreign": "f", "check": "c"}


def pg_constraint(objects: Objects) -> tuple[int, Columns]:
    found = objects.constraints
    foreign = [f.key.kind == "foreign" for f in found]

    def if_foreign(value: str) -> list[str]:
        return [value if is_one else " " for is_one in foreign]

    return len(found), {
        "oid": [f.oid for f in found],
        "conname": [f.name for f in found],
        "connamespace": [f.table.namespace for f in found],
        "contype": [_CONSTRAINT_KINDS[f.key.kind] for f in found],
        "condeferrable": False,
        "condeferred": False,
        "convalidated": True,
        "conrelid": [f.table.oid for f in found],
        "contypid": 0,
        "conindid": [f.index or f.target_index for f in found],
        "conparentid": 0,
        "confrelid": [f.target.oid if f.target else 0 for f in found],
        "confupdtype": if_foreign("a"),
        "confdeltype": if_foreign("a"),
        "confmatchtype": if_foreign("s"),
        "conislocal": True,
        "coninhcount": 0,
        "connoinherit": [f.key.kind != "check" for f in found],
        "conkey": [list(f.columns) for f in found],
        "confkey": [list(f.referenced) if f.target else None for f in found],
        "conbin": [f.key.condition if f.key.kind == "check" else None for f in found],
    }


def pg_description(objects: Objects) -> tuple[int, Columns]:
    found: list[tuple[int, int, str]] = []
    for table in objects.tables:
        if table.facts.comment is not None:
            found.append((table.oid, 0, table.facts.comment))
        found += [
            (table.oid, number, column.comment)
            for number, column in enumerate(table.facts.columns, 1)
            if column.comment is not None
        ]
    return len(found), {
        "objoid": [row[0] for row in found],
        "classoid": relations()["pg_catalog", "pg_class"].oid,
        "objsubid": [row[1] for row in found],
        "description": [row[2] for row in found],
    }


def pg_rewrite(objects: Objects) -> tuple[int, Columns]:
    found = objects.rules
    return len(found), {
        "oid": [rule.oid for rule in found],
        "rulename": "_RETURN",
        "ev_class": [rule.view.oid for rule in found],
        "ev_type": "1",
        "ev_enabled": "O",
        "is_instead": True,
    }


def pg_depend(objects: Objects) -> tuple[int, Columns]:
    """What views need of tables. That keys need their tables is plain, and not told."""
    found = [(rule.oid, table.oid) for rule in objects.rules for table in rule.reads]
    return len(found), {
        "classid": relations()["pg_catalog", "pg_rewrite"].oid,
        "objid": [row[0] for row in found],
        "objsubid": 0,
        "refclassid": relations()["pg_catalog", "pg_class"].oid,
        "refobjid": [row[1] for row in found],
        "refobjsubid": 0,
        "deptype": "n",
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
