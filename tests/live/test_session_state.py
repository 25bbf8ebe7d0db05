"""What a statement leaves behind is there for the next one, in the order in which they came."""

from __future__ import annotations

import threading
import time

import pytest
from engine.native_driving import check_same, plain
from service.anywhere import PLACES, a_session
from waiting import wait_until

from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed


@pytest.fixture(params=PLACES)
def qy(request, data, tmp_path):
    """A session that only reads, with two slots and a small budget."""
    options = {"slots": 2, "memory": "512 MB", "temp": tmp_path / "temp"}
    with a_session(request.param, tmp_path, data, **options) as session:
        yield session


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


def test_temporary_tables_live_as_long_as_the_session(qy):
    rows(qy, "CREATE TEMP TABLE t AS SELECT key, part FROM dims WHERE key < 10")
    assert rows(qy, "SELECT count(*), sum(key) FROM t") == [(10, 45)]
    assert rows(qy, "INSERT INTO t VALUES (100, 1)") == [(1,)]
    assert rows(qy, "UPDATE t SET part = 0 WHERE key = 100") == [(1,)]
    assert rows(qy, "SELECT part FROM t WHERE key = 100") == [(0,)]
    assert rows(qy, "DELETE FROM t WHERE key < 5") == [(5,)]
    assert rows(qy, "SELECT count(*) FROM t JOIN dims USING (key)") == [(6 - 0,)]
    rows(qy, "DROP TABLE t")
    with pytest.raises(QueryFailed, match="t does not exist"):
        rows(qy, "FROM t")


def test_a_temporary_table_hides_a_table_of_the_catalog_until_it_is_dropped(qy):
    rows(qy, "CREATE TEMP TABLE dims AS SELECT 1 AS only")
    assert rows(qy, "SELECT * FROM dims") == [(1,)]
    rows(qy, "DROP TABLE dims")
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]
    rows(qy, "CREATE TEMP VIEW dims AS SELECT 2 AS only")
    assert rows(qy, "SELECT * FROM dims") == [(2,)]
    rows(qy, "DROP VIEW dims")
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]


@pytest.mark.parametrize("made", ["CREATE OR REPLACE VIEW", "CREATE VIEW"])
def test_a_view_named_like_a_table_is_used_everywhere_or_refused(qy, made):
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]
    try:
        rows(qy, f"{made} dims AS SELECT 42 AS only")
    except QueryardError:
        expected = [(1000,)]
    else:
        expected = [(1,)]
    assert rows(qy, "SELECT count(*) FROM dims") == expected
    rows(qy, "CREATE TEMP TABLE here AS SELECT count(*) AS n FROM dims")
    assert rows(qy, "FROM here") == expected


def test_a_table_of_the_catalog_survives_being_dropped(qy):
    rows(qy, "CREATE TEMP TABLE before AS SELECT count(*) AS n FROM dims")
    with pytest.raises(QueryardError, match="DROP cannot change"):
        rows(qy, "DROP VIEW dims")
    rows(qy, "CREATE TEMP TABLE after AS SELECT count(*) AS n FROM dims")
    assert rows(qy, "FROM after") == [(1000,)]
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]


def test_views_and_macros_over_files(qy):
    rows(qy, "CREATE VIEW few AS SELECT * FROM dims WHERE key < 7")
    assert rows(qy, "SELECT count(*) FROM few") == [(7,)]
    rows(qy, "CREATE MACRO twice(x) AS 2 * x")
    assert rows(qy, "SELECT twice(21)") == [(42,)]
    assert rows(qy, "SELECT sum(twice(key)) FROM dims") == [(999_000,)]
    rows(qy, "CREATE MACRO first_dims(n) AS TABLE SELECT * FROM dims WHERE key < n")
    assert rows(qy, "SELECT count(*) FROM first_dims(3)") == [(3,)]
    rows(qy, "CREATE MACRO many() AS (SELECT count(*) FROM facts)")
    assert rows(qy, "SELECT many()") == [(400_000,)]


def test_a_view_that_names_a_table_only_inside(qy):
    """The statement does not name the table; its view does."""
    rows(qy, "CREATE VIEW v AS SELECT count(*) AS n FROM facts")
    assert rows(qy, "FROM v") == [(400_000,)]
    assert rows(qy, "SELECT n + 1 FROM v") == [(400_001,)]


