"""Reads of a database run beside one another while its session writes it, and see what they must.

They are further connections of the writing instance: what is not committed is not seen, what was
committed before a read was submitted is.
"""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pytest
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError

LONG = "SELECT sum(a.i * b.i) FROM t a, t b WHERE a.k = b.k"


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "things.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i, i % 10 AS k FROM range(100000) AS r(i)")
        connection.execute("CREATE TABLE log (n BIGINT)")
        connection.execute("CREATE TABLE other (n BIGINT)")
        connection.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM log")
        connection.execute("CREATE MACRO rows_of_log() AS (SELECT count(*) FROM log)")
    return path


@pytest.fixture
def qy(file):
    with queryard.connect(file, write=True, slots=2, history=False) as session:
        yield session


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


def test_several_reads_run_while_rows_are_written(qy, file):
    """Every read counts at least the rows that were there when it was submitted."""
    failures: list[object] = []
    over = threading.Event()
    written = 0

    def read() -> None:
        try:
            while not over.is_set():
                before = written
                many = [qy.submit(f"SELECT count(*), sum(n), {x} FROM log") for x in range(3)]
                for handle in many:
                    count, total, _ = handle.result().fetchall()[0]
                    if count < before or (total or 0) != count * (count - 1) // 2:
                        failures.append((before, count, total))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(60):
        rows(qy, f"INSERT INTO log VALUES ({number})")
        written = number + 1
    over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failures == []
    qy.close()
    with duckdb.connect(str(file), read_only=True) as plain:
        assert plain.sql("SELECT count(*) FROM log").fetchall() == [(60,)]


def test_a_read_does_not_wait_for_a_long_one_nor_for_a_long_write(qy):
    first = qy.submit(LONG)
    assert rows(qy, "SELECT count(*) FROM t") == [(100_000,)]
    assert rows(qy, "SELECT k, count(*) FROM t GROUP BY k ORDER BY k LIMIT 1") == [(0, 10_000)]
    assert not first.ended
    writing = qy.submit(f"INSERT INTO other {LONG}")
    assert rows(qy, "SELECT count(*) FROM log") == [(0,)]
    assert not writing.ended
    writing.cancel()
    first.cancel()
    rows(qy, "INSERT INTO log VALUES (1)")
    assert rows(qy, "SELECT count(*) FROM log") == [(1,)]


@pytest.mark.parametrize(
    "read",
    [
        "SELECT count(*) FROM log",
        "SELECT n FROM counted",
        "SELECT count(*) FROM things.main.log",
        "SELECT rows_of_log()",
        "SELECT rows_of_log() FROM t LIMIT 1",
        "FROM query('SELECT count(*) FROM log')",
    ],
)
@pytest.mark.parametrize(
    "write",
    [
        "INSERT INTO log SELECT i FROM range({n}) r(i)",
        "INSERT INTO things.main.log SELECT i FROM range({n}) r(i)",
        "WITH x AS (SELECT i FROM range({n}) r(i)) INSERT INTO log FROM x",
    ],
)
def test_a_read_sees_what_was_submitted_before_it(qy, read, write):
    rows(qy, "INSERT INTO other VALUES (0)")  # the database is attached by now
    qy.submit(write.format(n=300_000))
    assert rows(qy, read) == [(300_000,)]


def test_the_first_read_sees_a_write_that_is_on_its_way(qy):
    qy.submit("INSERT INTO log SELECT i FROM range(300000) r(i)")
    assert rows(qy, "SELECT n FROM counted") == [(300_000,)]


def test_what_is_not_committed_stays_within_the_transaction(qy):
    rows(qy, "BEGIN")
    rows(qy, "INSERT INTO log VALUES (1)")
    assert rows(qy, "SELECT count(*) FROM log") == [(1,)]
    qy.refresh()
    rows(qy, "ROLLBACK")
    assert rows(qy, "SELECT count(*) FROM log") == [(0,)]
    rows(qy, "BEGIN; INSERT INTO log VALUES (2); COMMIT")
    assert rows(qy, "SELECT n FROM log") == [(2,)]


