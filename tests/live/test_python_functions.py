"""Python functions in SQL: values, NULLs, errors, every type, many rows, any place in a query."""

from __future__ import annotations

import datetime as dt
import threading
import time
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


def test_row_by_row(qy):
    qy.create_function("plus", lambda a, b: a + b, ["BIGINT", "BIGINT"], "BIGINT")
    assert rows(qy, "SELECT plus(40, 2)") == [(42,)]
    assert rows(qy, "SELECT sum(plus(id, 1)), count(*) FROM facts") == [(80_000_200_000, 400_000)]
    assert rows(qy, "SELECT count(*) FROM facts WHERE plus(key, 0) < 10") == [(4000,)]


def test_arrow_arrays(qy):
    qy.create_function("twice", lambda a: pc.multiply(a, 2), ["BIGINT"], "BIGINT", style="arrow")
    assert rows(qy, "SELECT sum(twice(id)) FROM facts") == [(2 * 79_999_800_000,)]
    assert rows(qy, "SELECT twice(NULL)") == [(None,)]
    assert rows(qy, "SELECT twice(key) FROM none") == []
    qy.create_function("pieces", lambda a: pa.chunked_array([a]), ["BIGINT"], "BIGINT", "arrow")
    assert rows(qy, "SELECT max(pieces(key)) FROM dims") == [(999,)]


def test_nulls_in_make_nulls_out(qy):
    seen = []

    def noting(value):
        seen.append(value)
        return value

    qy.create_function("noting", noting, ["BIGINT"], "BIGINT")
    sql = "SELECT noting(small), small FROM facts WHERE id < 50"
    assert all(a == b for a, b in rows(qy, sql))
    assert None not in seen
    qy.create_function("never", lambda x: None, ["BIGINT"], "VARCHAR")
    assert rows(qy, "SELECT count(*), count(never(key)) FROM dims") == [(1000, 0)]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("BOOLEAN", True),
        ("TINYINT", -5),
        ("UBIGINT", 2**64 - 1),
        ("DOUBLE", 1.5),
        ("FLOAT", 0.25),
        ("VARCHAR", "ünïcode 🦆 and a longer text than twelve bytes"),
        ("VARCHAR", ""),
        ("BLOB", b"\x00\x01\xff"),
        ("DATE", dt.date(1969, 12, 31)),
        ("TIME", dt.time(23, 59, 59, 999999)),
        ("TIMESTAMP", dt.datetime(2024, 2, 29, 12, 0, 0, 1)),
        ("DECIMAL(18,3)", Decimal("-123456789012345.678")),
        ("DECIMAL(38,10)", Decimal("1.0000000001")),
        ("INTEGER[]", [1, None, 3]),
        ("VARCHAR[]", ["a", None]),
        ("STRUCT(a INTEGER, b VARCHAR)", {"a": 1, "b": "x"}),
        ("STRUCT(a INTEGER[], b STRUCT(c DOUBLE))", {"a": [1, 2], "b": {"c": 0.5}}),
    ],
)
def test_every_type_goes_through(qy, kind, value):
    qy.create_function("same", lambda x: x, [kind], kind)
    qy.create_function("given", lambda: value, [], kind)
    assert rows(qy, "SELECT given(), same(given()), same(NULL)") == [(value, value, None)]
    found = qy.sql("SELECT given() AS a")
    assert found.types == [kind]
    many = rows(qy, "SELECT same(given()) FROM facts LIMIT 5000")
    assert many == [(value,)] * 5000


def test_errors_name_the_function_and_leave_the_engine_well(qy):
    def fails(x):
        if x == 777:
            raise ValueError("no sevens, please")
        return x

    qy.create_function("fails", fails, ["BIGINT"], "BIGINT")
    with pytest.raises(QueryFailed, match=r"fails: ValueError: no sevens, please"):
        rows(qy, "SELECT sum(fails(key)) FROM facts")
    assert rows(qy, "SELECT fails(1)") == [(1,)]
    qy.create_function("wrong", lambda x: "text", ["BIGINT"], "BIGINT")
    with pytest.raises(QueryFailed, match="wrong"):
        rows(qy, "SELECT wrong(1)")
    qy.create_function("short", lambda a: a[:-1], ["BIGINT"], "BIGINT", style="arrow")
    with pytest.raises(QueryFailed, match="short"):
        rows(qy, "SELECT short(key) FROM dims")
    qy.create_function("quits", lambda x: exit(3), ["BIGINT"], "BIGINT")
    with pytest.raises(QueryFailed, match="quits"):
        rows(qy, "SELECT quits(1)")
    qy.create_function("too_big", lambda x: x + 300, ["BIGINT"], "TINYINT")
    with pytest.raises(QueryFailed, match="too_big"):
        rows(qy, "SELECT too_big(1)")
    assert rows(qy, "SELECT fails(2)") == [(2,)]


