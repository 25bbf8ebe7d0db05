"""What can only be a SELECT is not parsed before it is run; all else is what the parser says."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.engine.errors import QueryFailed
from queryard.engine.syntax import classify as module
from queryard.engine.syntax.classify import Classified, check_syntax, classify

WORDS = [
    *("select", "with", "from", "values", "a", "t", "as", "(", ")", "*", ",", "1", "'x;y'", ";"),
    *("insert into", "update", "set", "delete from", "merge into", "returning", "pivot", "on", "="),
    *("unpivot", "describe", "show", "union all", "where", "/* ; */", "-- ;\n", '"a;b"', "create"),
    *("table", "into", "$$;$$", "drop", "'É'", "é", "\u00a0", "explain", "call", "copy", "limit"),
]
STATEMENTS = [
    "SELECT 1",
    "select a from t where b = ';' -- ;",
    "WITH a AS (SELECT 1) SELECT * FROM a;",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "WITH a AS (SELECT 1) UPDATE t SET a = 1",
    "FROM t",
    "VALUES (1), (2);;",
    "SELECT * FROM (PIVOT t ON x USING sum(y))",
    "PIVOT t ON x USING sum(y)",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP TABLE t",
    "SELECT\u00a01",
    "SELECT 'É'; ",
    "SELECT é FROM t\u2003; DROP TABLE t",
]
_PARSER = duckdb.connect()


def parsed(sql: str) -> list[str] | None:
    """The types of the statements as DuckDB's parser sees them; None for a syntax error."""
    try:
        return [statement.type.name for statement in _PARSER.extract_statements(sql)]
    except duckdb.Error:
        return None


@pytest.mark.parametrize("sql", STATEMENTS)
def test_a_statement_is_what_the_parser_says(sql: str) -> None:
    assert [statement.kind for statement in classify(sql)] == parsed(sql)


@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_what_is_not_parsed_is_one_select_or_a_syntax_error(words: list[str]) -> None:
    sql = " ".join(words)
    if module._select(sql) is not None:
        assert parsed(sql) in (["SELECT"], None)


def test_a_select_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(sql: str) -> list[tuple[str, str]]:
        raise AssertionError(sql)

    monkeypatch.setattr(module, "parse", fails)
    (found,) = classify("SELECT a -- nothing\nFROM t WHERE b = 'not; parsed' ;  -- end")
    assert (found.sql, found.kind) == (
        "SELECT a -- nothing\nFROM t WHERE b = 'not; parsed' ",
        "SELECT",
    )


def test_a_syntax_error_is_found_when_asked_for() -> None:
    (found,) = classify("SELECT 1 FROM WHERE")
    with pytest.raises(QueryFailed, match="syntax error at or near"):
        check_syntax(found)


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("WITH a AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM a", False),
        ("SELECT * FROM (WITH a AS (DELETE FROM t RETURNING *) FROM a)", False),
        ('WITH a AS (UPDATE "t" SET a = 1 RETURNING *) FROM a', False),
        ("SELECT count(update), (insert) FROM t", True),
    ],
)
def test_a_select_that_changes_rows_does_more_than_read(sql: str, reads: bool) -> None:
    (found,) = classify(sql)
    assert isinstance(found, Classified)
    assert (found.kind, found.reads) == ("SELECT", reads)
