"""A catalog query that is not known gets a clear error, never a wrong answer without rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.postgres.catalog import CatalogQueries, UnknownCatalogQuery
from queryard.service.postgres.catalog.parsing import tokens_of
from queryard.service.postgres.catalog.relations import answered, relations
from tests.service.postgres.catalog.comparing import SESSION, names_of, statements
from tests.service.postgres.catalog.shop import SHOP

WRONG = [
    ("SELECT * FROM pg_nothing", "42P01", "pg_nothing"),
    ("SELECT * FROM information_schema.nothing", "42P01", "information_schema.nothing"),
    ("SELECT * FROM pg_stat_activity", "0A000", "pg_stat_activity"),
    ("SELECT * FROM pg_catalog.pg_authid", "0A000", "pg_authid"),
    ("SELECT pg_nothing(1)", "42883", "pg_nothing"),
    ("SELECT pg_read_file('/etc/passwd')", "42883", "pg_read_file"),
    ("SELECT read_text('/etc/passwd') FROM pg_class", "42883", "read_text"),
    ("SELECT getenv('HOME') FROM pg_class", "42883", "getenv"),
    ("SELECT * FROM duckdb_settings(), pg_class", "42883", "duckdb_settings"),
    ('SELECT * FROM pg_class, "/etc/passwd"', "42P01", "/etc/passwd"),
    ("SELECT nothing FROM pg_class", "42703", "nothing"),
    ("SELECT c.nothing FROM pg_class c", "42703", "c.nothing"),
    ("SELECT x.oid FROM pg_class c", "42P01", '"x"'),
    ("SELECT oid FROM pg_class, pg_type", "42702", "oid"),
    ("SELECT oid::nothing FROM pg_class", "42704", "nothing"),
    ("SELECT current_setting('nothing')", "42704", "nothing"),
    ("SELECT 'nothing'::regclass", "42P01", "nothing"),
    ("SELECT 'pg_stat_activity'::regclass", "0A000", "pg_stat_activity"),
    ("SELECT 'nothing'::regtype", "42704", "nothing"),
    ("SELECT 'nothing'::regproc", "42883", "nothing"),
    ("SELECT 'nothing'::regnamespace", "3F000", "nothing"),
    ("SELECT 'a'::int4[] FROM pg_class", "22P02", "'a'"),
    ("SELECT oid = 'a' FROM pg_class", "22P02", "'a'"),
    ("SELECT relname, count(*) FROM pg_class", "42803", "GROUP BY"),
    ("SELECT * FROM pg_class c JOIN orders o ON true", "0A000", "two statements"),
    ("SELECT * FROM pg_class c JOIN nothing o ON true", "42P01", "nothing"),
    ("SELECT * FROM pg_class c JOIN main.orders o ON true", "0A000", "two statements"),
    ("SELECT has_table_privilege('orders', 'FLY')", "22023", "FLY"),
    ("SELECT format('%I', NULL) FROM pg_class", "22004", "null"),
    ("SELECT lower(DISTINCT relname) FROM pg_class", "42809", "lower"),
    ("SELECT $0 FROM pg_class", "42P02", "$0"),
    ("SELECT oid FROM pg_class WHERE", "42601", "cannot be read"),
    ("SELECT * FROM pg_class NATURAL JOIN pg_type", "0A000", "NATURAL"),
    ("SELECT * FROM pg_class PIVOT (count(*) FOR relkind IN ('r'))", "0A000", "PIVOT"),
    ("SELECT * FROM (SELECT * FROM pg_class) UNPIVOT (v FOR n IN (oid))", "0A000", "PIVOT"),
    ("SELECT * FROM pg_class TABLESAMPLE BERNOULLI (10)", "0A000", "TABLESAMPLE"),
    ("SUMMARIZE pg_class", "0A000", "SUMMARIZE of a catalog"),
    ("SELECT * FROM (DESCRIBE pg_class)", "0A000", "DESCRIBE of a catalog"),
    ("SELECT * FROM pg_class FOR UPDATE", "0A000", "LOCKS"),
    ("SELECT oid INTO x FROM pg_class", "0A000", "INTO"),
    ("SELECT oid FROM pg_class UNION SELECT oid, relname FROM pg_class", "42601", "columns"),
    ("SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM pg_class", "54001", "deeply"),
]


@pytest.mark.parametrize(("sql", "state", "word"), WRONG, ids=[sql[:50] for sql, _, _ in WRONG])
def test_the_error_has_its_sqlstate_and_names_what_is_wrong(
    sql: str, state: str, word: str, queries: CatalogQueries
):
    with pytest.raises(UnknownCatalogQuery) as error:
        queries.answer(sql)
    assert error.value.sqlstate == state
    assert word in str(error.value)


def test_too_few_parameters_are_an_error(queries: CatalogQueries):
    with pytest.raises(UnknownCatalogQuery, match="2 parameters, 1 are given"):
        queries.answer("SELECT oid FROM pg_class WHERE relname = $1 OR relkind = $2", ["x"])


def test_every_relation_is_answered_or_refused(queries: CatalogQueries):
    for relation in relations().values():
        sql = f"SELECT * FROM {relation.key}"
        if relation.rows == "refused":
            with pytest.raises(UnknownCatalogQuery, match="not offered"):
                queries.answer(sql)
        else:
            answer = queries.answer(sql)
            assert answer.names == tuple(column.name for column in relation.columns)
            if relation.rows == "empty":
                assert answer.table.num_rows == 0
    assert len(answered()) > 100


TEXTS = [
    [sql[token.start : token.end + 1] for token in tokens_of(sql)]
    for sql in (statement["sql"] for statement in statements())
    if "<relation" not in sql
]
WORDS = sorted({word for text in TEXTS for word in text})


@given(
    text=st.sampled_from(TEXTS),
    changes=st.lists(
        st.tuples(st.integers(0, 200), st.sampled_from(WORDS)), min_size=1, max_size=3
    ),
)
def test_statements_with_wrong_words_end_in_an_answer_or_an_error_of_their_own(
    text: list[str], changes: list[tuple[int, str]], queries: CatalogQueries
):
    changed = list(text)
    for place, word in changes:
        changed[place % len(changed)] = word
    sql = " ".join(changed)
    queries.concerns(sql)
    try:
        count = len(queries.describe(sql).parameters)
        queries.answer(sql, [None] * count, SESSION)
    except UnknownCatalogQuery as error:
        assert len(error.sqlstate) == 5  # noqa: PT017 - most of them are wrong, some are not


def test_objects_that_are_not_granted_are_not_there():
    granted = type(SHOP)(SHOP.tables[:1], user="bob")
    queries = CatalogQueries(granted)
    try:
        names = names_of(queries).values()
        assert "relation main.customers" in names
        assert not any("orders" in name or "sales" in name for name in names)
        with pytest.raises(UnknownCatalogQuery, match="orders"):
            queries.answer("SELECT 'orders'::regclass")
    finally:
        queries.close()
