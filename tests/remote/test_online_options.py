"""Options of online queries do the same in an embedded session and on a server."""

from __future__ import annotations

import datetime as dt
import re
import time
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from service.anywhere import a_session

import queryard
from queryard.core.errors import QueryardError
from queryard.remote import NotOnServer

pytest.importorskip("httpx")
BY_DAY = "SELECT day, kind, sum(v) AS total FROM sales GROUP BY day, kind ORDER BY day, kind"


@pytest.fixture(scope="module", params=["embedded", "server"])
def qy(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("data")
    duckdb.execute(
        "COPY (SELECT i, DATE '2026-01-01' + (i % 2)::INT AS day, i % 3 AS kind, "
        "hash(i) % 100 AS v FROM range(100000) t(i)) "
        f"TO '{folder}/sales.parquet' (ROW_GROUP_SIZE 4096)"
    )
    duckdb.execute(f"COPY (SELECT j FROM range(20000) t(j)) TO '{folder}/other.parquet'")
    place = folder if request.param == "embedded" else tmp_path_factory.mktemp("served")
    options = {"slots": 2, "memory": "300 MB", "history": False}
    with a_session(request.param, place, folder, **options) as session:
        yield session


def test_groups_are_values_of_all_group_columns(qy: Any):
    groups = [(dt.date(2026, 1, 2), 1), (dt.date(2026, 1, 1), 0)]
    *_, last = qy.online(BY_DAY, groups=groups, stop_at=0.2, every=0)
    assert last.error is not None
    assert last.error <= 0.2
    assert len(last) == 6


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"groups": [(dt.date(2027, 1, 1), 1)]}, r"there is no group .*2027.* \(groups: \("),
        ({"groups": ["x"]}, r"'x' must be a value of each group column .* \(day, kind\)"),
        ({"columns": ["kind"]}, r"nothing is estimated in 'kind' \(estimated: total\)"),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_is(qy: Any, options: Any, told: str):
    with pytest.raises(queryard.QueryFailed, match=told):
        list(qy.online(BY_DAY, every=0, **options))


def test_a_function_of_progress_stays_in_its_process(qy: Any):
    if isinstance(qy, queryard.Session):
        *_, last = qy.online(BY_DAY, measure=lambda rows: rows.num_rows)
        assert last.exact
        return
    with pytest.raises(NotOnServer, match=r"measure: a session on a server .*: name the columns"):
        qy.online(BY_DAY, measure=lambda rows: rows.num_rows)


LONG = "SELECT sum(a.range * b.range) AS s FROM range(1000000000) a, range(1000000) b"


def test_a_query_that_runs_exactly_ends_in_time_with_an_error_that_says_why(qy: Any):
    began = time.monotonic()
    answers = qy.online(LONG, within="0.3 s")
    with pytest.raises(
        queryard.QueryTimedOut, match=r"no answer within 0.3 s: the query runs exactly, as .*; give"
    ):
        list(answers)
    assert 0.3 <= time.monotonic() - began < 5
    with pytest.raises(queryard.QueryTimedOut, match=f"as {re.escape(answers.reason)}"):
        answers.result()
    assert [a.rows() for a in qy.online("SELECT 42 AS n", within="20 s")] == [[(42,)]]


def test_what_turns_out_to_need_all_rows_ends_in_time_too(qy: Any):
    slow = "SELECT sum(v) AS s FROM sales JOIN other ON (sales.i * other.j) % 7 = 3"
    answers = qy.online(slow, within="0.5 s", every=0)
    with pytest.raises(
        queryard.QueryTimedOut, match=r"no answer within 0.5 s: .* it joins with 20,000 rows"
    ):
        list(answers)
    assert answers.last is None


def test_groups_that_are_no_list_are_refused_at_once(qy: Any):
    with pytest.raises(QueryardError, match="groups: must be a list of groups, got 3"):
        qy.online(BY_DAY, groups=3)
