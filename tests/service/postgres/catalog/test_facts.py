"""From tables to the facts about them: keys, comments and defaults of databases; OIDs."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.service.postgres.catalog import (
    CatalogFacts,
    CatalogQueries,
    ColumnFacts,
    KeyFacts,
    TableFacts,
    facts_of,
)
from queryard.service.postgres.catalog.objects import Objects
from queryard.service.postgres.catalog.texts import parse_ident, quote_ident
from queryard.service.postgres.catalog.types import array_elements
from queryard.sql.catalog.opening import open_catalog

SCHEMA = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL DEFAULT 'x' UNIQUE);
    CREATE TABLE orders (
        id BIGINT, line INTEGER, customer INTEGER REFERENCES customers (id), amount DECIMAL(9, 2),
        PRIMARY KEY (id, line), CHECK (amount > 0)
    );
    CREATE VIEW big AS SELECT * FROM orders WHERE amount > 100;
    CREATE SCHEMA old;
    CREATE TABLE old.orders (id BIGINT);
    COMMENT ON TABLE orders IS 'all of them';
    COMMENT ON COLUMN orders.amount IS 'in euro';
    INSERT INTO customers VALUES (1, 'ann');
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as shop:
        shop.execute(SCHEMA)
        shop.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/plain.parquet'")
    return tmp_path


def test_a_database_knows_its_keys(folder: Path):
    facts = facts_of(open_catalog(folder), writes={"shop"})
    tables = {(table.schema, table.name): table for table in facts.tables}
    assert set(tables) == {
        ("main", "plain"),
        ("shop", "customers"),
        ("shop", "orders"),
        ("shop", "big"),
        ("shop.old", "orders"),
    }
    customers, orders = tables["shop", "customers"], tables["shop", "orders"]
    assert customers.columns == (
        ColumnFacts("id", "INTEGER", not_null=True),
        ColumnFacts("name", "VARCHAR", not_null=True, default="'x'"),
    )
    assert (customers.rows, customers.view, customers.writable) == (1, False, True)
    assert {key.kind: key.columns for key in customers.keys} == {
        "primary": ("id",),
        "unique": ("name",),
    }
    assert orders.comment == "all of them"
    assert orders.columns[3].comment == "in euro"
    keys = {key.kind: key for key in orders.keys}
    assert keys["primary"].columns == ("id", "line")
    assert keys["foreign"].references == ("shop", "customers")
    assert keys["foreign"].referenced == ("id",)
    assert "amount > 0" in keys["check"].condition
    assert tables["shop", "big"].view
    assert tables["shop", "big"].rows is None
    assert tables["main", "plain"].keys == ()
    assert not tables["main", "plain"].writable


def test_views_say_which_tables_they_read(folder: Path):
    queries = CatalogQueries(facts_of(open_catalog(folder)))
    try:
        answer = queries.answer(
            "SELECT view_name, table_schema, table_name FROM information_schema.view_table_usage"
        )
        assert answer.table.to_pylist() == [
            {"view_name": "big", "table_schema": "shop", "table_name": "orders"}
        ]
    finally:
        queries.close()


def test_a_reference_to_a_table_that_is_not_granted_is_not_told(folder: Path):
    catalog = open_catalog(folder)

    granted = {key: table for key, table in catalog.tables.items() if key != "shop.customers"}
    facts = facts_of(SimpleNamespace(tables=granted))
    (orders,) = (t for t in facts.tables if (t.schema, t.name) == ("shop", "orders"))
    assert {key.kind for key in orders.keys} == {"primary", "check"}


def test_a_table_that_cannot_be_read_is_left_out_and_logged(
    folder: Path, caplog: pytest.LogCaptureFixture
):
    catalog = open_catalog(folder)
    (folder / "plain.parquet").write_bytes(b"PAR1 no parquet PAR1")
    catalog.refresh()
    with caplog.at_level(logging.WARNING):
        facts = facts_of(catalog)
    if "plain" in catalog.tables:
        assert "plain" in caplog.text
    assert "plain" not in {table.name for table in facts.tables}


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@given(st.lists(st.tuples(NAMES, NAMES), unique=True, min_size=1, max_size=10))
def test_oids_are_unique_and_stay_when_other_tables_come(names: list[tuple[str, str]]):
    def facts(chosen: list[tuple[str, str]]) -> CatalogFacts:
        key = KeyFacts("primary", "k", ("a",))
        column = ColumnFacts("a", "INTEGER")
        return CatalogFacts(tuple(TableFacts(s, n, (column,), (key,)) for s, n in chosen))

    every = Objects(facts(names))
    oids = [table.oid for table in every.tables]
    oids += [found.oid for found in every.constraints]
    oids += [found.index for found in every.constraints]
    assert len(set(oids)) == len(oids)
    assert all(16384 <= oid < 2**31 for oid in oids)
    (alone,) = Objects(facts(names[:1])).tables
    assert alone.oid in oids


@given(st.lists(NAMES.filter(lambda name: name.strip() == name), min_size=1, max_size=3))
def test_quoted_names_are_read_as_they_were(parts: list[str]):
    assert parse_ident(".".join(quote_ident(part) for part in parts)) == tuple(parts)


@given(st.lists(st.one_of(st.none(), st.text(max_size=6)), max_size=5))
def test_arrays_are_read_as_they_were_written(values: list[str | None]):
    def written(value: str | None) -> str:
        if value is None:
            return "NULL"
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'

    assert array_elements("{" + " , ".join(map(written, values)) + "}") == values


@pytest.mark.parametrize("text", ["", "{", "a,b", "{a,}", "{,a}", "{{1},{2}}", '{"a}', "{a b}c}"])
def test_texts_that_are_no_arrays_are_errors(text: str):
    with pytest.raises(ValueError, match="malformed array"):
        array_elements(text)
