"""`search_path`: DuckDB and the catalogs look for names without a schema where it says."""

from __future__ import annotations

import duckdb
import pytest

from queryard.engine.sealing.access import Access
from tests.service.postgres.served_postgres import a_server

psycopg = pytest.importorskip("psycopg")

ORDERS = "SELECT w FROM orders"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """`orders` in the main schema, in a folder, in a database and in a further schema there."""
    folder = tmp_path_factory.mktemp("paths")
    data = folder / "data"
    (data / "sales").mkdir(parents=True)
    for name in ("orders", "only_main"):
        (data / f"{name}.csv").write_text("w\nmain\n")
    (data / "sales" / "orders.csv").write_text("w\nsales\n")
    with duckdb.connect(str(data / "shop.duckdb")) as shop:
        shop.execute("CREATE TABLE orders AS SELECT 'shop' AS w, 1 AS more")
        shop.execute("CREATE SCHEMA archive; CREATE TABLE archive.orders AS SELECT 'archive' AS w")
    grants = {"sales": Access(sealed=True, writes=frozenset({"shop"}))}
    with a_server(folder, grants=grants) as made:
        yield made


@pytest.fixture
def connection(served):
    with psycopg.connect(served.dsn(), autocommit=True) as made:
        yield made


def one(connection, sql, *parameters, **options):
    return connection.execute(sql, *parameters, **options).fetchone()[0]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("shop", "shop"),
        ("main", "main"),
        ("public", "main"),
        ("sales", "sales"),
        ("shop.archive", "archive"),
        ("nosuch, SALES, main", "sales"),
        ("main, shop", "main"),
        ("shop, main", "shop"),
        ('"$user", pg_catalog, shop', "shop"),
    ],
)
@pytest.mark.parametrize("parameters", [None, []])
def test_names_are_looked_for_in_the_schemas_that_are_set(connection, path, found, parameters):
    assert one(connection, ORDERS, parameters) == "main"
    connection.execute(f"SET search_path TO {path}")
    assert one(connection, ORDERS, parameters) == found
    assert one(connection, ORDERS, prepare=True) == found
    assert one(connection, "SELECT count(*) FROM orders WHERE w = %s", [found]) == 1
    schema = (
        "SELECT nspname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace "
        "WHERE pg_class.oid = 'orders'::regclass"
    )
    assert one(connection, schema) == one(connection, "SELECT current_schema()")
    connection.execute("RESET search_path")
    assert one(connection, ORDERS, parameters) == "main"


def test_a_name_that_is_in_no_schema_of_the_path_is_not_found(connection):
    for path in ("shop", "sales", "nosuch", "''"):
        connection.execute(f"SET search_path = {path}")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT * FROM only_main")
        assert one(connection, "SELECT to_regclass('only_main')") is None
        assert one(connection, "SELECT w FROM memory.main.orders") == "main"
    with pytest.raises(psycopg.errors.UndefinedTable):
        connection.execute(ORDERS)
    assert one(connection, "SELECT current_schema()") is None
    assert one(connection, "SELECT current_schemas(true)") == ["pg_catalog"]


def test_main_is_never_that_of_a_database(connection):
    assert one(connection, "SELECT w FROM main.orders") == "main"
    connection.execute("SET search_path = main, shop")
    assert one(connection, "SELECT w FROM main.orders") == "main"
    for path in ("shop", "shop, main", "sales", "shop.archive"):
        connection.execute(f"SET search_path = {path}")
        for sql in ("SELECT w FROM main.orders", 'SELECT main.orders.w FROM "main".orders'):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match="main in front"):
                connection.execute(sql)


def test_the_path_of_the_connect_holds_and_comes_back(served):
    with psycopg.connect(served.dsn(options="-c search_path=shop,main"), autocommit=True) as made:
        assert one(made, ORDERS) == "shop"
        assert one(made, "SELECT w FROM only_main") == "main"
        assert one(made, "SELECT current_schemas(false)") == ["shop", "main"]
        made.execute("SELECT set_config('search_path', 'sales', false)")
        assert one(made, ORDERS) == "sales"
        made.execute("DISCARD ALL")
        assert one(made, ORDERS) == "shop"


