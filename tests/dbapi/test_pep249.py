"""The database interface, as tools use it."""

from __future__ import annotations

import datetime as dt
import threading
import warnings
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from service.anywhere import PLACES, served, token_of

import queryard
from queryard import dbapi
from queryard.core.errors import QueryardError


@pytest.fixture(scope="module", params=PLACES)
def place(request, tmp_path_factory):
    """What a connection is made to: data of this process, or a server with none."""
    if request.param == "embedded":
        yield {"slots": 2, "memory": "512MB"}
        return
    folder = tmp_path_factory.mktemp("server")
    with queryard.connect(slots=2, memory="512MB") as session, served(session, folder) as url:
        yield {"where": url, "token": token_of(folder)}


@pytest.fixture
def connection(place):
    made = dbapi.connect(**place)
    yield made
    made.close()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, what VARCHAR)")
        made.execute("INSERT INTO orders VALUES (1, 'tea')")
    return file


def count(file: Path) -> int:
    with duckdb.connect(str(file), read_only=True) as reader:
        return reader.execute("SELECT count(*) FROM orders").fetchone()[0]


def test_what_the_module_says_of_itself() -> None:
    assert (dbapi.apilevel, dbapi.paramstyle, dbapi.threadsafety) == ("2.0", "qmark", 2)
    for name in ("Date", "Time", "Timestamp", "Binary", "STRING", "BINARY", "NUMBER", "ROWID"):
        assert hasattr(dbapi, name)
    assert dbapi.DateFromTicks(0).year in (1969, 1970)
    assert isinstance(dbapi.TimestampFromTicks(0), dt.datetime)
    assert isinstance(dbapi.TimeFromTicks(0), dt.time)


def test_the_family_of_errors() -> None:
    for name in ("DataError", "OperationalError", "IntegrityError", "InternalError"):
        assert issubclass(getattr(dbapi, name), dbapi.DatabaseError)
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    assert issubclass(dbapi.Error, QueryardError)
    assert issubclass(dbapi.Warning, Warning)
    assert dbapi.Connection.ProgrammingError is dbapi.ProgrammingError


def test_rows_and_their_description(connection) -> None:
    cursor = connection.cursor()
    assert cursor.description is None
    cursor.execute(
        "SELECT 1::BIGINT AS n, 'a' AS t, 1.25::DECIMAL(9,2) AS d, DATE '2024-01-02' AS w"
    )
    assert [column[0] for column in cursor.description] == ["n", "t", "d", "w"]
    assert all(len(column) == 7 for column in cursor.description)
    kinds = [dbapi.NUMBER, dbapi.STRING, dbapi.NUMBER, dbapi.DATETIME]
    assert [column[1] for column in cursor.description] == kinds
    assert cursor.description[2][4:6] == (9, 2)
    assert cursor.rowcount == -1
    assert cursor.fetchone() == (1, "a", Decimal("1.25"), dt.date(2024, 1, 2))
    assert cursor.fetchone() is None


def test_fetching(connection) -> None:
    cursor = connection.cursor()
    cursor.execute("SELECT range FROM range(10)")
    cursor.arraysize = 3
    assert cursor.fetchmany() == [(0,), (1,), (2,)]
    assert cursor.fetchmany(2) == [(3,), (4,)]
    assert next(cursor) == (5,)
    assert cursor.fetchall() == [(6,), (7,), (8,), (9,)]
    assert cursor.fetchall() == []
    assert list(connection.execute("SELECT range FROM range(3)")) == [(0,), (1,), (2,)]


def test_an_endless_query_can_be_left(connection) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT range FROM range(1000000000000)")
        assert cursor.fetchone() == (0,)
        cursor.execute("SELECT 42")
        assert cursor.fetchall() == [(42,)]


def test_parameters(connection) -> None:
    cursor = connection.cursor()
    assert cursor.execute("SELECT ? + ?", (1, 2)).fetchall() == [(3,)]
    assert cursor.execute("SELECT $a || $b", {"a": "x", "b": "y"}).fetchall() == [("xy",)]
    with pytest.raises(dbapi.ProgrammingError, match="1 parameter, 0 were given"):
        cursor.execute("SELECT ?", ())


