"""What clients find in the catalogs over the wire: psql, SQLAlchemy, asyncpg, ADBC, JDBC."""

from __future__ import annotations

import asyncio
import os
import pty
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.service.postgres.jdbc import jdbc_driver
from tests.service.postgres.served_postgres import Served, a_server
from tests.service.yard_ground import write_data

SCHEMA = """
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL DEFAULT 'x' UNIQUE);
    CREATE TABLE orders (
        id BIGINT PRIMARY KEY, customer INTEGER REFERENCES customers (id), amount DECIMAL(9, 2),
        tags VARCHAR[], CHECK (amount > 0)
    );
    CREATE VIEW big AS SELECT id, amount FROM orders WHERE amount > 100;
    COMMENT ON TABLE orders IS 'all of them';
    COMMENT ON COLUMN orders.amount IS 'in euro';
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("catalogs")
    data = folder / "data"
    data.mkdir()
    write_data(data)
    with duckdb.connect(str(data / "warehouse.duckdb")) as shop:
        shop.execute(SCHEMA)
    with a_server(folder) as served:
        yield served


# --- psql ----------------------------------------------------------------------------------------


@pytest.fixture
def psql(server: Served):
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")

    def run(*commands: str) -> str:
        words = [word for command in commands for word in ("-c", command)]
        done = subprocess.run(
            ["psql", "-X", "-A", "-d", server.dsn(), *words],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not done.stderr, done.stderr
        return done.stdout

    return run


def test_psql_describes(psql):
    tables = psql(r"\dt warehouse.*").splitlines()
    assert tables[2:-1] == ["warehouse|customers|table|ann", "warehouse|orders|table|ann"]
    assert "warehouse|ann" in psql(r"\dn")
    assert "yard|ann|UTF8" in psql(r"\l")
    assert "warehouse|orders_id_pkey|index|ann|orders" in psql(r"\di warehouse.*")
    assert "ann||" in psql(r"\du")
    assert psql(r"\df", r"\dx", r"\dT").count("(0 rows)") == 3
    assert "warehouse|orders|table|" in psql(r"\dp warehouse.*")
    orders = psql(r"\d+ warehouse.orders")
    for part in (
        "id|bigint||not null||plain",
        "amount|numeric(9,2)||||main|||in euro",
        "tags|text[]",
        '"orders_id_pkey" PRIMARY KEY, btree (id)',
        "FOREIGN KEY (customer) REFERENCES warehouse.customers(id)",
        "CHECK (amount > ",
    ):
        assert part in orders
    assert "REFERENCED" in psql(r"\d warehouse.customers").upper()
    view = psql(r"\d+ warehouse.big")
    assert "id|bigint" in view
    assert "FROM orders" in view


def test_psql_completes_names_with_the_tabulator(server: Served):
    if shutil.which("psql") is None:
        pytest.skip("psql is not installed")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["psql", "-X", "-d", server.dsn()],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb", "PAGER": "cat"},
        start_new_session=True,
    ) as process:
        try:
            _read_until(ours, "yard=>")
            os.write(ours, b"SELECT * FROM numb\t")
            assert "numbers" in _read_until(ours, "numbers")
            os.write(ours, b"\x15SELECT * FROM warehouse.cust\t")
            assert "customers" in _read_until(ours, "customers")
        finally:
            process.kill()
            os.close(ours)
            os.close(theirs)


def _read_until(terminal: int, word: str) -> str:
    """What the terminal shows until it shows the word; all of it after half a minute."""
    os.set_blocking(terminal, False)
    shown = ""
    end = time.monotonic() + 30
    while word not in shown and time.monotonic() < end:
        try:
            shown += os.read(terminal, 4096).decode("utf-8", "replace")
        except BlockingIOError:
            time.sleep(0.02)
    return shown


# --- libraries -----------------------------------------------------------------------------------


def test_sqlalchemy_reflects_tables_with_their_keys(server: Served):
    sa = pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    engine = sa.create_engine(server.url(scheme="postgresql+psycopg"))
    try:
        found = sa.inspect(engine)
        assert found.default_schema_name == "main"
        assert set(found.get_schema_names()) == {"information_schema", "main", "warehouse"}
        assert "numbers" in found.get_table_names()
        assert found.get_view_names(schema="warehouse") == ["big"]
        columns = found.get_columns("orders", schema="warehouse")
        types = [str(column["type"]) for column in columns]
        assert types == ["BIGINT", "INTEGER", "NUMERIC(9, 2)", "ARRAY"]
        assert [column["nullable"] for column in columns] == [False, True, True, True]
        assert columns[2]["comment"] == "in euro"
        key = found.get_pk_constraint("orders", schema="warehouse")
        assert key["constrained_columns"] == ["id"]
        (reference,) = found.get_foreign_keys("orders", schema="warehouse")
        assert reference["referred_table"] == "customers"
        assert reference["referred_columns"] == ["id"]
        (unique,) = found.get_unique_constraints("customers", schema="warehouse")
        assert unique["column_names"] == ["name"]
        (check,) = found.get_check_constraints("orders", schema="warehouse")
        assert "amount > " in check["sqltext"]
        assert found.get_table_comment("orders", schema="warehouse") == {"text": "all of them"}
        assert not found.has_table("nothing")
        everything = sa.MetaData()
        everything.reflect(engine, schema="warehouse", views=True)
        assert set(everything.tables) == {
            "warehouse.big",
            "warehouse.customers",
            "warehouse.orders",
        }
    finally:
        engine.dispose()


def test_asyncpg_finds_out_about_types(server: Served):
    asyncpg = pytest.importorskip("asyncpg")

    async def main() -> None:
        made = await asyncpg.connect(server.url())
        row = await made.fetchrow("SELECT ARRAY[1, 2] AS a, ARRAY['x', 'y'] AS b")
        assert tuple(row) == ([1, 2], ["x", "y"])
        row = await made.fetchrow(
            "SELECT oid::regclass, relname, relkind, relhasindex FROM pg_class WHERE relname = $1",
            "orders",
        )
        assert tuple(row) == ("warehouse.orders", "orders", b"r", True)
        keys = await made.fetch(
            "SELECT indkey FROM pg_index WHERE indrelid = $1::regclass", "warehouse.orders"
        )
        assert [list(key["indkey"]) for key in keys] == [[1]]
        names = await made.fetch("SELECT typname FROM pg_type WHERE oid = ANY($1::oid[])", [23, 25])
        assert {name["typname"] for name in names} == {"int4", "text"}
        with pytest.raises(asyncpg.FeatureNotSupportedError):
            await made.fetch("SELECT * FROM pg_stat_activity")
        with pytest.raises(asyncpg.UndefinedFunctionError):
            await made.fetch("SELECT pg_read_file('x')")
        await made.close()

    asyncio.run(main())


ADBC = """
import sys
import adbc_driver_postgresql.dbapi as adbc
with adbc.connect(sys.argv[1]) as made:
    (catalog,) = made.adbc_get_objects(depth="all").read_all().to_pylist()
    for schema in catalog["catalog_db_schemas"]:
        for table in schema["db_schema_tables"]:
            columns = sorted(column["column_name"] for column in table["table_columns"])
            kinds = sorted(key["constraint_type"] for key in table["table_constraints"])
            print(schema["db_schema_name"], table["table_name"], *columns, *kinds, sep="|")
    print(made.adbc_get_table_schema("orders", db_schema_filter="warehouse").names)
