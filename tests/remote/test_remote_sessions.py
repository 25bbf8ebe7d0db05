"""What is a server's own: dropped connections, other tenants, what cannot be done there."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest
from service.anywhere import served, token_of
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import NotAllowed, QueryCancelled
from queryard.remote import NotKnown, NotOnServer, RemoteSession, ServerError, TokenRefused

from .cutting import CuttingProxy

pytest.importorskip("httpx")
ENDLESS = "SELECT sum(a.range * b.range) FROM range(1000000000) a, range(1000000) b"
ROWS = 300_000


class Place:
    """A server, with a token for each session."""

    def __init__(self, url: str, folder: Path, session: queryard.Session) -> None:
        self.url = url
        self.token = token_of(folder)
        self.session = session


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("server")
    data = folder / "data"
    data.mkdir()
    made = f"SELECT range AS n, 'row ' || range AS t FROM range({ROWS})"
    duckdb.sql(f"COPY ({made}) TO '{data / 'numbers.parquet'}'")
    with (
        queryard.connect(data, slots=2, memory="512 MB") as session,
        served(session, folder) as url,
    ):
        yield Place(url, folder, session)


@pytest.fixture
def qy(place: Place) -> Iterator[RemoteSession]:
    with queryard.connect(place.url, token=place.token) as session:
        yield session


@pytest.fixture
def proxy(place: Place) -> Iterator[CuttingProxy]:
    made = CuttingProxy(int(place.url.rpartition(":")[2]))
    yield made
    made.close()


# --- connections that drop -----------------------------------------------------------------------


def test_reading_goes_on_where_a_connection_has_dropped(place: Place, proxy: CuttingProxy):
    with queryard.connect(proxy.url, token=place.token) as qy:
        proxy.cuts = [200_000, 1_000_000, 2_000_000]
        answer = qy.sql("SELECT n, t FROM numbers ORDER BY n")
        assert answer.arrow()["n"].to_pylist() == list(range(ROWS))
    assert proxy.dropped == 3


def test_a_statement_with_side_effects_runs_once_though_its_answer_is_lost(
    place: Place, proxy: CuttingProxy
):
    with queryard.connect(proxy.url, token=place.token) as qy:
        qy.sql("CREATE TEMP TABLE seen (n INTEGER)")
        proxy.cuts = [1]
        assert qy.sql("INSERT INTO seen VALUES (1)").changed == 1
        assert proxy.dropped == 1
        assert qy.sql("SELECT count(*) FROM seen").fetchall() == [(1,)]


def test_a_server_that_is_not_there_is_told_after_a_while(place: Place, proxy: CuttingProxy):
    qy = queryard.connect(proxy.url, token=place.token, patience=0.2)
    proxy.close()
    with pytest.raises(ServerError, match=r"cannot be reached .*queryard serve"):
        qy.query("none")
    qy.close()
    with pytest.raises(ServerError, match="cannot be reached"):
        queryard.connect(proxy.url, token=place.token, patience=0)


# --- what is held and let go ---------------------------------------------------------------------


def test_a_query_that_nothing_holds_is_cancelled(qy: RemoteSession, place: Place):
    handle = qy.submit(ENDLESS)
    assert [view.id for view in qy.queries()] == [handle.id]
    del handle
    gc.collect()
    wait_until(lambda: not place.session.queries())


def test_a_query_with_keep_runs_on(qy: RemoteSession):
    name = qy.submit("SELECT 7 AS n", keep="1 min").id
    gc.collect()
    assert qy.query(name).result().fetchall() == [(7,)]


def test_closing_a_session_cancels_what_runs_in_it(place: Place):
    with queryard.connect(place.url, token=place.token) as qy:
        handle = qy.submit(ENDLESS)
        wait_until(lambda: handle.status == "running")
    wait_until(lambda: not place.session.queries())
    with pytest.raises(QueryardError, match="closed"):
        qy.sql("SELECT 1")
    assert "closed" in repr(qy)


def test_cancelling(qy: RemoteSession):
    handle = qy.submit(ENDLESS)
    assert "running" in repr(handle) or "waiting" in repr(handle)
    assert qy.why(handle.id).query == handle.id
    handle.cancel()
    with pytest.raises(QueryCancelled):
        handle.result()
    assert (handle.status, handle.ended) == ("cancelled", True)
    assert isinstance(handle.error, QueryCancelled)
    assert "cancelled after" in str(handle.why())
    qy.cancel(handle.id)
    qy.cancel("unknown")


def test_a_timeout_ends_the_wait_and_not_the_query(qy: RemoteSession):
    handle = qy.submit(ENDLESS)
    with pytest.raises(TimeoutError):
        handle.result("0.1 s")
    assert not handle.wait(0.1)
    assert handle.status == "running"
    handle.cancel()


# --- asking --------------------------------------------------------------------------------------


def test_in_asyncio(qy: RemoteSession):
    async def ask() -> list[list[tuple]]:
        answers = await asyncio.gather(*(qy.submit(f"SELECT {n} AS n") for n in range(5)))
        batches = [batch async for batch in qy.sql("SELECT n FROM numbers").batches()]
        assert sum(batch.num_rows for batch in batches) == ROWS
        return [answer.fetchall() for answer in answers]

    assert asyncio.run(ask()) == [[(n,)] for n in range(5)]


def test_online_answers(qy: RemoteSession):
    answers = qy.online("SELECT avg(n) AS mean FROM numbers", every=0)
    *_, last = answers
    assert last.exact
    assert last.rows() == [((ROWS - 1) / 2,)]
    assert answers.last is not None
    exact = list(qy.online("SELECT n FROM numbers WHERE n < 2 ORDER BY n"))
    assert [answer.rows() for answer in exact] == [[(0,), (1,)]]
    with pytest.raises(queryard.QueryFailed, match="nothing"):
        list(qy.online("SELECT avg(nothing) FROM numbers"))


def test_plans_and_estimates(qy: RemoteSession):
    estimate = qy.estimate("SELECT count(*) FROM numbers")
    assert estimate.work_s.low <= estimate.work_s.value <= estimate.work_s.high
    assert "of work" in estimate.summary()
    plan = qy.explain("SELECT count(*) FROM numbers WHERE n > ?", [5], analyze=True)
    assert plan.jobs
    assert "numbers" in plan.text()
    handle = qy.submit("SELECT count(*) FROM numbers")
    handle.result().fetchall()
    assert handle.explain() is not None


def test_looking_on(qy: RemoteSession, place: Place):
    assert qy.tables() == ("numbers",)
    assert [column.name for column in qy.catalog["Numbers"].columns] == ["n", "t"]
    assert qy.whoami()["name"] == "tester"
    assert abs(qy.now() - place.session.now()) < 5
    running = qy.submit(ENDLESS)
    waiting = [qy.submit(f"{ENDLESS} WHERE a.range > {n}") for n in range(3)]
    views = qy.queries()
    assert [view.id for view in views] == [running.id, *(each.id for each in waiting)]
    wait_until(lambda: any(view.slots for view in qy.queries()))
    wait_until(lambda: running.id in qy.forecasts())
    assert qy.submit("SELECT 1", tenant="default/low").result().fetchall() == [(1,)]
    assert running.timing.submitted_s <= qy.now()
    for each in (running, *waiting):
        each.cancel()
    place.session.host._recorder.history.flush()
    assert running.id in {record.query for record in qy.history()}
    assert qy.past_query(running.id).sql == ENDLESS


def test_forecasts_of_all_queries_are_one_request(qy: RemoteSession, monkeypatch):
    handles = [qy.submit(f"{ENDLESS} WHERE a.range > {n}") for n in range(4)]
    wait_until(lambda: {each.id for each in handles} <= qy.forecasts().keys())
    asked = []
    transport = qy._looking._transport
    plain = transport.json

    def counted(method: str, path: str, **given: object) -> object:
        asked.append(path)
        return plain(method, path, **given)

    monkeypatch.setattr(transport, "json", counted)
    assert {each.id for each in handles} <= qy.forecasts().keys()
    assert asked == ["/v1/forecasts"]
    for each in handles:
        each.cancel()


# --- what is refused -----------------------------------------------------------------------------


def test_what_a_server_cannot_do_is_refused_with_what_to_do(qy: RemoteSession):
    for call, remedy in (
        (lambda: qy.create_function("f", abs, ["INTEGER"], "INTEGER"), "MACRO"),
        (lambda: qy.register("t", {}), "catalog file"),
        (lambda: qy.iterate(lambda n: None, 3), "embedded"),
        (lambda: qy.shuffle("numbers"), "queryard shuffle"),
        (qy.report, "/metrics"),
    ):
        with pytest.raises(NotOnServer, match=remedy):
            call()


def test_errors_are_those_of_an_embedded_session(qy: RemoteSession):
    with pytest.raises(NotAllowed):
        qy.sql("COPY (SELECT 1) TO 'x.csv'")
    with pytest.raises(NotAllowed, match="tenant"):
        qy.sql("SELECT 1", tenant="other")
    with pytest.raises(queryard.QueryTimedOut):
        qy.sql(ENDLESS, time_limit="0.1 s").fetchall()
    with pytest.raises(NotKnown):
        qy.query("5f0c2a91b7de-14")
    with pytest.raises(TypeError, match="did you mean 'tenant'"):
        qy.sql("SELECT 1", tenent="x")


def test_wrong_places_and_options_are_told(place: Place, tmp_path: Path):
    with pytest.raises(TokenRefused, match="unknown, was revoked or has expired"):
        queryard.connect(place.url, token="qy_wrong")
    with pytest.raises(QueryardError, match="a token is needed"):
        queryard.connect(place.url)
    with pytest.raises(QueryardError, match="slots: is for sessions on data"):
        queryard.connect(place.url, token=place.token, slots=2)
    with pytest.raises(QueryardError, match="token: is for sessions on a server"):
        queryard.connect(str(tmp_path), token="x")
    with pytest.raises(QueryardError, match="no address of a server"):
        queryard.connect("http://", token="x")


def test_a_session_that_was_idle_is_opened_again_unless_it_had_state(place: Place):
    def end(qy: RemoteSession) -> None:
        qy._transport.json("DELETE", f"/v1/sessions/{qy._session.id}")

    with queryard.connect(place.url, token=place.token) as qy:
        qy.sql("FROM duckdb_tables()").fetchall()  # which runs in a session, and leaves nothing
        end(qy)
        assert qy.sql("SELECT 1").fetchall() == [(1,)]
        qy.sql("FROM duckdb_tables()").fetchall()
        end(qy)
        # The first statement that leaves something goes to a new session, as nothing was lost.
        qy.sql("CREATE TEMP TABLE mine (n INTEGER)")
        assert qy.sql("FROM mine").fetchall() == []
        end(qy)
        with pytest.raises(QueryardError, match=r"session has ended .*temporary tables"):
            qy.sql("SELECT 1")


def test_a_transaction_that_has_ended_is_no_state(place: Place):
    with queryard.connect(place.url, token=place.token) as qy:
        qy.sql("BEGIN")
        qy.sql("COMMIT")
        qy._transport.json("DELETE", f"/v1/sessions/{qy._session.id}")
        qy.sql("BEGIN")
        qy._transport.json("DELETE", f"/v1/sessions/{qy._session.id}")
        with pytest.raises(QueryardError, match="session has ended"):
            qy.explain("SELECT 1")


def test_a_client_that_only_reads_is_no_connection(place: Place):
    with queryard.connect(place.url, token=place.token) as qy:
        assert qy.sql("SELECT count(*) FROM numbers").fetchall() == [(ROWS,)]
        qy.explain("SELECT 1")
        assert qy._transport.json("GET", "/v1/sessions")["sessions"] == []
        running = qy.submit(ENDLESS)
        kept = qy.submit(f"{ENDLESS} WHERE a.range > 1", keep="1 min").id
        qy.sql("CREATE TEMP TABLE mine (n INTEGER)")
        assert len(qy._transport.json("GET", "/v1/sessions")["sessions"]) == 1
    # What was entered outside of the session ends with the client as well.
    until_s = time.monotonic() + 30
    while (active := {view.id for view in place.session.queries()}) and time.monotonic() < until_s:
        time.sleep(0.02)
    assert active.isdisjoint({running.id, kept})


def test_a_session_with_a_tenant_is_opened_at_once(place: Place):
    with queryard.connect(place.url, token=place.token, tenant="default/reports") as qy:
        handle = qy.submit("SELECT 1")
        assert handle.wait(30)
        state = qy._transport.json("GET", f"/v1/queries/{handle.id}")
        assert state["tenant"] == "default/reports"


def test_a_read_is_sent_again_if_its_answer_is_cut_before_it_begins(
    place: Place, proxy: CuttingProxy
):
    with queryard.connect(proxy.url, token=place.token) as qy:
        qy.sql("SELECT 1").fetchall()
        proxy.cuts = [1]
        assert qy.sql("SELECT 2").fetchall() == [(2,)]
        assert proxy.dropped == 1


def test_many_handles_are_awaited_without_a_thread_for_each(qy: RemoteSession):
    async def wait_for_many() -> None:
        slow = [qy.submit(f"{ENDLESS} WHERE a.range > {place}") for place in range(40)]
        waiting = [asyncio.ensure_future(_awaited(handle)) for handle in slow]
        await asyncio.sleep(0)
        quick = qy.submit("SELECT 42", priority=1)
        for handle in slow:
            await asyncio.to_thread(handle.cancel)  # which needs a thread of the same executor
        for each in waiting:
            with pytest.raises(QueryCancelled):
                await each
        assert (await quick).fetchall() == [(42,)]

    async def _awaited(handle: Any) -> Any:
        return await handle

    asyncio.run(wait_for_many())
