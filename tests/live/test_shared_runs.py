"""Identical queries at the same time share one execution; other queries do not."""

from __future__ import annotations

import os
import threading
from types import MappingProxyType

import duckdb
import pyarrow as pa
import pytest
from engine.native_driving import check_same, plain
from waiting import wait_until

from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed

from .crowds import HEAVY, busy, check_empty, runs, sessions

# Rows that come soon, go on for long, and are fewer than the buffer takes.
STREAM = """SELECT i, hash(sha256(sha256(sha256(i::VARCHAR)))) AS h
    FROM range(900_000) AS r(i)"""


@pytest.fixture
def open_session(data, tmp_path):
    with sessions(data, tmp_path / "temp", slots=2, memory="2 GB", history=False) as make:
        yield make


@pytest.fixture
def qy(open_session):
    return open_session()


def shared(session, *asked) -> bool:
    """Whether all of these, asked while all slots are busy, have one run; they get answers."""
    blocking = busy(session, priority=9)
    handles = [session.submit(*ask) for ask in asked]
    found = runs(*handles) == 1
    assert found or runs(*handles) == len(handles)
    blocking.cancel()
    for handle in handles:
        handle.result(60).arrow()
        assert handle.wait(60)
    return found


# --- one run for all ---------------------------------------------------------------------------


def test_identical_queries_run_once_and_all_get_the_whole_answer(qy, data):
    handles = [qy.submit(HEAVY) for _ in range(10)]
    assert runs(*handles) == 1
    expected = plain(data, HEAVY)
    for handle in handles:
        check_same(handle.result(60).arrow(), expected, ordered=True)
        assert handle.wait(60)
        assert handle.status == "finished"
    assert [handle.timing.shared for handle in handles] == [False] + [True] * 9
    assert sum(handle.timing.work_s for handle in handles) == handles[0].timing.work_s
    assert handles[0].timing.work_s > 0
    check_empty(qy)


def test_the_work_is_that_of_one(open_session):
    session = open_session(slots=1)
    alone = session.submit(HEAVY)
    assert alone.wait(60)
    crowd = [session.submit(HEAVY) for _ in range(8)]
    assert all(handle.wait(60) for handle in crowd)
    work_s = sum(handle.timing.work_s for handle in crowd)
    assert work_s < 3 * alone.timing.work_s


def test_who_comes_while_rows_flow_gets_those_before_too(qy, data):
    first = qy.submit(STREAM)
    answer = first.result(60)
    rows = iter(answer.batches())
    begun = next(rows)
    late = qy.submit(STREAM)
    assert runs(first, late) == 1
    expected = plain(data, STREAM)
    check_same(pa.Table.from_batches([begun, *rows]), expected)
    check_same(late.result(60).arrow(), expected)


def test_who_comes_too_late_has_a_run_of_its_own(qy):
    wide = "SELECT i, hash(i) AS h FROM range(20000000) AS r(i)"
    first = qy.submit(wide)
    answer = first.result(60)
    wait_until(lambda: first._ticket.output.full, 30.0, "a full buffer")
    late = qy.submit(wide)
    assert runs(first, late) == 2
    assert sum(batch.num_rows for batch in late.result(60).batches()) == 20_000_000
    assert sum(batch.num_rows for batch in answer.batches()) == 20_000_000
    check_empty(qy)


def test_after_the_end_a_query_is_run_again(qy):
    first = qy.submit(HEAVY)
    assert first.wait(60)
    second = qy.submit(HEAVY)
    assert runs(first, second) == 2
    assert second.result(60).arrow() == first.result(60).arrow()


def test_from_many_threads_at_the_same_moment(qy, data):
    expected = plain(data, HEAVY)
    barrier = threading.Barrier(12)
    wrong: list[object] = []

    def ask() -> None:
        barrier.wait(30)
        for _ in range(3):
            try:
                check_same(qy.sql(HEAVY).arrow(), expected, ordered=True)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not wrong
    check_empty(qy)


