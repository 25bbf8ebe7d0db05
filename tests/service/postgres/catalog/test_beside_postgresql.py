"""The same questions to a real PostgreSQL server and to the catalogs here, where there is one."""

from __future__ import annotations

import pytest

from bench.service.real_postgres import postgres
from queryard.service.postgres.catalog import CatalogQueries
from tests.service.postgres.catalog.comparing import (
    FIXTURES,
    OBJECTS,
    SESSION,
    names_of,
    rows_of,
    statements,
    with_oids,
    without,
)


@pytest.mark.long
def test_answers_are_those_of_a_server_that_runs_now(
    queries: CatalogQueries, monkeypatch: pytest.MonkeyPatch
):
    psycopg = pytest.importorskip("psycopg")
    from record import recorded

    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    with postgres() as dsn:
        if dsn is None:
            pytest.skip("PostgreSQL is not installed")
        with psycopg.connect(dsn, autocommit=True) as connection:
            if connection.info.server_version // 10000 != 15:
                pytest.skip("the catalogs are those of PostgreSQL 15")
            connection.execute("CREATE ROLE helper SUPERUSER LOGIN")
        with psycopg.connect(f"{dsn} user=helper", autocommit=True) as connection:
            connection.execute("ALTER ROLE bench RENAME TO postgres")
        dsn = f"{dsn} user=postgres options='-c search_path=main'"
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP ROLE helper")
            connection.execute("DROP SCHEMA public")
            connection.execute((FIXTURES / "shop.sql").read_text())
            theirs = dict(connection.execute(OBJECTS).fetchall())
            ours = names_of(queries)
            oids = {name: oid for oid, name in ours.items()}
            for statement in statements():
                if "refused" in statement:
                    continue
                expected = recorded(connection, statement, theirs)
                sql, parameters = with_oids(statement, oids)
                answer = queries.answer(sql, parameters, SESSION)
                assert list(answer.names) == expected["names"], sql
                assert list(answer.oids) == expected["oids"], sql
                ignored = statement.get("ignore", [])
                found = without(rows_of(answer, ours), expected["names"], ignored)
                there = without(expected["rows"], expected["names"], ignored)
                if statement.get("within"):
                    assert set(found) <= set(there), sql
                else:
                    assert found == there, sql
