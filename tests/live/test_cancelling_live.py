"""Cancelling, time limits and closing, in whatever state a query is."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest
from engine.native_driving import MIB
from service.anywhere import PLACES, a_session, beneath
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryCancelled, QueryTimedOut

LONG = "SELECT count(*), sum(hash(words, range)::HUGEINT) FROM facts, range(5000)"
LONG_STEPS = {
    "aggregate": LONG,
    "filter that matches nothing": "SELECT id FROM facts, range(200) "
    "WHERE regexp_matches(words || range::VARCHAR, '(x+y)+z$')",
    "sort": "SELECT count(*) FROM (SELECT words || range AS w FROM facts, range(30) "
    "ORDER BY w OFFSET 10)",
    "window": "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY key ORDER BY words, id) "
    "AS n FROM facts, range(20))",
    "join": "SELECT count(*) FROM facts a JOIN facts b USING (key), range(20)",
    "cross product": "SELECT count(*) FROM dims a, dims b, dims c WHERE a.name || b.name > c.name",
}


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


@pytest.fixture(params=PLACES)
def anywhere(request, data, tmp_path):
    """The session of `qy`, and one on a server."""
    (tmp_path / "served").mkdir()
    options = {"slots": 2, "memory": "512 MB", "temp": tmp_path / "temp"}
    with a_session(request.param, tmp_path / "served", data, **options) as session:
        yield session


def check_well(session) -> None:
    """The engine answers, and nothing is held."""
    session = beneath(session)
    assert rows(session, "SELECT count(*) FROM dims") == [(1000,)]
    pool = session.host.engine.pool
    wait_until(lambda: pool._used_bytes == 0, 10.0, "the return of all instances")
    assert pool.limits_bytes <= session.client.pool_bytes
    for idle in pool._idle:
        used = idle.instance.control.rows(
            "SELECT sum(memory_usage_bytes)::BIGINT AS bytes FROM duckdb_memory() "
            "WHERE tag NOT IN ('EXTERNAL_FILE_CACHE', 'OBJECT_CACHE', 'METADATA')"
        )[0]["bytes"]
        assert used <= 4 * MIB
    assert not [p for p in session.host._temp.path.rglob("*") if p.suffix in (".tmp", ".arrow")]


@pytest.mark.parametrize("kind", LONG_STEPS)
def test_a_running_query_stops_soon(qy, kind):
    handle = qy.submit(LONG_STEPS[kind])
    wait_until(lambda: handle.status == "running", 10.0)
    time.sleep(0.1)
    began = time.monotonic()
    handle.cancel()
    assert time.monotonic() - began < 0.5, "cancel itself waits"
    assert handle.wait(10)
    assert time.monotonic() - began < 2.0
    assert handle.status == "cancelled"
    with pytest.raises(QueryCancelled, match="cancelled"):
        handle.result(1)
    check_well(qy)


def test_a_waiting_query_ends_at_once(anywhere):
    first = anywhere.submit(LONG, memory=beneath(anywhere).client.pool_bytes)
    second = anywhere.submit("SELECT 1", memory=beneath(anywhere).client.pool_bytes)
    assert second.status == "waiting"
    second.cancel()
    assert second.wait(2)
    with pytest.raises(QueryCancelled):
        second.result(1)
    assert not first.ended
    first.cancel()
    assert first.wait(10)
    check_well(anywhere)


def test_one_that_a_slow_reader_has_stopped(qy):
    handle = qy.submit("SELECT f.*, range FROM facts f, range(50)")
    answer = handle.result(20)
    wait_until(lambda: handle._ticket.output.full, 20.0, "a full buffer")
    time.sleep(0.05)
    began = time.monotonic()
    handle.cancel()
    assert handle.wait(5)
    assert time.monotonic() - began < 1.0
    with pytest.raises(QueryCancelled):
        answer.arrow()
    with pytest.raises(QueryardError):
        answer.arrow()
    check_well(qy)


def test_while_planning(qy):
    tables = ", ".join(f"dims d{i}" for i in range(14))
    joins = " AND ".join(f"d{i}.key = d{i + 1}.key" for i in range(13))
    for pause in (0.0, 0.001, 0.003, 0.01, 0.03):
        handle = qy.submit(f"SELECT count(*) FROM {tables} WHERE {joins}")
        time.sleep(pause)
        handle.cancel()
        assert handle.wait(20)
    check_well(qy)


def test_twice_after_the_end_and_unknown(anywhere):
    handle = anywhere.submit(LONG)
    handle.cancel()
    handle.cancel()
    assert handle.wait(10)
    handle.cancel()
    done = anywhere.submit("SELECT 42")
    assert done.result(10).fetchall() == [(42,)]
    assert done.wait(10)
    done.cancel()
    assert done.status == "finished"
    assert done.error is None
    assert done.result(1).fetchall() == [(42,)]
    anywhere.cancel("no such query")
    check_well(anywhere)


def test_from_many_threads_at_once(anywhere):
    handle = anywhere.submit(LONG)
    time.sleep(0.05)
    threads = [threading.Thread(target=handle.cancel, daemon=True) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert handle.wait(10)
    check_well(anywhere)


def test_a_statement_of_the_session_and_what_follows_it(anywhere):
    rows(anywhere, "CREATE TEMP TABLE t AS SELECT 1 AS i")
    for _ in range(5):
        running = anywhere.submit(f"CREATE TEMP TABLE big AS {LONG}, t")
        behind = anywhere.submit("SELECT i FROM t")
        dropped = anywhere.submit("INSERT INTO t VALUES (2)")
        time.sleep(0.05)
        assert behind.status == "waiting"
        dropped.cancel()
        running.cancel()
        assert behind.result(10).fetchall() == [(1,)]
        assert running.wait(10)
        assert isinstance(running.error, QueryCancelled)
    assert rows(anywhere, "SELECT count(*) FROM t") == [(1,)]
    with pytest.raises(QueryardError, match="big does not exist"):
        rows(anywhere, "FROM big")


def test_cancelled_in_a_transaction(qy):
    rows(qy, "CREATE TEMP TABLE t (i INTEGER)")
    rows(qy, "BEGIN")
    rows(qy, "INSERT INTO t VALUES (1)")
    running = qy.submit("INSERT INTO t SELECT id FROM facts, range(300)")
    time.sleep(0.1)
    running.cancel()
    assert running.wait(10)
    rows(qy, "ROLLBACK")
    assert rows(qy, "SELECT count(*) FROM t") == [(0,)]


def test_a_script_stops_where_it_is(anywhere):
    rows(anywhere, "CREATE TEMP TABLE t (i INTEGER)")
    script = anywhere.submit(
        f"INSERT INTO t VALUES (1); {LONG}; INSERT INTO t VALUES (2); SELECT 3"
    )
    time.sleep(0.2)
    script.cancel()
    assert script.wait(10)
    assert rows(anywhere, "FROM t") == [(1,)]


def test_many_starts_and_cancels(qy):
    import random

    draw = random.Random(5)
    for _ in range(40):
        handle = qy.submit(draw.choice(list(LONG_STEPS.values())))
        time.sleep(draw.choice((0, 0, 0.001, 0.005, 0.02)))
        handle.cancel()
    assert rows(qy, "SELECT 1") == [(1,)]
    check_well(qy)


@pytest.mark.parametrize("limit", [0.3, "300 ms"])
def test_a_time_limit_ends_it(anywhere, limit):
    began = time.monotonic()
    with pytest.raises(QueryTimedOut, match="time limit"):
        anywhere.sql(LONG, time_limit=limit).fetchall()
    assert time.monotonic() - began < 5
    check_well(anywhere)


def test_a_time_limit_counts_waiting_too_and_does_not_hurt_the_quick(qy):
    first = qy.submit(LONG, memory=qy.client.pool_bytes)
    wait_until(lambda: first.status == "running", 10.0)
    second = qy.submit("SELECT 1", memory=qy.client.pool_bytes, time_limit=0.2)
    with pytest.raises(QueryTimedOut):
        second.result(10)
    first.cancel()
    quick = qy.submit("SELECT 42", time_limit=0.5)
    assert quick.result(10).fetchall() == [(42,)]
    time.sleep(0.7)
    assert quick.status == "finished"
    check_well(qy)


@pytest.mark.parametrize("limit", [0, -1, "5 apples", "x", None, True])
def test_wrong_time_limits(anywhere, limit):
    if limit is None:
        assert rows(anywhere, "SELECT 1") == [(1,)]
        return
    with pytest.raises(QueryardError, match="time_limit"):
        anywhere.sql("SELECT 1", time_limit=limit)


def test_an_answer_without_references_releases_its_query(anywhere):
    for _ in range(6):
        anywhere.sql("SELECT f.*, range FROM facts f, range(50)")
    gc.collect()
    assert anywhere.submit("SELECT 1").result(10).fetchall() == [(1,)]
    gc.collect()
    check_well(anywhere)


def test_a_handle_without_references_releases_its_query(anywhere):
    for _ in range(6):
        anywhere.submit("SELECT f.*, range FROM facts f, range(50)")
    gc.collect()
    assert anywhere.submit("SELECT 1").result(20).fetchall() == [(1,)]


def test_a_reader_that_stops_halfway_lets_go_of_its_query(anywhere):
    for _ in range(6):
        for batch in anywhere.sql("SELECT f.*, range FROM facts f, range(50)").batches():
            assert batch.num_rows
            break
        for row in anywhere.sql("SELECT f.*, range FROM facts f, range(50)"):
            assert row
            break
        anywhere.sql("SELECT f.*, range FROM facts f, range(50)").fetchone()
        anywhere.sql("SELECT f.*, range FROM facts f, range(50)").reader().read_next_batch()
    gc.collect()
    assert anywhere.submit("SELECT 1").result(10).fetchall() == [(1,)]


def test_statements_without_a_reader_run_to_their_end(anywhere):
    """A statement with side effects runs to its end even if its answer is not read."""
    for number in range(5):
        anywhere.submit(
            f"CREATE TEMP TABLE t{number} AS SELECT count(*) AS n FROM facts, range(10)"
        )
    gc.collect()
    assert rows(anywhere, "SELECT n FROM t4") == [(4_000_000,)]


# --- closing ---------------------------------------------------------------------------------


def test_closing_with_queries_running_and_waiting(data, tmp_path):
    qy = queryard.connect(data, slots=2, memory="512 MB", temp=tmp_path / "temp")
    rows(qy, "CREATE TEMP TABLE t AS SELECT 1 AS i")
    handles = [qy.submit(LONG) for _ in range(4)]
    handles += [qy.submit(f"CREATE TEMP TABLE x AS {LONG}, t"), qy.submit("SELECT i FROM t")]
    stopped = qy.submit("SELECT f.*, range FROM facts f, range(50)")
    time.sleep(0.2)
    began = time.monotonic()
    qy.close()
    assert time.monotonic() - began < 5
    for handle in [*handles, stopped]:
        assert handle.wait(1)
        with pytest.raises(QueryardError, match=r"closed|cancelled"):
            handle.result(1).fetchall()
    assert list((tmp_path / "temp").iterdir()) == []


def test_closed_is_closed(data):
    qy = queryard.connect(data, slots=2)
    finished = qy.sql("SELECT 42")
    assert finished.fetchall() == [(42,)]
    qy.close()
    qy.close()
    for use in (
        lambda: qy.sql("SELECT 1"),
        lambda: qy.submit("SELECT 1"),
        lambda: qy.create_function("f", lambda: 1, [], "BIGINT"),
    ):
        with pytest.raises(QueryardError, match="closed"):
            use()
    qy.cancel("anything")


def test_closing_from_two_threads_and_while_others_ask(data):
    for _ in range(5):
        qy = queryard.connect(data, slots=2, memory="512 MB")
        unexpected: list[BaseException] = []

        def ask(qy=qy, unexpected=unexpected) -> None:
            try:
                while True:
                    qy.sql("SELECT count(*) FROM dims").fetchall()
            except QueryardError:
                pass
            except BaseException as error:
                unexpected.append(error)

        threads = [threading.Thread(target=ask, daemon=True) for _ in range(3)]
        closers = [threading.Thread(target=qy.close, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        for thread in closers:
            thread.start()
        for thread in [*closers, *threads]:
            thread.join(20)
            assert not thread.is_alive()
        assert unexpected == []


def test_sessions_leave_no_threads(data):
    before = set(threading.enumerate())
    for _ in range(4):
        with queryard.connect(data, slots=2) as qy:
            rows(qy, "SELECT count(*) FROM facts")
            rows(qy, "CREATE TEMP TABLE t AS SELECT 1")
    wait_until(lambda: not [t for t in threading.enumerate() if t not in before], 10.0, "the end")


def test_a_forgotten_session_goes_with_its_threads_and_files(data, tmp_path):
    before = set(threading.enumerate())
    qy = queryard.connect(data, slots=2, temp=tmp_path / "temp")
    rows(qy, "SELECT count(*) FROM facts")
    rows(qy, "CREATE TEMP TABLE t AS SELECT 1")
    gone = weakref.ref(qy)
    del qy
    gc.collect()
    assert gone() is None
    wait_until(lambda: not [t for t in threading.enumerate() if t not in before], 10.0, "the end")
    wait_until(lambda: list((tmp_path / "temp").iterdir()) == [], 10.0, "the end of the files")