def test_a_path_ends_with_its_transaction(connection):
    connection.execute("BEGIN; SET LOCAL search_path = shop")
    assert one(connection, ORDERS) == "shop"
    connection.execute("COMMIT")
    assert one(connection, ORDERS) == "main"
    connection.execute("BEGIN; SET search_path = shop")
    connection.execute("ROLLBACK")
    assert one(connection, ORDERS) == "main"


def test_what_is_visible_follows_the_path(connection):
    visible = (
        "SELECT n.nspname, c.oid::regclass::text FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace WHERE relname = 'orders' AND pg_table_is_visible(c.oid)"
    )
    names = "SELECT c.oid::regclass::text FROM pg_class c WHERE relname = 'orders' ORDER BY 1"
    assert connection.execute(visible).fetchall() == [("main", "orders")]
    connection.execute("SET search_path = shop, sales")
    assert connection.execute(visible).fetchall() == [("shop", "orders")]
    found = {row[0] for row in connection.execute(names)}
    assert found == {"orders", "main.orders", "sales.orders", '"shop.archive".orders'}


def test_use_is_the_same_as_a_path_of_one_schema(connection):
    for word, found in (
        ("USE shop", "shop"),
        ("USE shop.archive", "archive"),
        ("SET schema = 'sales'", "sales"),
        ("SET SCHEMA 'shop'", "shop"),
        ("USE memory", "main"),
    ):
        connection.execute(word)
        assert one(connection, ORDERS) == found
    connection.execute("USE shop")
    assert one(connection, "SHOW search_path") == "shop"
    assert one(connection, "SELECT current_schema()") == "shop"
    for unknown in ("nosuch", "shop.nosuch"):
        with pytest.raises(psycopg.Error, match="nosuch"):
            connection.execute(f"USE {unknown}")
        assert one(connection, ORDERS) == "shop"


def test_tables_are_made_and_written_where_the_path_begins(connection):
    connection.execute("SET search_path = shop, main")
    connection.execute("CREATE TABLE made (a INTEGER)")
    connection.execute("INSERT INTO made VALUES (1)")
    with connection.cursor().copy("COPY made FROM STDIN") as copy:
        copy.write_row([2])
    connection.execute("CREATE SCHEMA shop.fresh")
    connection.execute("SET search_path = shop.fresh")
    connection.execute("CREATE TABLE other (a INTEGER)")
    connection.execute("RESET search_path")
    assert one(connection, "SELECT sum(a) FROM shop.made") == 3
    assert one(connection, "SELECT count(*) FROM shop.fresh.other") == 0
    connection.execute("DROP TABLE shop.made")
    connection.execute("DROP SCHEMA shop.fresh CASCADE")


def test_paths_of_several_clients_do_not_meet(served):
    with (
        psycopg.connect(served.dsn(options="-c search_path=shop"), autocommit=True) as one_client,
        psycopg.connect(served.dsn(user="ben"), autocommit=True) as other,
    ):
        for _ in range(5):
            with one_client.pipeline(), other.pipeline():
                found = one_client.execute(ORDERS), other.execute(ORDERS)
            assert [each.fetchone()[0] for each in found] == ["shop", "main"]


def test_a_schema_that_cannot_be_searched_is_refused(connection):
    with pytest.raises(psycopg.errors.FeatureNotSupported, match="information_schema"):
        connection.execute("SET search_path = main, information_schema")


def test_the_tables_of_a_single_database_file_are_in_main(tmp_path):
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "shop.duckdb"
    with duckdb.connect(str(file)) as shop:
        shop.execute("CREATE TABLE orders AS SELECT 'main' AS w")
        shop.execute("CREATE SCHEMA archive; CREATE TABLE archive.orders AS SELECT 'archive' AS w")
    with (
        a_server(tmp_path, place=file) as served,
        psycopg.connect(served.dsn(), autocommit=True) as made,
    ):
        for word, found in (("shop", "main"), ("shop.archive", "archive"), ("public", "main")):
            made.execute(f"SET search_path = {word}")
            assert one(made, ORDERS) == found
            made.execute(f"USE {word if word != 'public' else 'memory'}")
            assert one(made, ORDERS) == found
        assert one(made, "SELECT current_schema()") == "main"
        assert one(made, "SELECT w FROM main.orders") == "main"