def test_temporary_objects_are_seen_with_what_is_written(qy):
    rows(qy, "CREATE TEMP TABLE mine AS SELECT 1 AS n")
    assert rows(qy, "SELECT count(*) FROM mine, t") == [(100_000,)]
    rows(qy, "CREATE VIEW over_mine AS FROM mine")
    assert rows(qy, "FROM over_mine") == [(1,)]
    rows(qy, "CREATE TEMP TABLE log AS SELECT 42 AS n")
    assert rows(qy, "SELECT n FROM log") == [(42,)]
    rows(qy, "DROP TABLE temp.log")
    assert rows(qy, "SELECT n FROM log") == []
    rows(qy, "CREATE SEQUENCE numbers")
    assert rows(qy, "SELECT nextval('numbers') FROM t LIMIT 1") == [(1,)]


def test_tables_of_files_beside_tables_that_are_written(file, tmp_path):
    (tmp_path / "names.csv").write_text("k,name\n3,three\n")
    (tmp_path / "more.csv").write_text("k,name\n4,four\n")
    tables = {"names": str(tmp_path / "names.csv"), "sales.more": str(tmp_path / "more.csv")}
    catalog = {"things": str(file), **tables}
    with queryard.connect(tables=catalog, write=True, slots=2, history=False) as qy:
        rows(qy, "INSERT INTO things.log VALUES (3)")
        held = qy.submit(LONG.replace("FROM t a, t b", "FROM things.t a, things.t b"))
        sql = "SELECT name FROM things.log JOIN names ON k = n"
        assert rows(qy, sql) == [("three",)]
        assert not held.ended
        held.cancel()
        (tmp_path / "names.csv").write_text("k,name\n3,drei\n")
        qy.refresh()
        assert rows(qy, sql) == [("drei",)]
        assert rows(qy, "SELECT count(*) FROM things.log, sales.more") == [(1,)]


def test_a_cancelled_read_leaves_the_instance_well(qy):
    for _ in range(5):
        reads = [qy.submit(LONG) for _ in range(3)]
        wait_until(lambda reads=reads: any(read.status == "running" for read in reads))
        for read in reads:
            read.cancel()
        assert rows(qy, "SELECT count(*) FROM t") == [(100_000,)]
        rows(qy, "INSERT INTO log VALUES (1)")
    assert rows(qy, "SELECT count(*) FROM log") == [(5,)]


def test_a_read_that_fails_says_why(qy):
    with pytest.raises(QueryardError, match="no_such"):
        rows(qy, "SELECT no_such FROM t")
    with pytest.raises(QueryardError, match="Conversion"):
        rows(qy, "SELECT sum(('x' || i)::INTEGER) FROM t")
    assert rows(qy, "SELECT count(*) FROM t") == [(100_000,)]


def test_identical_reads_do_not_share_an_older_answer(qy):
    # It runs for much longer than a row takes to be written, and twice to its end.
    pairs = "SELECT sum(a.i * b.i) FROM t a, t b WHERE a.k = b.k AND b.i < 12000"
    sql = f"SELECT count(*), ({pairs}) FROM log"
    first = qy.submit(sql)
    wait_until(lambda: first.status == "running")
    rows(qy, "INSERT INTO log VALUES (1)")
    second = qy.submit(sql)
    first.cancel()
    assert second.result().fetchall()[0][0] == 1


def test_a_file_is_another_session_s_once_the_last_read_of_it_has_ended(qy, tmp_path):
    other = tmp_path / "other.duckdb"
    rows(qy, f"ATTACH '{other}' AS other_file")
    rows(qy, "CREATE TABLE other_file.u AS SELECT i, i % 10 AS k FROM range(100000) r(i)")
    # Its first rows are there, and it cannot end before they are read.
    held = qy.submit("SELECT a.i FROM other_file.u a, other_file.u b")
    held.result()
    rows(qy, "DETACH other_file")
    with pytest.raises(QueryardError, match="a session of"):
        queryard.connect(other, slots=1, history=False)
    held.cancel()
    wait_until(lambda: _opens(other), what="the file is free")


def _opens(file: Path) -> bool:
    try:
        with queryard.connect(file, slots=1, history=False) as session:
            return rows(session, "SELECT count(*) FROM u") == [(100_000,)]
    except QueryardError:
        return False