def test_statements_without_rows(connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TEMP TABLE t (n INTEGER, s VARCHAR)")
    assert (cursor.description, cursor.rowcount) == (None, 0)
    cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, "b"), (3, None)])
    assert cursor.rowcount == 3
    with pytest.raises(dbapi.InterfaceError, match="no rows"):
        cursor.fetchone()
    assert cursor.execute("UPDATE t SET n = n + 1 WHERE s IS NOT NULL").rowcount == 2
    assert cursor.execute("FROM t ORDER BY ALL").fetchall() == [(2, "a"), (3, "b"), (3, None)]
    with pytest.raises(dbapi.ProgrammingError, match="executemany"):
        cursor.executemany("SELECT ?", [(1,)])


def test_several_statements(connection) -> None:
    cursor = connection.cursor()
    cursor.execute("CREATE TEMP TABLE u AS SELECT 1 AS a; INSERT INTO u VALUES (2); FROM u")
    assert cursor.fetchall() == [(1,), (2,)]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SELEC 1", dbapi.ProgrammingError),
        ("SELECT * FROM nowhere", dbapi.ProgrammingError),
        ("SELECT nothing", dbapi.ProgrammingError),
        ("SELECT CAST('x' AS INTEGER)", dbapi.DataError),
        ("SELECT 2147483647::INTEGER + 1::INTEGER", dbapi.DataError),
        ("COPY (SELECT 1) TO 'x.csv'", dbapi.NotSupportedError),
        ("SET threads = 9", dbapi.NotSupportedError),
    ],
)
def test_errors_are_of_the_right_kind(connection, sql: str, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        connection.execute(sql).fetchall()
    assert isinstance(caught.value.__cause__, QueryardError)


def test_a_place_that_is_not_there() -> None:
    with pytest.raises(dbapi.OperationalError, match="no such file"):
        dbapi.connect("/no/such/place")


def test_transactions(shop: Path) -> None:
    with dbapi.connect(shop, write=True, slots=1, memory="512MB") as connection:
        cursor = connection.cursor()
        cursor.execute("INSERT INTO orders VALUES (2, 'milk')")
        assert connection.in_transaction
        connection.rollback()
        assert cursor.execute("SELECT count(*) FROM orders").fetchall() == [(1,)]
        cursor.execute("INSERT INTO orders VALUES (3, 'rum')")
        connection.commit()
        with pytest.raises(dbapi.IntegrityError):
            cursor.execute("INSERT INTO orders VALUES (3, 'again')")
        connection.rollback()
        cursor.execute("DELETE FROM orders WHERE id = 1")
    assert count(shop) == 1  # the block ended well, so it was committed


def test_a_failed_block_and_a_close_undo(shop: Path) -> None:
    def fail() -> None:
        with dbapi.connect(shop, write=True, slots=1, memory="512MB") as connection:
            connection.execute("INSERT INTO orders VALUES (2, 'milk')")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    connection = dbapi.connect(shop, write=True, slots=1, memory="512MB")
    connection.execute("INSERT INTO orders VALUES (2, 'milk')")
    connection.close()
    assert count(shop) == 1


def test_autocommit(shop: Path) -> None:
    connection = dbapi.connect(shop, write=True, autocommit=True, slots=1, memory="512MB")
    connection.execute("INSERT INTO orders VALUES (2, 'milk')")
    assert not connection.in_transaction
    connection.close()
    assert count(shop) == 2


def test_what_is_closed_says_so(connection) -> None:
    cursor = connection.cursor()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.execute("SELECT 1")
    other = connection.cursor()
    connection.close()
    connection.close()
    with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
        other.execute("SELECT 1")
    with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
        connection.commit()


def test_threads_share_a_connection(connection) -> None:
    found: list[int] = []

    def ask(number: int) -> None:
        found.append(connection.execute("SELECT sum(range) FROM range(?)", [number]).fetchone()[0])

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [n * (n - 1) // 2 for n in range(1, 9)]


def test_pandas_reads_from_it(connection) -> None:
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas tests with SQLAlchemy and SQLite only, and says so
        frame = pd.read_sql(
            "SELECT range AS n, 'x' AS t FROM range(5) WHERE range > ?", connection, params=[2]
        )
        pieces = list(pd.read_sql("SELECT range AS n FROM range(5)", connection, chunksize=2))
    assert frame["n"].tolist() == [3, 4]
    assert frame["t"].tolist() == ["x", "x"]
    assert [len(piece) for piece in pieces] == [2, 2, 1]