def test_a_query_that_fails_fails_all_with_the_same_error(qy):
    sql = "SELECT sum(CAST(words || range AS INTEGER)) FROM facts, range(10)"
    blocking = busy(qy, priority=9)
    handles = [qy.submit(sql) for _ in range(5)]
    assert runs(*handles) == 1
    blocking.cancel()
    said = set()
    for handle in handles:
        with pytest.raises(QueryFailed) as caught:
            handle.result(60)
        assert handle.wait(60)
        assert handle.status == "failed"
        said.add(str(caught.value))
    assert len(said) == 1
    assert "Could not convert" in said.pop()
    check_empty(qy)


def test_the_run_of_a_staged_query_that_cannot_be_staged_is_shared(qy):
    sql = "SELECT id, row_number() OVER (ORDER BY words, id) AS n FROM facts"
    handles = [qy.submit(sql, plan=plan) for plan in ("native", "staged", "staged")]
    answers = [handle.result(60).arrow() for handle in handles]
    assert answers[0].num_rows == 400_000
    assert answers[0] == answers[1] == answers[2]
    check_empty(qy)


# --- what is not the same ----------------------------------------------------------------------


def test_the_same_text_and_parameters_are_the_same(qy):
    sql = "SELECT $a, $b, count(*) FROM facts"
    asked = (sql, {"a": 1, "b": "x"})
    assert shared(qy, asked, asked)
    assert shared(qy, (sql, MappingProxyType({"a": 1, "b": "x"})), asked)
    sql = "SELECT ?, count(*) FROM facts"
    assert shared(qy, (sql, [1]), (sql, (1,)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (1, 1.0),
        (1, "1"),
        (True, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        (None, 0),
        (1, 2),
        ([1], [1]),
        (float("inf"), float("-inf")),
    ],
)
def test_other_parameters_are_another_query(qy, one, other):
    sql = "SELECT ? AS p, count(*) FROM facts"
    blocking = busy(qy, priority=9)
    handles = [qy.submit(sql, [value]) for value in (one, other)]
    assert runs(*handles) == 2
    blocking.cancel()
    for handle, value in zip(handles, (one, other), strict=True):
        found = handle.result(30).fetchall()[0][0]
        assert (type(found), repr(found)) == (type(value), repr(value))


def test_named_parameters_of_any_mapping_are_told_apart(qy):
    sql = "SELECT $a AS a, count(*) FROM facts"
    blocking = busy(qy, priority=9)
    handles = [qy.submit(sql, MappingProxyType({"a": value})) for value in (1, 2)]
    assert runs(*handles) == 2
    blocking.cancel()
    assert [handle.result(30).fetchall()[0][0] for handle in handles] == [1, 2]


def test_other_memory_is_another_run(qy):
    blocking = busy(qy, priority=9)
    handles = [qy.submit(HEAVY, memory=memory) for memory in ("200 MB", "300 MB", "200 MB")]
    assert runs(*handles) == 2
    blocking.cancel()
    assert all(handle.wait(60) for handle in handles)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT random() FROM facts LIMIT 1",
        'SELECT "Random"() FROM dims LIMIT 1',
        "SELECT uuid(), count(*) FROM dims",
        "SELECT now(), count(*) FROM dims",
        "SELECT current_timestamp, count(*) FROM dims",
        "SELECT current_localtimestamp(), count(*) FROM dims",
        "SELECT age(TIMESTAMP '2020-01-01'), count(*) FROM dims",
        "SELECT count(*) FROM dims USING SAMPLE 10 ROWS",
        "SELECT count(*) FROM dims TABLESAMPLE 10%",
        "SELECT count(*) FROM read_parquet('{facts}')",
        "SELECT count(*) FROM '{facts}'",
        'SELECT count(*) FROM "{facts}"',
        "SELECT count(*) FROM dims WHERE key > (SELECT random())",
        "SELECT count(*) FROM dims; SELECT random()",
    ],
)
def test_what_may_differ_each_time_is_run_each_time(qy, data, sql):
    sql = sql.format(facts=data / "facts.parquet")
    assert not shared(qy, (sql,), (sql,))


