"""Answers: read as they come, kept when collected, and cancelled when no reference is left."""

from __future__ import annotations

import datetime as dt
import gc
import io
import uuid
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from service.anywhere import PLACES, a_session

import queryard
from queryard.core.errors import QueryardError
from queryard.results.display import print_rows, rows_as_html, rows_as_text, value_text
from queryard.results.values import python_values, written_values

ENDLESS = "SELECT range AS n, 'some text of a row' AS t FROM range(1000000000000)"


@pytest.fixture(scope="module", params=PLACES)
def qy(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    with a_session(request.param, folder, slots=2, memory="512MB") as session:
        yield session


# --- reading -------------------------------------------------------------------------------------


def test_the_first_rows_of_an_endless_query_come_at_once(qy) -> None:
    with qy.sql(ENDLESS) as answer:
        assert answer.fetchone() == (0, "some text of a row")
        assert [row[0] for row in answer.fetchmany(3000)] == list(range(1, 3001))
        assert next(iter(answer))[0] == 3001


def test_rows_one_by_one_and_the_rest(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(5000)")
    assert answer.fetchone() == (0,)
    assert len(answer.fetchmany(9)) == 9
    rest = answer.fetchall()
    assert rest == [(n,) for n in range(10, 5000)]
    assert answer.fetchone() is None
    assert answer.fetchall() == rest


def test_all_rows_may_be_fetched_again(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(3)")
    assert answer.fetchall() == [(0,), (1,), (2,)]
    assert answer.fetchone() is None
    assert answer.fetchall() == [(0,), (1,), (2,)]
    assert answer.arrow().num_rows == 3
    answer.close()
    assert answer.fetchall() == [(0,), (1,), (2,)]


def test_collected_rows_are_kept(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(3)")
    assert answer.arrow().num_rows == 3
    assert answer.fetchall() == [(0,), (1,), (2,)]
    assert answer.df()["n"].tolist() == [0, 1, 2]
    assert answer.pl()["n"].to_list() == [0, 1, 2]
    assert sum(batch.num_rows for batch in answer.batches()) == 3
    answer.close()
    assert answer.arrow().num_rows == 3


def test_rows_that_were_handed_over_are_not_passed_off_as_all(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(3)")
    answer.fetchone()
    with pytest.raises(QueryardError, match="handed over already"):
        answer.arrow()
    with pytest.raises(QueryardError, match="handed over already"):
        answer.batches()


def test_iteration_gives_rows(qy) -> None:
    assert list(qy.sql("SELECT range AS n, n % 2 = 0 FROM range(2)")) == [(0, True), (1, False)]


def test_a_reader_is_bounded(qy) -> None:
    reader = qy.sql(ENDLESS).reader()
    assert reader.read_next_batch().num_rows > 0
    del reader


def test_looking_ahead_uses_nothing_up(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(100)")
    table, more = answer.head(10)
    assert (table.num_rows, more) == (10, True)
    assert "10 rows, and there are more" in repr(answer)
    assert answer.arrow().num_rows == 100


def test_looking_ahead_sees_the_rows_that_were_not_fetched_yet(qy) -> None:
    answer = qy.sql("SELECT range AS n FROM range(100)")
    assert answer.fetchone() == (0,)
    assert answer.head(2)[0].column(0).to_pylist() == [1, 2]
    assert answer.fetchmany(97)[-1] == (97,)
    assert answer.head(5)[0].column(0).to_pylist() == [98, 99]
    assert answer.fetchall() == [(98,), (99,)]
    assert answer.head(5)[0].column(0).to_pylist() == [98, 99]


@pytest.mark.parametrize("read", [list, lambda answer: list(answer.batches())])
def test_rows_that_are_gone_are_not_shown_as_none(qy, read) -> None:
    answer = qy.sql("SELECT range AS n FROM range(3)")
    read(answer)
    with pytest.raises(QueryardError, match="all rows were handed over"):
        answer.show()
    assert "all rows were handed over" in repr(answer)
    assert "all rows were handed over" in answer._repr_html_()
    nothing = qy.sql("SELECT 1 AS n WHERE false")
    read(nothing)
    assert "0 rows" in repr(nothing)


@pytest.mark.parametrize("size", [-1, "2", 1.5, None, True])
def test_a_number_of_rows_that_is_none_is_named(qy, size) -> None:
    with pytest.raises(QueryardError, match="size: must be a whole number"):
        qy.sql("SELECT 1").fetchmany(size)


def test_columns_of_one_name_in_polars(qy) -> None:
    sql = "SELECT 1 AS a, 2 AS a, 3 AS a_1, 4 AS A"
    assert qy.sql(sql).pl().columns == duckdb.sql(sql).pl().columns


def test_a_closed_answer_says_so(qy) -> None:
    answer = qy.sql(ENDLESS)
    answer.fetchone()
    answer.close()
    with pytest.raises(QueryardError, match="closed"):
        answer.fetchone()


def test_an_error_in_the_middle_reaches_the_reader(qy) -> None:
    with pytest.raises(QueryardError, match="Conversion Error"):
        list(qy.sql("SELECT CAST(if(range = 900000, 'x', '1') AS INTEGER) FROM range(1000000)"))


def test_what_statements_without_rows_answer(qy) -> None:
    made = qy.sql("CREATE TEMP TABLE numbers AS SELECT range AS n FROM range(7)")
    assert (made.returns_rows, made.changed) == (False, 7)
    assert qy.sql("INSERT INTO numbers VALUES (1), (2)").changed == 2
    assert qy.sql("SET timezone = 'UTC'").changed == 0
    fetched = qy.sql("INSERT INTO numbers VALUES (3)")
    assert (fetched.fetchone(), fetched.changed) == ((1,), 1)
    returned = qy.sql('INSERT INTO numbers VALUES (9) RETURNING n AS "Count"')
    assert (returned.returns_rows, returned.fetchall()) == (True, [(9,)])


# --- letting go ----------------------------------------------------------------------------------


@pytest.fixture(params=PLACES)
def narrow(request, tmp_path):
    """A session in which a second query cannot start before the first is gone."""
    with a_session(request.param, tmp_path, slots=1, memory="400MB") as session:
        yield session


MOST = "280MB"


def is_free(session: queryard.Session) -> bool:
    return session.submit("SELECT 1", memory=MOST).result(timeout=10).fetchall() == [(1,)]


def test_an_answer_without_references_cancels_its_query(narrow) -> None:
    answer = narrow.sql(ENDLESS, memory=MOST)
    answer.fetchone()
    del answer
    assert is_free(narrow)


def test_a_reader_without_references_cancels_its_query(narrow) -> None:
    reader = narrow.sql(ENDLESS, memory=MOST).reader()
    reader.read_next_batch()
    del reader
    gc.collect()
    assert is_free(narrow)


def test_a_handle_without_references_cancels_its_query(narrow) -> None:
    narrow.submit(ENDLESS, memory=MOST)
    gc.collect()
    assert is_free(narrow)


def test_the_answer_outlives_its_handle(narrow) -> None:
    answer = narrow.submit("SELECT range AS n FROM range(3000000)", memory=MOST).result()
    gc.collect()
    assert answer.arrow().num_rows == 3_000_000


def test_a_handle_gives_the_same_answer_again(qy) -> None:
    handle = qy.submit("SELECT range AS n FROM range(4)")
    assert handle.result().arrow().num_rows == 4
    gc.collect()
    assert handle.result().arrow().num_rows == 4


def test_a_session_lives_as_long_as_its_answer() -> None:
    answer = queryard.connect(slots=1, memory="400MB").sql("SELECT range AS n FROM range(3000000)")
    gc.collect()
    assert answer.arrow().num_rows == 3_000_000


# --- Python values -------------------------------------------------------------------------------

_ARROW_LACKS = ("time_tz", "geometry", "variant")


def _columns() -> list[tuple[str, str]]:
    found = duckdb.connect().execute("DESCRIBE SELECT * FROM test_all_types()").fetchall()
    return [(row[0], row[1]) for row in found if row[0] not in _ARROW_LACKS]


@pytest.mark.parametrize(("name", "kind"), _columns())
def test_values_are_those_of_duckdb(qy, name: str, kind: str) -> None:
    sql = f'SELECT "{name}" FROM test_all_types()'
    try:
        wanted = duckdb.connect().execute(sql).fetchall()
    except duckdb.Error:  # it needs pytz
        pytest.skip(f"DuckDB's Python package gives no {kind} here")
    assert repr(qy.sql(sql).fetchall()) == repr(wanted)


@pytest.mark.parametrize(
    "value",
    [
        "170141183460469231731687303715884105727::HUGEINT",
        "340282366920938463463374607431768211455::UHUGEINT",
        "'00000000-0000-0000-0000-000000000007'::UUID",
        "'10101'::BIT",
        "-12345678901234567890123456789012345678901234567890::BIGNUM",
        "row(1, 5::HUGEINT)",
    ],
)
def test_types_that_arrow_lacks_have_their_values_within_others(qy, value: str) -> None:
    sql = (
        f"SELECT {value}, [{value}, NULL], [[{value}]], array_value({value}), "
        f"{{'a, (b': {value}, 'c': [{value}]}}, MAP {{'k': {value}}}"
    )
    assert repr(qy.sql(sql).fetchall()) == repr(duckdb.connect().execute(sql).fetchall())


def test_values_with_time_zones_and_infinities(qy) -> None:
    sql = "SELECT TIMESTAMPTZ '2024-03-01 12:00:00+02', 'infinity'::DATE, '-infinity'::TIMESTAMP"
    ((moment, date, past),) = qy.sql(sql).fetchall()
    assert moment == dt.datetime(2024, 3, 1, 10, tzinfo=dt.UTC)
    assert (date, past) == (dt.date.max, dt.datetime.min)


def test_plain_python_values() -> None:
    key = uuid.UUID(int=7)
    assert python_values(pa.array([str(key), None]), "UUID") == [key, None]
    assert python_values(pa.array([[dt.date(2024, 1, 1)], None, []]), "DATE[]") == [
        [dt.date(2024, 1, 1)],
        None,
        [],
    ]


# --- tables for people ---------------------------------------------------------------------------

WIDE = pa.table(
    {
        "key": [1, 22],
        "name": ["short", "a text that is much too long to be shown in full " * 3],
        "amount": [Decimal("1.50"), None],
        "note": ["two\nlines", "[markup]"],
        "日本": ["ケーキ", "x"],
    }
)
TYPES = ["BIGINT", "VARCHAR", "DECIMAL(9,2)", "VARCHAR", "VARCHAR"]


@pytest.mark.parametrize("width", [30, 50, 80, 120])
def test_tables_fit(width: int) -> None:
    from rich.cells import cell_len

    lines = rows_as_text(WIDE, TYPES, width=width).splitlines()
    assert all(cell_len(line) <= width for line in lines[:-1])
    assert len({cell_len(line) for line in lines[:-1]}) == 1, "ragged"
    assert len(lines) == 2 + 6


def test_what_does_not_fit_is_said() -> None:
    assert "of 5 columns fit" in rows_as_text(WIDE, TYPES, width=40)
    assert "fit" not in rows_as_text(WIDE, TYPES, width=300)


def test_numbers_are_right_aligned_and_nothing_is_lost_off_a_terminal() -> None:
    out = io.StringIO()
    print_rows(WIDE, TYPES, file=out, note="0.1 s")
    text = out.getvalue()
    assert "1.50 │" in text
    assert "a text that is much too long to be shown in full " * 3 in text
    assert "NULL" in text
    assert "[markup]" in text
    assert "two↵lines" in text
    assert text.rstrip().endswith("2 rows · 0.1 s")


def test_html_is_escaped() -> None:
    page = rows_as_html(pa.table({"<b>": ["<script>", None]}), ["VARCHAR"])
    assert "&lt;script&gt;" in page
    assert "<script>" not in page
    assert "NULL" in page


def test_empty_answers_look_well(qy) -> None:
    assert "0 rows" in repr(qy.sql("SELECT 1 AS a WHERE false"))
    assert "<td" not in qy.sql("SELECT 1 AS a WHERE false")._repr_html_()


def test_the_preview_of_a_failed_query_does_not_fail(qy) -> None:
    answer = qy.sql("SELECT CAST(if(range = 5000000, 'x', '1') AS INTEGER) FROM range(6000000)")
    with pytest.raises(QueryardError):
        answer.arrow()
    assert "Conversion Error" in repr(answer)


def test_values_as_text() -> None:
    assert value_text({"a": [1, None], "b": dt.datetime(2024, 1, 2, 3)}) == (
        "{'a': [1, NULL], 'b': 2024-01-02 03:00:00}"
    )


def test_showing_prints(qy, capsys: pytest.CaptureFixture[str]) -> None:
    qy.sql("SELECT 42 AS answer").show()
    assert "answer" in capsys.readouterr().out


def test_missing_packages_are_named(qy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    answer = qy.sql("SELECT 1")
    with pytest.raises(QueryardError, match="pip install pandas"):
        answer.df()
    with pytest.raises(QueryardError, match="pip install polars"):
        answer.pl()


# --- intervals -----------------------------------------------------------------------------------


def test_intervals_are_written_as_duckdb_writes_them(qy) -> None:
    sql = """
        SELECT i, CAST(i AS VARCHAR) AS t FROM (
            SELECT to_months(m::INT) + to_days(d::INT) + to_microseconds(u) AS i
            FROM (VALUES (0), (1), (-1), (11), (12), (-13), (360)) a(m),
                (VALUES (0), (1), (-1), (45)) b(d),
                (VALUES (0), (1), (-1), (1500000), (-3600000000), (999999999999)) c(u)
            UNION ALL SELECT NULL
        )
    """
    table = qy.sql(sql).arrow()
    assert table.num_rows == 7 * 4 * 6 + 1
    assert written_values(table["i"], "INTERVAL") == table["t"].to_pylist()


def test_intervals_for_python_and_for_people(qy) -> None:
    answer = qy.sql(
        "SELECT INTERVAL '1 month 2 days' AS i, [INTERVAL 1 YEAR] AS l, "
        "{'s': INTERVAL 90 MINUTE} AS s, MAP {'k': INTERVAL 3 DAY} AS m"
    )
    # As DuckDB's own package has them.
    days = dt.timedelta(days=1)
    row = (32 * days, [360 * days], {"s": dt.timedelta(minutes=90)}, {"k": 3 * days})
    assert answer.fetchall() == [row]
    assert duckdb.execute(answer_sql := "SELECT INTERVAL '1 month 2 days'").fetchall() == [row[:1]]
    assert qy.sql(answer_sql).fetchall() == [row[:1]]
    shown = rows_as_text(answer.arrow(), answer.types)
    for text in ("1 month 2 days", "[1 year]", "{'s': 01:30:00}", "{'k': 3 days}"):
        assert text in shown


def test_maps_in_pieces(qy) -> None:
    sql = "SELECT if(i % 3 = 0, NULL, MAP {i: [DATE '2024-01-01' + i::INT]}) FROM range(3000) r(i)"
    start = dt.date(2024, 1, 1)
    assert qy.sql(sql).fetchall() == [
        (None if i % 3 == 0 else {i: [start + dt.timedelta(days=i)]},) for i in range(3000)
    ]
    assert qy.sql("SELECT MAP {[1]: 2}").fetchall() == [({"key": [[1]], "value": [2]},)]
    assert qy.sql("SELECT MAP {} WHERE false").fetchall() == []


def test_errors_are_part_of_the_package(qy) -> None:
    with pytest.raises(queryard.QueryFailed, match="nowhere"):
        qy.sql("FROM nowhere")
    with pytest.raises(queryard.NotAllowed):
        qy.sql("COPY (SELECT 1) TO 'never.csv'")
    for name in ("QueryCancelled", "QueryTimedOut", "OutOfMemory"):
        assert issubclass(getattr(queryard, name), queryard.QueryFailed)
    assert issubclass(queryard.QueryFailed, queryard.QueryardError)
    assert set(dir(queryard)) >= set(queryard.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = queryard.nothing