def test_settings_change_what_follows(qy):
    rows(qy, "SET TimeZone = 'America/New_York'")
    assert rows(qy, "SELECT current_setting('TimeZone')") == [("America/New_York",)]
    assert rows(qy, "SELECT (TIMESTAMPTZ '2024-01-01 00:00:00+00')::VARCHAR") == [
        ("2023-12-31 19:00:00-05",)
    ]
    rows(qy, "RESET TimeZone")
    rows(qy, "SET default_order = 'DESC'")
    assert rows(qy, "SELECT key FROM dims ORDER BY key LIMIT 1") == [(999,)]


def test_transactions_roll_back_and_commit(qy):
    rows(qy, "CREATE TEMP TABLE t (i INTEGER PRIMARY KEY)")
    rows(qy, "BEGIN")
    rows(qy, "INSERT INTO t VALUES (1), (2)")
    assert rows(qy, "SELECT count(*) FROM t") == [(2,)]
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]
    rows(qy, "ROLLBACK")
    assert rows(qy, "SELECT count(*) FROM t") == [(0,)]
    rows(qy, "BEGIN TRANSACTION; INSERT INTO t VALUES (3); COMMIT")
    assert rows(qy, "SELECT * FROM t") == [(3,)]


def test_an_error_in_a_transaction_ends_with_a_rollback(qy):
    rows(qy, "CREATE TEMP TABLE t (i INTEGER PRIMARY KEY)")
    rows(qy, "/* here */ BEGIN")
    rows(qy, "INSERT INTO t VALUES (1)")
    with pytest.raises(QueryFailed, match="Constraint"):
        rows(qy, "INSERT INTO t VALUES (1)")
    with pytest.raises(QueryFailed, match=r"(?i)transaction"):
        rows(qy, "SELECT count(*) FROM t")
    rows(qy, "ROLLBACK")
    assert rows(qy, "SELECT count(*) FROM t") == [(0,)]
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]


def test_made_in_a_transaction_and_committed(qy):
    rows(qy, "begin")
    rows(qy, "CREATE TEMP TABLE made AS SELECT 1 AS i")
    rows(qy, "commit")
    assert rows(qy, "FROM made") == [(1,)]
    rows(qy, "start transaction")
    rows(qy, "DROP TABLE made")
    rows(qy, "abort")
    assert rows(qy, "FROM made") == [(1,)]


def test_prepared_by_sql(qy):
    rows(qy, "PREPARE p AS SELECT count(*) FROM dims WHERE part = $1")
    assert rows(qy, "EXECUTE p(3)") == [(143,)]
    assert rows(qy, "EXECUTE p(99)") == [(0,)]
    rows(qy, "DEALLOCATE p")
    with pytest.raises(QueryFailed, match="p"):
        rows(qy, "EXECUTE p(3)")


def test_scripts_answer_with_the_last_statement(qy):
    assert rows(qy, "SELECT 1; SELECT 2; SELECT 3") == [(3,)]
    assert rows(qy, "SELECT 1; SELECT ? + ?", [40, 2]) == [(42,)]
    sql = "CREATE TEMP TABLE a AS SELECT 1 AS x; INSERT INTO a VALUES (2); SELECT sum(x) FROM a;"
    assert rows(qy, sql) == [(3,)]
    assert rows(qy, "SELECT ';'; -- a comment; with one\nSELECT 'a;b';;") == [("a;b",)]


def test_a_script_stops_at_its_first_error(qy):
    rows(qy, "CREATE TEMP TABLE t (i INTEGER)")
    with pytest.raises(QueryFailed, match="nowhere"):
        rows(qy, "INSERT INTO t VALUES (1); SELECT * FROM nowhere; INSERT INTO t VALUES (2)")
    assert rows(qy, "FROM t") == [(1,)]


def test_many_small_statements_in_a_row(qy):
    for number in range(40):
        rows(qy, f"SET VARIABLE v = {number}")
        assert rows(qy, "SELECT getvariable('v')") == [(number,)]


def test_long_scripts(qy):
    inserts = "".join(f"INSERT INTO t VALUES ({i});" for i in range(120))
    assert rows(
        qy, f"CREATE TEMP TABLE t (i INTEGER); {inserts} SELECT count(*), sum(i) FROM t"
    ) == [(120, 7140)]