"""


def test_adbc_lists_tables_columns_and_constraints(server: Served):
    pytest.importorskip("adbc_driver_postgresql")
    # It holds the interpreter's lock while it waits, so that it needs a process of its own.
    done = subprocess.run(
        [sys.executable, "-c", ADBC, server.url()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.returncode, done.stderr
    lines = done.stdout.splitlines()
    assert "warehouse|customers|id|name|PRIMARY KEY|UNIQUE" in lines
    assert "warehouse|orders|amount|customer|id|tags|CHECK|FOREIGN KEY|PRIMARY KEY" in lines
    assert lines[-1] == "['id', 'customer', 'amount', 'tags']"


JDBC = """
import java.sql.*;

public class Metadata {
    static void show(String name, ResultSet rows, String... columns) throws Exception {
        while (rows.next()) {
            StringBuilder line = new StringBuilder(name);
            for (String column : columns) line.append('|').append(rows.getString(column));
            System.out.println(line);
        }
    }

    public static void main(String[] given) throws Exception {
        try (Connection made = DriverManager.getConnection(given[0], given[1], given[2])) {
            DatabaseMetaData known = made.getMetaData();
            String in = "warehouse";
            show("table", known.getTables(null, in, "%", new String[] {"TABLE", "VIEW"}),
                "TABLE_NAME", "TABLE_TYPE", "REMARKS");
            show("column", known.getColumns(null, in, "orders", "%"),
                "COLUMN_NAME", "TYPE_NAME", "IS_NULLABLE");
            show("primary", known.getPrimaryKeys(null, in, "orders"), "COLUMN_NAME", "KEY_SEQ");
            show("foreign", known.getImportedKeys(null, in, "orders"),
                "FKCOLUMN_NAME", "PKTABLE_NAME", "PKCOLUMN_NAME");
            show("index", known.getIndexInfo(null, in, "customers", false, false), "COLUMN_NAME");
            show("granted", known.getTablePrivileges(null, in, "orders"), "PRIVILEGE");
            show("catalog", known.getCatalogs(), "TABLE_CAT");
            show("schema", known.getSchemas(), "TABLE_SCHEM");
            known.getTypeInfo();
            known.getFunctions(null, null, "%");
            System.out.println(known.getSQLKeywords().contains("analyse"));
        }
    }
}
"""


@pytest.mark.long
def test_jdbc_metadata(server: Served, tmp_path: Path):
    driver = jdbc_driver()
    program = tmp_path / "Metadata.java"
    program.write_text(JDBC)
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/yard"
    done = subprocess.run(
        ["java", "-cp", str(driver), str(program), url, "ann", server.secrets["ann"]],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert done.stdout.splitlines() == [
        "table|customers|TABLE|null",
        "table|orders|TABLE|all of them",
        "table|big|VIEW|null",
        "column|id|int8|NO",
        "column|customer|int4|YES",
        "column|amount|numeric|YES",
        "column|tags|_text|YES",
        "primary|id|1",
        "foreign|customer|customers|id",
        "index|id",
        "index|name",
        "granted|SELECT",
        "catalog|yard",
        "schema|information_schema",
        "schema|main",
        "schema|pg_catalog",
        "schema|warehouse",
        "true",
    ]
