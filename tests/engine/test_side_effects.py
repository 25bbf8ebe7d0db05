"""Which later statements wait for a statement with side effects."""

from __future__ import annotations

import pytest

from queryard.engine.syntax.classify import classify
from queryard.engine.syntax.side_effects import concerns
from queryard.sql.catalog import open_catalog


@pytest.fixture
def catalog(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.csv").write_text("a,b\n1,2\n")
    return open_catalog(tmp_path / "data")


@pytest.mark.parametrize(
    ("left", "later", "expected"),
    [
        ("CREATE TEMP TABLE x AS FROM orders", "SELECT count(*) FROM orders", False),
        ("CREATE TEMP TABLE x AS FROM orders", "FROM X", True),
        ('CREATE TEMP TABLE "table" AS FROM orders', 'FROM "table"', True),
        ("CREATE OR REPLACE TEMP TABLE orders AS SELECT 1", "FROM orders", True),
        ("CREATE TEMP TABLE x (a INTEGER)", "SELECT a FROM orders", True),
        ("CREATE MACRO sum(a) AS 1", "SELECT sum(b) FROM orders", True),
        ("CREATE MACRO twice(n) AS 2 * n", "SELECT max(b) FROM orders", False),
        ("CREATE SECRET (TYPE s3)", "FROM orders", True),
        ("CREATE TEMP SECRET s (TYPE s3)", "FROM orders", True),
        ("INSERT INTO x VALUES (1)", "FROM orders", False),
        ("DROP TABLE orders", "FROM orders", True),
        ("SET default_null_order = 'nulls first'", "FROM orders", True),
        ("BEGIN", "FROM orders", True),
        ("ATTACH 'a.db'", "FROM orders", True),
        ("SHOW TABLES", "FROM orders", False),
        ("COPY orders FROM 'x.csv'", "FROM orders", True),
        ("COPY x FROM 'x.csv'", "FROM orders WHERE a = 3", False),
        ("COPY orders TO '/elsewhere/x.csv'", "SELECT a / 0.5 FROM orders WHERE a = 'b'", False),
        ("COPY orders TO '/elsewhere/x.csv'", "FROM '/elsewhere/x.csv'", True),
        ("COPY orders TO '/elsewhere/x.csv'", 'FROM "x.csv"', True),
        ("COPY orders TO '/elsewhere/x.csv'", "FROM read_csv('*.csv')", True),
        ("COPY orders TO x.parquet", "FROM orders", True),
        ("COPY orders TO 's3://bucket/x.parquet'", "FROM orders", True),
        ("COPY orders TO '/elsewhere/x.csv'", "FROM query_table('orders')", True),
        ("SELECT 1", "FROM orders", False),
        ("SELECT setseed(0.5)", "FROM orders", True),
    ],
)
def test_who_waits(catalog, left, later, expected):
    assert concerns(classify(left)[0], classify(later)[0], catalog) is expected


def test_a_query_waits_if_a_file_is_being_written_to_the_folder_of_its_table(catalog, tmp_path):
    for place in (tmp_path / "data" / "more.csv", tmp_path / "data" / "deeper" / "more.csv"):
        left = classify(f"COPY (SELECT 1) TO '{place}'")[0]
        assert concerns(left, classify("FROM orders")[0], catalog)
        assert not concerns(left, classify("SELECT 1")[0], catalog)


def test_a_new_partition_concerns_the_table(tmp_path):
    folder = tmp_path / "sales" / "region=US"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("a\n1\n")
    catalog = open_catalog(tables={"sales": str(tmp_path / "sales")})
    left = classify(f"COPY (SELECT 1) TO '{tmp_path}/sales/region=EU/b.csv'")[0]
    assert concerns(left, classify("FROM sales")[0], catalog)
