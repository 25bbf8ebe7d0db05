"""Parameters that are written into a statement: DuckDB's own answer to the bound one decides."""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import uuid
from typing import Any

import duckdb
import pytest

from queryard.engine.syntax.classify import classify
from queryard.engine.written_values import NotWritten, with_values

VALUES = (
    *(3, -200, 5_000_000_000, 2**100, -(2**127), 2.5, -0.0, True, None),
    *("7", "s3", "it's", "2020-01-09", "month", "%Y", ""),
    *(dt.date(2020, 1, 9), dt.datetime(2020, 1, 9, 1, 2, 3, 5), decimal.Decimal("-1.50")),
)
EXPRESSIONS = (
    *("? + t", "t * ?", "b + ?", "f * ?", "d + ?", "d / ?", "?", "[?, i]", "coalesce(t, ?)"),
    *("CASE WHEN i > 3 THEN ? ELSE t END", "greatest(i, ?)", "i > ?", "s > ?", "s || ?", "dd > ?"),
    *("ts >= ?", "dd + ?", "round(f, ?)", "substr(s, ?)", "sum(t + ?)", "sum(d * ?)", "dd - ?"),
    *("date_trunc(?, dd)", "strftime(dd, ?)", "s LIKE ?", "i IN (?, 3)", "i BETWEEN ? AND 30"),
    *("-(?)", "i % ?", "count(?)", "max(?)", "list_contains([1, 2], ?)", "?::VARCHAR", "? IS NULL"),
)


@pytest.fixture(scope="module")
def plain() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE a AS SELECT i::TINYINT AS t, i::INTEGER AS i, i::BIGINT AS b, i / 3.0 AS f, "
        "i::DECIMAL(6, 2) AS d, 's' || i AS s, DATE '2020-01-01' + i::INTEGER AS dd, "
        "TIMESTAMP '2020-01-01' + to_days(i::INTEGER) AS ts FROM range(20) r(i)"
    )
    return connection


def answer(plain: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> Any:
    try:
        found = plain.execute(sql, parameters)
    except duckdb.Error:
        return "an error"
    assert found.description is not None
    return [str(column[1]) for column in found.description], repr(found.fetchall())


def test_what_is_written_has_the_types_and_the_answers_of_what_is_bound(plain: Any) -> None:
    for expression, value in itertools.product(EXPRESSIONS, VALUES):
        sql = f"SELECT {expression} AS x FROM a"
        text = with_values(classify(sql)[0], [value])
        assert answer(plain, text) == answer(plain, sql, [value]), (sql, value)


@pytest.mark.parametrize(
    ("sql", "parameters", "written"),
    [
        ("SELECT ?, ?", [1, "a"], "SELECT CAST(1 AS INTEGER), 'a'"),
        ("SELECT $2 , $1, $2", [1, True], "SELECT true , CAST(1 AS INTEGER), true"),
        ("SELECT ?2, ?1", ["a", "b"], "SELECT 'b', 'a'"),
        ("SELECT $größe, $b::INT", {"größe": "ß", "b": "3"}, "SELECT 'ß', '3'::INT"),
        ("SELECT '?', \"?\", $$ ? $$, ? -- ?", ["a"], "SELECT '?', \"?\", $$ ? $$, 'a' -- ?"),
        ("SELECT x[?:?]", ["a", "b"], "SELECT x['a':'b']"),
        ("SELECT ?", [uuid.UUID(int=7)], f"SELECT '{uuid.UUID(int=7)}'"),
        ("SELECT 1", [], "SELECT 1"),
    ],
)
def test_values_are_written_where_their_signs_stand(
    sql: str, parameters: Any, written: str
) -> None:
    assert with_values(classify(sql)[0], parameters) == written


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT ?", [[1, 2]]),
        ("SELECT ?", [b"raw"]),
        ("SELECT ?", [dt.time(3)]),
        ("SELECT ?", [dt.timedelta(3)]),
        ("SELECT ?", [dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]),
        ("SELECT ?", ["a\0b"]),
        ("SELECT ?, ?", [1]),
        ("SELECT ?", [1, 2]),
        ("SELECT $3", [1, 2]),
        ("SELECT $a", {"b": 1}),
        ("SELECT 1", [1]),
    ],
)
def test_what_cannot_be_written_is_left_to_duckdb(sql: str, parameters: Any) -> None:
    with pytest.raises(NotWritten):
        with_values(classify(sql)[0], parameters)
