"""Parameters of every Python type, by place and by name; wrong ones are told apart."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from service.anywhere import PLACES, a_session

from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed
from queryard.engine.parameters import WrongParameters

UTC = dt.UTC
EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))


@pytest.fixture(scope="module", params=PLACES)
def qy(request, data, tmp_path_factory):
    """One session for all: parameters leave nothing behind."""
    folder = tmp_path_factory.mktemp("server")
    with a_session(request.param, folder, data, slots=2, memory="512 MB") as session:
        yield session


def rows(session, sql, parameters=()):
    return session.sql(sql, parameters).fetchall()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-(2**63), "-9223372036854775808"),
        (2**63, "9223372036854775808"),
        (2**127 - 1, "170141183460469231731687303715884105727"),
        (-(2**127), "-170141183460469231731687303715884105728"),
        (1.5, "1.5"),
        (math.inf, "inf"),
        ("", ""),
        ('it\'s; -- "quoted" 🦆', 'it\'s; -- "quoted" 🦆'),
        ("x" * 100_000, "x" * 100_000),
        (dt.date(1, 1, 1), "0001-01-01"),
        (dt.date(9999, 12, 31), "9999-12-31"),
        (dt.time(23, 59, 59, 999999), "23:59:59.999999"),
        (dt.datetime(1900, 1, 1, 0, 0, 0, 1), "1900-01-01 00:00:00.000001"),
        (Decimal("-0.001"), "-0.001"),
        (Decimal("1E+3"), "1000"),
        (Decimal("12345678901234567890.123456789"), "12345678901234567890.123456789"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ([1, 2, None], "[1, 2, NULL]"),
        (("a", "b"), "[a, b]"),
        ([], "[]"),
        ([[1], [2, 3]], "[[1], [2, 3]]"),
        (np.int32(7), "7"),
        (np.float64(0.5), "0.5"),
        (np.bool_(True), "true"),
        (np.str_("n"), "n"),
        (np.datetime64("2026-01-01T00:00:00.5", "ns"), "2026-01-01 00:00:00.5"),
        (np.datetime64("NaT"), None),
        (np.array([1, 2]), "[1, 2]"),
        (pd.Timestamp("2026-01-01"), "2026-01-01 00:00:00"),
        (pd.NaT, None),
        (pd.NA, None),
        ([1, pd.NA], "[1, NULL]"),
    ],
)
def test_values_arrive(qy, value, text):
    assert rows(qy, "SELECT ?::VARCHAR", [value]) == [(text,)]
    assert rows(qy, "SELECT $v::VARCHAR", {"v": value}) == [(text,)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (b"\x00\xff", "BLOB"),
        (bytearray(b"ab"), "BLOB"),
        (memoryview(b"ab"), "BLOB"),
        (dt.date(2020, 2, 29), "DATE"),
        (dt.datetime(2020, 2, 29, 1, 2, 3), "TIMESTAMP"),
        (Decimal("1.50"), "DECIMAL(3,2)"),
        (1.5, "DOUBLE"),
        (True, "BOOLEAN"),
        ("x", "VARCHAR"),
        (2**31 - 1, "INTEGER"),
        (-(2**31), "INTEGER"),
        (2**31, "BIGINT"),
        (2**63, "HUGEINT"),
        ([1, 2], "INTEGER[]"),
        ([1, 2**31], "BIGINT[]"),
    ],
)
def test_values_come_back_with_their_type(qy, value, kind):
    answer = qy.sql("SELECT ? AS v", [value])
    assert answer.types == [kind]
    assert answer.fetchall() == [(bytes(value) if kind == "BLOB" else value,)]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT DATE '2020-02-28' + ?", dt.date(2020, 3, 1)),
        ("SELECT round(1.2345, ?)", Decimal("1.23")),
        ("SELECT lpad('a', ?, '-')", "-a"),
    ],
)
def test_functions_of_integers_take_an_integer(qy, sql, found):
    assert rows(qy, sql, [2]) == [(found,)]


def test_moments_with_a_zone_are_the_same_moment(qy):
    moment = dt.datetime(2024, 1, 1, 12, 0, tzinfo=EAST)
    found = rows(qy, "SELECT ? = TIMESTAMPTZ '2024-01-01 06:30:00+00'", [moment])
    assert found == [(True,)]
    assert rows(qy, "SELECT epoch_us(?)", [moment]) == [(int(moment.timestamp() * 1e6),)]


def test_durations(qy):
    for value in (dt.timedelta(days=-1, seconds=1), dt.timedelta(days=400, microseconds=5)):
        assert rows(qy, "SELECT TIMESTAMP '2020-01-01' + ?", [value]) == [
            (dt.datetime(2020, 1, 1) + value,)
        ]


def test_not_a_number(qy):
    assert rows(qy, "SELECT isnan(?)", [math.nan]) == [(True,)]


def test_places_and_names(qy):
    assert rows(qy, "SELECT $2 - $1", [1, 43]) == [(42,)]
    assert rows(qy, "SELECT $1 + $1", [21]) == [(42,)]
    assert rows(qy, "SELECT $a || $b || $a", {"a": "x", "b": "y"}) == [("xyx",)]
    assert rows(qy, "SELECT ?, ?, ?", (1, "two", None)) == [(1, "two", None)]
    many = list(range(300))
    assert rows(qy, f"SELECT {', '.join('?' * 300)}", many) == [tuple(many)]


def test_in_filters_on_files(qy):
    sql = "SELECT count(*) FROM facts WHERE key = ? AND day < ? AND words LIKE ?"
    direct = (
        "SELECT count(*) FROM facts WHERE key = 5 AND day < DATE '2021-01-01' AND words LIKE 't%'"
    )
    assert rows(qy, sql, [5, dt.date(2021, 1, 1), "t%"]) == rows(qy, direct)
    assert rows(
        qy, "SELECT count(*) FROM dims WHERE key IN (SELECT unnest(?))", [[1, 2, 9999]]
    ) == [(2,)]
    assert rows(qy, "SELECT count(*) FROM (FROM dims LIMIT ?)", [7]) == [(7,)]


def test_in_statements_of_the_session(qy):
    rows(qy, "CREATE TEMP TABLE t (i INTEGER, s VARCHAR)")
    for i, text in enumerate(["a", None, "c"]):
        rows(qy, "INSERT INTO t VALUES ($i, $s)", {"i": i, "s": text})
    assert rows(qy, "SELECT s FROM t WHERE i = ?", [1]) == [(None,)]
    assert rows(qy, "UPDATE t SET s = ? WHERE i = ?", ["z", 1]) == [(1,)]


@pytest.mark.parametrize(
    ("sql", "parameters", "match"),
    [
        ("SELECT ?", [], "1 parameter"),
        ("SELECT ?", [1, 2], "1 parameter"),
        ("SELECT 1", [1], "0 parameters"),
        ("SELECT $a", {}, "a"),
        ("SELECT $a", {"b": 1}, "b"),
        ("SELECT $a", {"a": 1, "b": 2}, "b"),
        ("SELECT ?", [object()], "object cannot be a parameter"),
        ("SELECT ?", [2**127], "128 bits"),
        ("SELECT ?", [Decimal("1" * 40)], "38 digits"),
    ],
)
def test_wrong_parameters_are_told(qy, sql, parameters, match):
    with pytest.raises(WrongParameters, match=match):
        rows(qy, sql, parameters)
    assert rows(qy, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("parameters", ["abc", 5, {1, 2}, object()])
def test_what_is_no_list_of_parameters_is_refused(qy, parameters):
    with pytest.raises((QueryardError, TypeError)):
        rows(qy, "SELECT ?", parameters)
    assert rows(qy, "SELECT 1") == [(1,)]


@pytest.mark.parametrize("value", [[1, "a"], [1.5, "x"], ["\ud800"], "\ud800"])
def test_values_that_cannot_be_said_in_sql_do_no_harm(qy, value):
    with pytest.raises(QueryardError, match=r"cannot hold|no valid text"):
        rows(qy, "SELECT ?", [value])
    assert rows(qy, "SELECT 1") == [(1,)]


def test_a_type_that_does_not_fit_is_duckdbs_error(qy):
    with pytest.raises(QueryFailed, match=r"(?i)convert|cast"):
        rows(qy, "SELECT count(*) FROM dims WHERE key = ?::INTEGER", ["no number"])


def test_mixed_lists_take_the_wider_type(qy):
    assert rows(qy, "SELECT list_sum(?)", [[1, 2.5]]) == [(3.5,)]
    assert rows(qy, "SELECT list_sum(?)", [[None, 2**70]]) == [(2**70,)]


def test_texts_with_nulls_inside(qy):
    assert rows(qy, "SELECT ?, length(?)", ["a\0b", "a\0b"]) == [("a\0b", 3)]
