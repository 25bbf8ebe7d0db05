"""Statements that clients send, and answers to them in a form that two servers can share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from queryard.service.postgres.catalog import CatalogAnswer, CatalogQueries

FIXTURES = Path(__file__).parent / "fixtures"
SESSION = {"search_path": "main"}
OBJECTS = """
    SELECT oid, 'relation ' || relnamespace::regnamespace::text || '.' || relname FROM pg_class
    WHERE relnamespace::regnamespace::text NOT IN ('pg_catalog', 'pg_toast')
    UNION ALL SELECT oid, 'schema ' || nspname FROM pg_namespace WHERE oid NOT IN (11, 99)
    UNION ALL SELECT oid, 'constraint ' || conname FROM pg_constraint WHERE oid > 16000
    UNION ALL SELECT oid, 'database ' || datname FROM pg_database WHERE datname = 'postgres'
    UNION ALL SELECT oid, 'rule ' || rulename || ev_class::regclass::text FROM pg_rewrite
    WHERE ev_class > 16000"""
"""The OIDs that differ from server to server, with names that do not."""

Rows = list[list[Any]]


def statements() -> list[dict[str, Any]]:
    """Each has its `sql` and `parameters`, in which `<relation main.orders>` stands for an OID.

    `refused` is the SQLSTATE of a statement that is not answered. `ignore` names columns that
    cannot be the same (sizes, transactions, texts of views). `within` says that a server of
    PostgreSQL's has more of such things.
    """
    found: list[dict[str, Any]] = json.loads((FIXTURES / "statements.json").read_text())
    return found


def with_oids(statement: dict[str, Any], oids: dict[str, int]) -> tuple[str, list[Any]]:
    """A statement for a server on which the objects have these OIDs."""
    sql = statement["sql"]
    for name, oid in oids.items():
        sql = sql.replace(f"<{name}>", str(oid))
    given = statement.get("parameters", ())
    return sql, [oids[value["oid"]] if isinstance(value, dict) else value for value in given]


def told(value: Any, type_: int, names: dict[int, str]) -> Any:
    """A value as the file has it: an OID by name, a date as text."""
    if isinstance(value, list) and type_ in (22, 30):  # int2vector, oidvector
        return " ".join(map(str, value))
    if isinstance(value, list):
        return [told(part, type_, names) for part in value]
    if type_ in (26, 1028, 28) and value is not None:
        return names.get(int(value), int(value))
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def rows_of(answer: CatalogAnswer, names: dict[int, str]) -> Rows:
    columns = [column.to_pylist() for column in answer.table.columns]
    return [
        [told(value, type_, names) for value, type_ in zip(row, answer.oids, strict=True)]
        for row in zip(*columns, strict=True)
    ]


def without(rows: Rows, names: list[str], ignored: list[str]) -> list[str]:
    """The rows without some of their columns, as texts, sorted."""
    kept = [place for place, name in enumerate(names) if name not in ignored]
    return sorted(json.dumps([row[place] for place in kept]) for row in rows)


def names_of(queries: CatalogQueries) -> dict[int, str]:
    """The objects of the shop here, by OID."""
    table = queries.answer(OBJECTS).table
    return dict(zip(*(column.to_pylist() for column in table.columns), strict=True))
