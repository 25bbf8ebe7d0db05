"""Records what a real PostgreSQL server answers to the statements of the fixtures.

The database must be empty but for `shop.sql`:

    createdb shop && PGOPTIONS='-c search_path=main' psql -f fixtures/shop.sql
    python record.py "user=postgres dbname=postgres options='-c search_path=main'"

Of statements about things that a server of PostgreSQL's has more of (`within`: types, templates,
catalogs that are not offered here), only the rows are kept that there are here, too.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import psycopg
from psycopg.raw_cursor import RawCursor

from queryard.service.postgres.catalog import CatalogQueries
from tests.service.postgres.catalog.comparing import (
    FIXTURES,
    OBJECTS,
    SESSION,
    names_of,
    rows_of,
    statements,
    told,
    with_oids,
    without,
)
from tests.service.postgres.catalog.shop import SHOP


def main(dsn: str) -> None:
    queries = CatalogQueries(SHOP)
    answers = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        names = dict(connection.execute(OBJECTS).fetchall())
        for statement in statements():
            answer = recorded(connection, statement, names)
            if statement.get("within"):
                answer["rows"] = kept(queries, statement, answer)
            answers.append(answer)
    queries.close()
    lines = ",\n".join(json.dumps(answer, separators=(",", ":")) for answer in answers)
    (FIXTURES / "answers.json").write_text(f"[\n{lines}\n]\n")


def recorded(
    connection: psycopg.Connection, statement: dict[str, Any], names: dict[int, str]
) -> dict[str, Any]:
    sql, parameters = with_oids(statement, {name: oid for oid, name in names.items()})
    with RawCursor(connection) as cursor:
        cursor.execute(sql, parameters or None)
        columns = cursor.description or ()
        types = [column.type_code for column in columns]
        rows = [
            [told(value, type_, names) for value, type_ in zip(row, types, strict=True)]
            for row in cursor.fetchall()
        ]
    return {"names": [column.name for column in columns], "oids": types, "rows": rows}


def kept(
    queries: CatalogQueries, statement: dict[str, Any], answer: dict[str, Any]
) -> list[list[Any]]:
    """The rows that there are here."""
    names = names_of(queries)
    sql, parameters = with_oids(statement, {name: oid for oid, name in names.items()})
    ours = rows_of(queries.answer(sql, parameters, SESSION), names)
    ignored = statement.get("ignore", [])
    here = set(without(ours, answer["names"], ignored))
    return [row for row in answer["rows"] if without([row], answer["names"], ignored)[0] in here]


if __name__ == "__main__":
    main(sys.argv[1])
