"""Other clients, as they come from the registries; each is left out where it is not installed.

The server runs in a process of its own here: some of these clients hold the interpreter's lock
while they wait.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tests.service.postgres.jdbc import jdbc_driver
from tests.service.postgres.served_postgres import Login

ROOT = Path(__file__).parents[3]
ROWS = "SELECT n, t, n / 7 AS q FROM numbers ORDER BY n"


@pytest.fixture(scope="module")
def login(tmp_path_factory) -> Iterator[Login]:
    folder = tmp_path_factory.mktemp("clients")
    program = [sys.executable, str(Path(__file__).parent / "served_postgres.py"), str(folder)]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    with subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        port, secret = process.stdout.readline().split()
        yield Login(int(port), {"ann": secret}, folder / "data")
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.fixture
def expected(login) -> list[tuple[object, ...]]:
    return duckdb.sql(ROWS.replace("numbers", f"'{login.data}/numbers.parquet'")).fetchall()


# --- asyncpg -------------------------------------------------------------------------------------


def test_asyncpg(login, expected):
    asyncpg = pytest.importorskip("asyncpg")

    async def main() -> None:
        made = await asyncpg.connect(login.url())
        assert [tuple(row) for row in await made.fetch(ROWS)] == expected
        found = await made.fetchrow("SELECT $1::INT + 1 AS a, $2::DATE AS b, $3 AS c", 1, DAY, "x")
        assert tuple(found) == (2, DAY, "x")
        below = "SELECT count(*) FROM numbers WHERE n < $1 AND t = $2"
        assert await made.fetchval(below, 10, "row 3") == 1
        assert await made.fetchval("SELECT [1, NULL, 3]") == [1, None, 3]
        assert await made.fetchval("SELECT 1 WHERE 5 = ANY($1::INT[])", [1, 5]) == 1
        async with made.transaction():
            rows = made.cursor(ROWS, prefetch=7000)
            assert [tuple(row) async for row in rows] == expected
        prepared = await made.prepare("SELECT n FROM numbers WHERE n = $1")
        assert [await prepared.fetchval(n) for n in (5, 6)] == [5, 6]
        with pytest.raises(asyncpg.UndefinedTableError):
            await made.fetch("SELECT * FROM nothing_there")
        with pytest.raises((TimeoutError, asyncio.TimeoutError)):
            await made.fetch(ENDLESS, timeout=0.3)
        assert await made.fetchval("SELECT 1") == 1
        await made.close()

    asyncio.run(main())


DAY = dt.date(2024, 1, 1)
ENDLESS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 1"


def test_a_pool_of_asyncpg(login):
    asyncpg = pytest.importorskip("asyncpg")

    async def main() -> list[int]:
        async with asyncpg.create_pool(login.url(), min_size=2, max_size=4) as pool:
            return await asyncio.gather(*(pool.fetchval(f"SELECT {n}") for n in range(12)))

    assert asyncio.run(main()) == list(range(12))


# --- frames --------------------------------------------------------------------------------------


def test_adbc(login, expected):
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi")
    with dbapi.connect(login.url()) as made, made.cursor() as cursor:
        cursor.execute(ROWS)
        table = cursor.fetch_arrow_table()
        assert list(zip(*table.to_pydict().values(), strict=True)) == expected


@pytest.mark.parametrize("protocol", ["binary", "csv", "cursor"])
def test_connectorx(login, protocol):
    connectorx = pytest.importorskip("connectorx")
    sql = "SELECT n, t, DATE '2024-01-01' AS d, n / 2 AS h FROM numbers"
    frame = connectorx.read_sql(login.url(), sql, return_type="polars", protocol=protocol)
    assert frame.shape == (30_000, 4)
    assert frame["n"].sum() == sum(range(30_000))


def test_connectorx_in_partitions(login):
    connectorx = pytest.importorskip("connectorx")
    frame = connectorx.read_sql(
        login.url(),
        "SELECT n FROM numbers",
        partition_on="n",
        partition_num=3,
        return_type="polars",
    )
    assert frame["n"].sum() == sum(range(30_000))


def test_polars(login):
    polars = pytest.importorskip("polars")
    pytest.importorskip("connectorx")
    frame = polars.read_database_uri("SELECT n, t FROM numbers", login.url())
    assert frame.shape == (30_000, 2)
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(login.dsn()) as made:
        small = polars.read_database("SELECT * FROM small ORDER BY a", made)
    assert small.rows() == [(1, "x"), (2, None), (3, "z")]


def test_pandas_and_sqlalchemy(login):
    pandas = pytest.importorskip("pandas")
    sqlalchemy = pytest.importorskip("sqlalchemy")
    engine = sqlalchemy.create_engine(login.url(scheme="postgresql+psycopg"))
    with engine.connect() as made:
        frame = pandas.read_sql("SELECT * FROM small ORDER BY a", made)
        assert frame["a"].tolist() == [1, 2, 3]
        words = sqlalchemy.text("SELECT count(*) FROM numbers WHERE n < :most")
        assert made.execute(words, {"most": 7}).scalar() == 7
    reflected = sqlalchemy.Table("numbers", sqlalchemy.MetaData(), autoload_with=engine)
    assert [(c.name, str(c.type)) for c in reflected.columns] == [("n", "BIGINT"), ("t", "TEXT")]
    assert set(sqlalchemy.inspect(engine).get_table_names()) == {"numbers", "small"}
    with engine.connect() as made:
        query = sqlalchemy.select(reflected.c.n).where(reflected.c.t == "row 5")
        assert made.execute(query).scalars().all() == [5]
    engine.dispose()


# --- psql ----------------------------------------------------------------------------------------


def psql(login: Login, *words: str) -> str:
    program = shutil.which("psql")
    if program is None:
        pytest.skip("psql is not installed")
    run = subprocess.run(
        [program, "-X", "-At", "-v", "ON_ERROR_STOP=1", login.dsn(), *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_psql(login):
    assert psql(login, "-c", "SELECT a, b FROM small ORDER BY a") == "1|x\n2|\n3|z\n"
    assert psql(login, "-c", "\\copy (SELECT a, b FROM small ORDER BY a) TO STDOUT CSV") == (
        "1,x\n2,\n3,z\n"
    )
    cursor = "\\set FETCH_COUNT 1000\nSELECT n FROM numbers ORDER BY n;\n"
    script = login.data.parent / "script.sql"
    script.write_text(cursor)
    assert psql(login, "-f", str(script)).split() == [str(n) for n in range(30_000)]


@pytest.mark.parametrize("word", ["\\d", "\\dt", "\\d numbers", "\\l", "\\dn", "\\conninfo"])
def test_what_psql_shows(login, word):
    assert psql(login, "-c", word)


# --- JDBC ----------------------------------------------------------------------------------------


JAVA = """
import java.sql.*;
public class Ask {
  public static void main(String[] a) throws Exception {
    try (Connection c = DriverManager.getConnection(a[0], "ann", a[1])) {
      c.setAutoCommit(false);
      PreparedStatement s = c.prepareStatement("SELECT n FROM numbers WHERE n < ? ORDER BY n");
      s.setFetchSize(7); s.setInt(1, 20);
      long sum = 0; int rows = 0;
      try (ResultSet r = s.executeQuery()) { while (r.next()) { sum += r.getLong(1); rows++; } }
      System.out.println(rows + " " + sum);
      c.rollback();
      try (ResultSet t = c.getMetaData().getTables(null, null, "%", new String[] {"TABLE"})) {
        while (t.next()) System.out.println(t.getString("TABLE_NAME"));
      }
      try (ResultSet t = c.getMetaData().getColumns(null, null, "numbers", "%")) {
        while (t.next()) System.out.println(t.getString(4) + " " + t.getString("TYPE_NAME"));
      }
      try (Statement q = c.createStatement()) {
        q.setQueryTimeout(1);
        q.executeQuery("SELECT count(*) FROM range(10000000) a, range(10000000) b "
          + "WHERE a.range + b.range = 1");
      } catch (SQLException e) { System.out.println(e.getSQLState()); }
    }
  }
}
"""


@pytest.mark.long
def test_jdbc(login, tmp_path):
    driver = jdbc_driver()
    source = tmp_path / "Ask.java"
    source.write_text(JAVA)
    url = f"jdbc:postgresql://127.0.0.1:{login.port}/yard"
    run = subprocess.run(
        ["java", "-cp", str(driver), str(source), url, login.secrets["ann"]],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["20 190", "numbers", "small", "n int8", "t text", "57014"]
