"""`pg_proc` has the functions that a client may call, with types of PostgreSQL's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from queryard.engine.sealing.refused import is_refused
from queryard.service.postgres.catalog import CatalogQueries, UnknownCatalogQuery

STATEMENTS = json.loads((Path(__file__).parent / "fixtures" / "statements.json").read_text())


def rows(queries: CatalogQueries, sql: str) -> list[tuple]:
    table = queries.answer(sql).table
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_a_function_of_duckdb_has_its_forms(queries: CatalogQueries):
    sql = (
        "SELECT n.nspname, p.prokind, pg_get_function_result(p.oid), "
        "pg_get_function_arguments(p.oid) FROM pg_proc p "
        "JOIN pg_namespace n ON n.oid = p.pronamespace WHERE proname = '{}' ORDER BY 4"
    )
    assert rows(queries, sql.format("lower")) == [("pg_catalog", "f", "text", "text")]
    sums = rows(queries, sql.format("sum"))
    assert ("pg_catalog", "a", "numeric", "integer") in sums
    assert {each[1] for each in sums} == {"a"}
    assert rows(queries, sql.format("concat"))[0][3] == '"any", VARIADIC "any"'
    assert rows(queries, sql.format("row_number")) == [("pg_catalog", "w", "bigint", "")]


def test_psql_finds_a_function_by_its_name(queries: CatalogQueries):
    (asked,) = (each["sql"] for each in STATEMENTS if each["client"] == "psql \\df array_in")
    found = rows(queries, asked.replace("array_in", "lower"))
    assert found == [("pg_catalog", "lower", "text", "text", "func")]


def test_every_function_has_an_oid_and_types_of_its_own(queries: CatalogQueries):
    ((count, oids),) = rows(queries, "SELECT count(*) AS n, count(DISTINCT oid) AS d FROM pg_proc")
    assert count == oids > 1500
    unknown = (
        "SELECT proname FROM pg_proc WHERE prorettype NOT IN (SELECT oid FROM pg_type) "
        "OR pronargs <> cardinality(proargtypes)"
    )
    assert rows(queries, unknown) == []


def test_functions_that_are_refused_are_not_there(queries: CatalogQueries):
    names = {name for (name,) in rows(queries, "SELECT proname FROM pg_proc")}
    assert not {name for name in names if is_refused(name)}
    assert not names & {"pg_get_viewdef", "sleep_ms", "read_text", "getenv"}


def test_a_name_of_several_functions_is_no_regproc(queries: CatalogQueries):
    assert rows(queries, "SELECT 'lower'::regproc") == [("lower",)]
    assert rows(queries, "SELECT to_regproc('sum')") == [(None,)]
    with pytest.raises(UnknownCatalogQuery, match="more than one") as refused:
        queries.answer("SELECT 'sum'::regproc")
    assert refused.value.sqlstate == "42725"
