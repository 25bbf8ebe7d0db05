"""What a submission finds out at once, and what the query itself tells later."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_until

import queryard
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.estimate.work import Prediction
from queryard.live.request import QueryRequest
from queryard.live.work.native import LOST_S, MOMENT_S, takes_a_moment

LONG = "SELECT sum(sin(a.n * b.n)) FROM numbers a, numbers b, numbers c"
WRONG = "SELECT n FROM numbers WHERE GROUP"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[queryard.Session]:
    folder: Path = tmp_path_factory.mktemp("data")
    duckdb.sql(f"COPY (FROM range(20000) r(n)) TO '{folder / 'numbers.parquet'}'")
    with queryard.connect(folder, slots=1, memory="1 GB", history=False) as session:
        yield session


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_a_syntax_error_in_a_select_comes_with_the_answer(session, plan):
    handle = session.submit(WRONG, plan=plan)
    with pytest.raises(QueryFailed, match='syntax error at or near "GROUP"'):
        handle.result()
    assert handle.wait()
    assert handle.status == "failed"
    with pytest.raises(QueryFailed, match="LINE 1: SELECT n FROM numbers WHERE GROUP"):
        session.sql(WRONG, plan=plan)


def test_a_syntax_error_elsewhere_is_raised_at_once(session):
    with pytest.raises(QueryFailed, match="syntax error"):
        session.submit("SET")
    with pytest.raises(QueryFailed, match="syntax error"):
        session.submit("SELECT 1; SELECT FROM")


def test_a_waiting_query_tells_its_syntax_error_before_its_turn(session):
    running = session.submit(LONG)
    wait_until(lambda: running.status == "running")
    with pytest.raises(QueryFailed, match="LINE 1: SELECT n FROM numbers WHERE GROUP"):
        session.submit(WRONG).result("60 s")
    assert running.status == "running"
    running.cancel()
    running.wait()


def test_a_query_can_be_looked_at_as_soon_as_it_is_submitted(session):
    running = session.submit(LONG)
    waiting = session.submit("SELECT count(*) FROM numbers")
    assert {running.id, waiting.id} <= {view.id for view in session.queries()}
    running.cancel()
    with pytest.raises(QueryCancelled):
        running.result()
    assert waiting.result().fetchall() == [(20_000,)]


def test_statements_of_one_client_keep_their_order(session):
    for number in range(20):
        session.submit(f"CREATE OR REPLACE TEMP TABLE seen AS SELECT {number} AS n")
        answer = session.submit("SELECT n FROM seen")
        assert answer.result().fetchall() == [(number,)]


def test_restarts_are_counted(session, monkeypatch):
    monkeypatch.setattr("queryard.engine.statement.SPRINT_S", 0.0)
    monkeypatch.setattr(
        "queryard.live.coordinating.intake.takes_a_moment", lambda request, prediction: True
    )
    before = session.report()
    middling = "SELECT count(*) FROM numbers a, numbers b WHERE a.n + b.n = 7 AND b.n < 2000"
    session.sql(middling).fetchall()
    wait_until(lambda: session.report().sprints > before.sprints)
    after = session.report()
    assert after.restarts == before.restarts + 1
    assert after.restart_s > before.restart_s


@given(
    st.floats(0.005, 10.0),
    st.floats(1.0, 20.0),
    st.floats(1.0, 3.0),
    st.sampled_from(["template", "plan", "bytes", "guess"]),
)
def test_what_is_less_sure_or_longer_never_takes_a_moment_instead(work_s, spread, more, by):
    request = QueryRequest("", (), (), "native")
    short = takes_a_moment(request, Prediction(work_s, None, by, spread))
    assert short or not takes_a_moment(request, Prediction(work_s * more, None, by, spread))
    assert short or not takes_a_moment(request, Prediction(work_s, None, by, spread * more))
    assert not short or (work_s <= MOMENT_S and work_s * spread <= LOST_S)