def test_one_slot_fails_while_another_is_inside_the_function(qy):
    first, inside = threading.Lock(), threading.Event()

    def fails(x):
        if first.acquire(blocking=False):
            inside.set()
            time.sleep(0.5)
            return x
        inside.wait(10)
        raise ValueError("the other one")

    qy.create_function("fails", fails, ["BIGINT"], "BIGINT")
    with pytest.raises(QueryFailed, match="the other one"):
        rows(qy, "SELECT sum(fails(id)) FROM facts")
    assert rows(qy, "SELECT count(*) FROM dims") == [(1000,)]


def test_in_joins_groups_orders_and_windows(qy):
    qy.create_function("bucket", lambda x: x % 7, ["BIGINT"], "BIGINT")
    qy.create_function("shout", lambda s: s.upper(), ["VARCHAR"], "VARCHAR")
    assert rows(qy, "SELECT count(*) FROM dims a JOIN dims b ON bucket(a.key) = b.part") == rows(
        qy, "SELECT count(*) FROM dims a JOIN dims b ON a.key % 7 = b.part"
    )
    assert rows(qy, "SELECT bucket(key) AS b, count(*) FROM facts GROUP BY b ORDER BY b") == rows(
        qy, "SELECT key % 7 AS b, count(*) FROM facts GROUP BY b ORDER BY b"
    )
    assert rows(qy, "SELECT shout(name) FROM dims ORDER BY shout(name) DESC LIMIT 2") == [
        ("NAME 999",),
        ("NAME 998",),
    ]
    sql = "SELECT max(row_number) FROM (SELECT row_number() OVER (PARTITION BY {} ORDER BY key) "
    sql += "AS row_number FROM dims)"
    assert rows(qy, sql.format("bucket(key)")) == rows(qy, sql.format("part"))
    assert rows(qy, "SELECT count(*) FROM dims WHERE key IN (SELECT bucket(key) FROM dims)") == [
        (7,)
    ]


def test_a_function_is_called_by_all_slots_while_others_read(qy):
    """The rows of a large answer are fetched by a slot that runs parts of the query itself."""
    qy.create_function("same", lambda x: x, ["BIGINT"], "BIGINT")
    answer = qy.sql("SELECT same(id) AS a, id AS b FROM facts")
    total = 0
    for batch in answer.batches():
        assert batch.column("a").equals(batch.column("b"))
        total += batch.num_rows
    assert total == 400_000


def test_random_functions_are_not_folded(qy):
    numbers = iter(range(1_000_000))
    lock = threading.Lock()

    def following():
        with lock:
            return next(numbers)

    qy.create_function("following", following, [], "BIGINT", side_effects=True)
    assert rows(qy, "SELECT count(DISTINCT following()) FROM dims") == [(1000,)]


def test_a_function_in_use_can_be_cancelled(qy):
    qy.create_function("slowly", lambda x: time.sleep(0.0005) or x, ["BIGINT"], "BIGINT")
    handle = qy.submit("SELECT sum(slowly(id)) FROM facts")
    time.sleep(0.2)
    handle.cancel()
    assert handle.wait(20)
    assert rows(qy, "SELECT slowly(1)") == [(1,)]


def test_replacing_a_function(qy):
    qy.create_function("f", lambda: 1, [], "BIGINT")
    assert rows(qy, "SELECT f()") == [(1,)]
    expected = 2
    try:
        qy.create_function("f", lambda: 2, [], "BIGINT")
    except QueryardError:
        expected = 1
    assert rows(qy, "SELECT f()") == [(expected,)]


def test_what_cannot_be_a_function_is_refused(qy):
    with pytest.raises(QueryardError, match="a b"):
        qy.create_function("a b", lambda: 1, [], "BIGINT")
    with pytest.raises(QueryardError, match="7 cannot be the name"):
        qy.create_function(7, lambda: 1, [], "BIGINT")
    with pytest.raises(QueryardError, match="parameters must be a list of SQL types, got 'DOUBLE'"):
        qy.create_function("f", lambda x: x, "DOUBLE", "BIGINT")
    with pytest.raises(QueryardError, match="cannot be called"):
        qy.create_function("f", 7, [], "BIGINT")
    with pytest.raises(QueryardError, match="NOTYPE"):
        qy.create_function("f", lambda: 1, [], "NOTYPE")
    with pytest.raises(QueryardError, match="style"):
        qy.create_function("f", lambda: 1, [], "BIGINT", style="columns")
    with pytest.raises(QueryFailed, match="f"):
        rows(qy, "SELECT f()")


def test_functions_while_statements_run(qy):
    handle = qy.submit("CREATE TEMP TABLE t AS SELECT count(*) AS n FROM facts, range(30)")
    qy.create_function("f", lambda: 2, [], "BIGINT")
    assert rows(qy, "SELECT f() + n FROM t") == [(12_000_002,)]
    assert handle.wait(60)


def test_two_sessions_have_functions_of_their_own(data):
    with queryard.connect(data, slots=2) as one, queryard.connect(data, slots=2) as two:
        one.create_function("which", lambda: 1, [], "BIGINT")
        two.create_function("which", lambda: 2, [], "BIGINT")
        assert rows(one, "SELECT which()") == [(1,)]
        assert rows(two, "SELECT which()") == [(2,)]
