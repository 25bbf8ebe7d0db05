"""DuckDB's own database files: any session reads them, only a session for writing writes them."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest

import queryard
from queryard.core.errors import QueryardError


@pytest.fixture
def database(tmp_path) -> Path:
    path = tmp_path / "things.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i, i % 10 AS k FROM range(100000) AS r(i)")
        connection.execute("CREATE VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
        connection.execute("CREATE SCHEMA other")
        connection.execute("CREATE TABLE other.t AS SELECT 'other' AS name")
    return path


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


def test_tables_go_by_their_names(database):
    with queryard.connect(database, slots=2) as qy:
        assert rows(qy, "SELECT count(*), sum(i) FROM t") == [(100_000, 4_999_950_000)]
        assert rows(
            qy, "SELECT a.k, count(*) FROM t a JOIN t b USING (i) GROUP BY 1 ORDER BY 1 LIMIT 1"
        ) == [(0, 10_000)]
        assert rows(qy, "SELECT n FROM v WHERE k = 3") == [(10_000,)]
        assert rows(qy, "SELECT name FROM other.t") == [("other",)]
        assert rows(qy, "CREATE TEMP TABLE mine AS FROM t WHERE i < 5") == [(5,)]
        assert rows(qy, "SELECT count(*) FROM mine") == [(5,)]


def test_a_reading_session_cannot_change_it(database):
    with queryard.connect(database, slots=2) as qy:
        for sql in (
            "INSERT INTO t VALUES (1, 1)",
            "DELETE FROM t",
            "UPDATE t SET k = 0",
            "DROP TABLE t",
            "ALTER TABLE t ADD COLUMN z INTEGER",
            "TRUNCATE t",
            "CREATE TABLE u AS SELECT 1",
            "CREATE INDEX x ON t (i)",
            "CREATE VIEW things.w AS SELECT 1",
            "CREATE SCHEMA things.s",
            "CREATE MACRO things.m() AS 1",
            "COMMENT ON TABLE t IS 'x'",
        ):
            with pytest.raises(QueryardError):
                rows(qy, sql)
            assert rows(qy, "SELECT count(*) FROM t") == [(100_000,)], sql
    with duckdb.connect(str(database), read_only=True) as plain:
        assert plain.sql("SELECT count(*) FROM t").fetchall() == [(100_000,)]


def test_a_writing_session_changes_it_for_good(database):
    with queryard.connect(database, slots=2, write=True) as qy:
        assert rows(qy, "INSERT INTO t VALUES (-1, -1)") == [(1,)]
        assert rows(qy, "UPDATE t SET k = 77 WHERE i < 5") == [(6,)]
        rows(qy, "BEGIN")
        rows(qy, "DELETE FROM t")
        rows(qy, "ROLLBACK")
        assert rows(qy, "SELECT count(*) FROM t") == [(100_001,)]
        rows(qy, "CREATE TABLE things.made AS SELECT 1 AS one")
        assert rows(qy, "FROM things.made") == [(1,)]
    with duckdb.connect(str(database), read_only=True) as plain:
        assert plain.sql("SELECT count(*) FROM t WHERE k = 77").fetchall() == [(6,)]
        assert plain.sql("SELECT count(*) FROM made").fetchall() == [(1,)]


def test_two_readers_in_one_process(database):
    with queryard.connect(database, slots=2) as one, queryard.connect(database, slots=2) as two:
        for _ in range(3):
            assert rows(one, "SELECT count(*) FROM t") == [(100_000,)]
            assert rows(two, "SELECT count(*) FROM t") == [(100_000,)]


def test_two_writers_in_one_process_lose_nothing(database):
    """Two instances that write the same file would overwrite one another's blocks."""
    with queryard.connect(database, slots=2, write=True) as one:
        assert rows(one, "INSERT INTO t VALUES (-1, -1)") == [(1,)]
        try:
            with queryard.connect(database, slots=2, write=True) as two:
                rows(two, "INSERT INTO t VALUES (-2, -2)")
                expected = 100_002
        except QueryardError:
            expected = 100_001
        assert rows(one, "SELECT count(*) FROM t") == [(expected,)]
    with duckdb.connect(str(database), read_only=True) as plain:
        assert plain.sql("SELECT count(*) FROM t").fetchall() == [(expected,)]