def test_order_is_kept_without_waiting(qy):
    handles = [qy.submit("CREATE TEMP TABLE t AS SELECT 0 AS i FROM facts")]
    for _ in range(8):
        handles.append(qy.submit("INSERT INTO t SELECT max(i) + 1 FROM t"))
        handles.append(qy.submit("SELECT max(i) FROM t"))
    found = [h.result(30).fetchall()[0][0] for h in handles[2::2]]
    assert found == list(range(1, 9))


def test_created_and_then_read_at_once(qy):
    for number in range(15):
        qy.submit(f"CREATE OR REPLACE TEMP TABLE t AS SELECT {number} AS i")
        assert qy.submit("SELECT i FROM t").result(30).fetchall() == [(number,)]
    qy.submit("SET VARIABLE x = 5")
    assert qy.submit("SELECT getvariable('x')").result(30).fetchall() == [(5,)]


def test_readers_of_files_wait_for_a_statement_that_may_change_what_they_mean(qy):
    qy.submit("CREATE TEMP TABLE dims AS SELECT count(*) AS n FROM facts, range(20)")
    assert qy.submit("SELECT n FROM dims").result(60).fetchall() == [(8_000_000,)]


def test_a_slow_reader_does_not_hold_up_the_next_statement(qy):
    rows(qy, "CREATE TEMP TABLE big AS SELECT id, words FROM facts")
    slow = qy.submit("SELECT b.*, range FROM big b, range(5)")
    answer = slow.result(30)
    assert rows(qy, "CREATE TEMP TABLE small AS SELECT 1 AS i") == [(1,)]
    assert rows(qy, "FROM small") == [(1,)]
    assert sum(batch.num_rows for batch in answer.batches()) == 2_000_000


def test_a_closed_reader_leaves_no_spool_file(qy, tmp_path):
    rows(qy, "CREATE TEMP TABLE big AS SELECT id, words FROM facts")
    answer = qy.sql("SELECT b.*, range FROM big b, range(5)")
    answer.close()
    unread = qy.submit("SELECT b.*, range FROM big b, range(5)")
    assert unread.wait(60)
    unread.result(5).close()
    rows(qy, "FROM big LIMIT 1")
    wait_until(lambda: not list((tmp_path / "temp").rglob("*.arrow")), 10.0, "the file's end")


def test_two_threads_on_one_session(qy):
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            rows(qy, f"CREATE TEMP TABLE {name} (i INTEGER)")
            for i in range(15):
                rows(qy, f"INSERT INTO {name} VALUES (?)", [i])
                assert rows(qy, f"SELECT count(*), max(i) FROM {name}") == [(i + 1, i)]
                assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(f"t{n}",), daemon=True) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert failures == []


def test_errors_leave_the_session_well(qy):
    for sql, match in [
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM dims", "nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT error('my words') FROM dims", "my words"),
        ("SELECT 'x'::INTEGER", "Conversion"),
        ("INSERT INTO dims VALUES (1, 2, 'x')", "dims"),
        ("CREATE TEMP TABLE t AS SELECT error('stop') FROM facts", "stop"),
        ("", "no statement"),
        (" ;; -- nothing", "no statement"),
    ]:
        with pytest.raises(QueryardError, match=match):
            rows(qy, sql)
        assert rows(qy, "SELECT 6 * 7") == [(42,)]
    with pytest.raises(QueryFailed, match="t does not exist"):
        rows(qy, "FROM t")


def test_a_session_statement_of_many_rows_equals_duckdb(qy, data):
    rows(qy, "CREATE TEMP TABLE copied AS FROM facts")
    found = qy.sql("SELECT * FROM copied").arrow()
    check_same(found, plain(data, "FROM facts"))


def test_time_passes_while_rows_are_not_read(qy):
    """Rows that wait in the session's file come out in order, whole."""
    rows(qy, "CREATE TEMP TABLE big AS SELECT id FROM facts, range(20)")
    answer = qy.submit("SELECT id, id * 2 AS two, repeat('x', 10) AS x FROM big")
    time.sleep(0.3)
    seen = 0
    for batch in answer.result(30).batches():
        two = batch.column("two").to_numpy()
        assert (batch.column("id").to_numpy() * 2 == two).all()
        seen += batch.num_rows
    assert seen == 8_000_000
