"""The rows of the catalogs about keys, defaults, comments and what views read."""

from __future__ import annotations

from typing import Any

from .objects import Objects
from .relations import relations
from .rows_static import default_opclass
from .types import column_type, types_by_oid


def pg_index(objects: Objects) -> tuple[int, dict[str, Any]]:
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


def pg_constraint(objects: Objects) -> tuple[int, dict[str, Any]]:
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


def pg_description(objects: Objects) -> tuple[int, dict[str, Any]]:
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


def pg_rewrite(objects: Objects) -> tuple[int, dict[str, Any]]:
    found = objects.rules
    return len(found), {
        "oid": [rule.oid for rule in found],
        "rulename": "_RETURN",
        "ev_class": [rule.view.oid for rule in found],
        "ev_type": "1",
        "ev_enabled": "O",
        "is_instead": True,
    }


def pg_depend(objects: Objects) -> tuple[int, dict[str, Any]]:
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


def pg_attrdef(objects: Objects) -> tuple[int, dict[str, Any]]:
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