def test_many_threads_read_at_once(database):
    with queryard.connect(database, slots=2) as qy:
        found = []

        def ask(k: int) -> None:
            found.append(rows(qy, "SELECT count(*) FROM t WHERE k = ?", [k]))

        threads = [threading.Thread(target=ask, args=(i % 10,), daemon=True) for i in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        assert found == [[(10_000,)]] * 20


def test_beside_files_in_a_folder(data, tmp_path):
    import shutil

    folder = tmp_path / "mixed"
    folder.mkdir()
    shutil.copy(data / "dims.parquet", folder / "dims.parquet")
    with duckdb.connect(str(folder / "db.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE extra AS SELECT i AS key, i * 2 AS two FROM range(10) AS r(i)"
        )
    with queryard.connect(folder, slots=2) as qy:
        names = [name for name in qy.catalog.tables if name.endswith("extra")]
        assert names, list(qy.catalog.tables)
        sql = f"SELECT sum(two) FROM dims JOIN {names[0]} USING (key)"
        assert rows(qy, sql) == [(90,)]
        assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]


def test_a_database_that_another_process_writes_is_a_clear_error(database):
    import subprocess
    import sys

    code = (
        "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); "
        "c.execute('INSERT INTO t VALUES (1, 1)'); print('ready', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(database)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "ready"
        with (
            pytest.raises(QueryardError, match=r"things\.duckdb"),
            queryard.connect(database, slots=2) as qy,
        ):
            rows(qy, "SELECT count(*) FROM t")
    finally:
        holder.kill()
        holder.wait()
    with queryard.connect(database, slots=2) as qy:
        assert rows(qy, "SELECT count(*) >= 100000 FROM t") == [(True,)]


def test_a_broken_database_file_is_a_clear_error(tmp_path):
    (tmp_path / "bad.duckdb").write_bytes(b"this is no database" * 1000)
    with (
        pytest.raises(QueryardError, match=r"bad\.duckdb"),
        queryard.connect(tmp_path / "bad.duckdb", slots=2) as qy,
    ):
        rows(qy, "SHOW TABLES")


def test_several_queries_read_it_at_once(database):
    with queryard.connect(database, slots=2) as qy:
        long = "SELECT sum(a.i * b.i) FROM t a, t b WHERE a.k = b.k"
        first = qy.submit(long)
        second = qy.submit("SELECT count(*) FROM things.v")
        assert second.result().fetchall() == [(10,)]
        assert first.status == "running"
        first.cancel()
        # What the session keeps is still found where it is.
        rows(qy, "CREATE TEMP TABLE mine AS FROM t WHERE i < 5")
        assert rows(qy, "SELECT count(*) FROM mine JOIN t USING (i)") == [(5,)]
    # No session has it open any more.
    with queryard.connect(database, slots=2, write=True) as qy:
        rows(qy, "INSERT INTO t VALUES (-1, 0)")
        assert rows(qy, "SELECT min(i) FROM t") == [(-1,)]


def test_files_in_a_schema_beside_a_database(database, tmp_path):
    files = tmp_path / "sales"
    files.mkdir()
    (files / "orders.csv").write_text("a\n1\n")
    with queryard.connect(
        tables={"things": str(database), "sales.orders": str(files / "orders.csv")}, slots=1
    ) as qy:
        assert rows(qy, "SELECT count(*) FROM things.t, sales.orders") == [(100_000,)]


def test_a_database_that_was_replaced_is_read_anew_by_every_session(database, tmp_path):
    other = tmp_path / "other.duckdb"
    with duckdb.connect(str(other)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i, 5 AS k FROM range(7) AS r(i)")
    with queryard.connect(database, slots=2) as qy:
        before = [qy.submit(f"SELECT count(*), {n} FROM t") for n in range(6)]
        assert {handle.result().fetchall()[0][0] for handle in before} == {100_000}
        other.replace(database)
        qy.refresh()
        after = [qy.submit(f"SELECT count(*), {n} FROM t") for n in range(6)]
        assert {handle.result().fetchall()[0][0] for handle in after} == {7}


def test_most_of_the_memory_is_where_a_database_is_read(database):
    with queryard.connect(database, slots=1, memory="4 GB") as qy:
        assert qy.client.pool_bytes > 2.5e9
    with queryard.connect(database, slots=1, memory="4 GB", write=True) as qy:
        assert qy.client.pool_bytes < 1.5e9