def test_what_lives_in_the_session_is_not_shared(qy):
    qy.sql("CREATE TEMP TABLE t AS SELECT 1 AS i")
    qy.register("frame", pa.table({"i": [1, 2]}))
    qy.create_function("twice", lambda i: 2 * i, ["BIGINT"], "BIGINT")
    for sql in (
        "SELECT * FROM t",
        "SELECT sum(i) FROM frame",
        "SELECT sum(twice(key)) FROM dims",
    ):
        blocking = busy(qy, priority=9)
        handles = [qy.submit(sql) for _ in range(2)]
        blocking.cancel()
        answers = [handle.result(60).fetchall() for handle in handles]
        assert runs(*handles) == 2
        assert answers[0] == answers[1]


# --- files that change -------------------------------------------------------------------------


def _write(path, value: int) -> None:
    """Replace a file as others do: another one takes its name."""
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {value} AS v FROM range(1000)) TO '{path}.new.parquet'")
    os.replace(f"{path}.new.parquet", path)


def test_files_that_changed_are_read_again(open_session, tmp_path):
    folder = tmp_path / "changing"
    folder.mkdir()
    _write(folder / "t.parquet", 1)
    session = open_session(folder)
    sql = "SELECT max(v), count(*) FROM t, range(40000) AS r(i) WHERE hash(v, i) % 7 < 9"
    first = session.submit(sql)
    wait_until(lambda: first.status == "running", 30.0)
    wait_until(lambda: first.progress() > 0 or first.ended, 30.0)
    sharer = session.submit(sql)
    _write(folder / "t.parquet", 2)
    # At once, long before the catalog looks again by itself.
    later = session.submit(sql)
    assert runs(first, sharer) == 1
    assert runs(first, later) == 2
    assert later.result(60).fetchall()[0][0] == 2
    for handle in (first, sharer):
        assert handle.result(60).fetchall()[0][1] == 40_000_000


def test_a_file_that_is_gone_is_missed(open_session, tmp_path):
    folder = tmp_path / "going"
    folder.mkdir()
    _write(folder / "t.parquet", 1)
    _write(folder / "u.parquet", 1)
    session = open_session(folder)
    blocking = busy(session, priority=9)
    first = session.submit("SELECT max(v) FROM t")
    (folder / "t.parquet").unlink()
    second = session.submit("SELECT max(v) FROM t")
    assert runs(first, second) == 2
    blocking.cancel()
    with pytest.raises(QueryardError, match=r"t\.parquet|name t does not exist"):
        second.result(30)


def test_a_name_that_means_another_table_is_another_query(open_session, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("x;y\n1;2\n")
    session = open_session(None, tables={"t": tmp_path / "a.csv"})
    blocking = busy(session, priority=9)
    first = session.submit("SELECT * FROM t")
    session.register("t", tmp_path / "b.csv")
    second = session.submit("SELECT * FROM t")
    assert runs(first, second) == 2
    blocking.cancel()
    assert first.wait(30)
    assert second.wait(30)


def test_a_query_behind_a_copy_sees_what_was_copied(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    duckdb.sql("SELECT 1 AS a").write_parquet(str(folder / "t.parquet"))
    asked = "SELECT max(a), count(*) FROM t, range(20000) x, range(3000) y"
    with sessions(folder, tmp_path / "temp", slots=2, memory="2 GB", write=True) as make:
        qy = make()
        first = qy.submit(asked)
        copied = qy.submit(f"COPY (SELECT 2 AS a) TO '{folder / 't.parquet'}'")
        second = qy.submit(asked)
        assert copied.wait(60)
        assert second.result(60).fetchall()[0][0] == 2
        assert not second.timing.shared
        assert first.wait(60)
