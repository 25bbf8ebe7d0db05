"""What clients ask the catalogs is answered as PostgreSQL answers it.

The statements are those that psql, SQLAlchemy, asyncpg, pgjdbc, ADBC, Npgsql, psqlODBC, Metabase,
Grafana, Superset, dbt, DBeaver, pgAdmin and Power BI send; the answers were recorded from a real
server (`record.py`).
"""

from __future__ import annotations

import json
import logging

import pytest

from queryard.service.postgres.catalog import CatalogQueries, UnknownCatalogQuery
from tests.service.postgres.catalog.comparing import (
    FIXTURES,
    SESSION,
    names_of,
    rows_of,
    statements,
    with_oids,
    without,
)
from tests.service.postgres.catalog.shop import SHOP

STATEMENTS = statements()
ANSWERS = json.loads((FIXTURES / "answers.json").read_text())
CLIENTS = sorted({statement["client"].split()[0] for statement in STATEMENTS})


@pytest.mark.parametrize("client", CLIENTS)
def test_answers_are_those_of_postgresql(client: str, queries: CatalogQueries):
    names = names_of(queries)
    oids = {name: oid for oid, name in names.items()}
    for statement, expected in zip(STATEMENTS, ANSWERS, strict=True):
        if statement["client"].split()[0] != client:
            continue
        sql, parameters = with_oids(statement, oids)
        assert queries.concerns(sql), sql
        if "refused" in statement:
            with pytest.raises(UnknownCatalogQuery) as error:
                queries.answer(sql, parameters, SESSION)
            assert error.value.sqlstate == statement["refused"], sql
            continue
        described = queries.describe(sql)
        answer = queries.answer(sql, parameters, SESSION)
        assert list(answer.names) == expected["names"], sql
        assert list(answer.oids) == expected["oids"], sql
        assert (described.names, described.oids) == (answer.names, answer.oids), sql
        assert len(described.parameters) == len(parameters), sql
        ignored = statement.get("ignore", [])
        ours = without(rows_of(answer, names), expected["names"], ignored)
        assert ours == without(expected["rows"], expected["names"], ignored), sql


def test_a_refused_query_is_in_the_log(queries: CatalogQueries, caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING), pytest.raises(UnknownCatalogQuery):
        queries.answer("SELECT * FROM pg_stat_activity")
    assert "pg_stat_activity" in caplog.text


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM pg_stat_activity WHERE usename = 'secret'",
        "SELECT 'secret'::regclass",
        "SELECT oid = 'secret' FROM pg_class",
    ],
)
def test_the_log_may_be_without_values(sql: str, caplog: pytest.LogCaptureFixture):
    queries = CatalogQueries(SHOP, redacts=True)
    try:
        with caplog.at_level(logging.WARNING), pytest.raises(UnknownCatalogQuery):
            queries.answer(sql)
        assert "the query: SELECT" in caplog.text
        assert "secret" not in caplog.text
    finally:
        queries.close()
