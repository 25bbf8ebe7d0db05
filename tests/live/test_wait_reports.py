"""What a query, and a session as a whole, say of themselves while work is going on."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from service.anywhere import PLACES, a_session
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryCancelled, QueryFailed

from .crowds import ENDLESS, busy, check_empty, sessions, spin, spun


@pytest.fixture
def open_session(data, tmp_path):
    with sessions(
        data, tmp_path / "temp", slots=1, memory="4 GB", history=False, profile="fifo"
    ) as make:
        yield make


@pytest.fixture
def embedded(open_session):
    """For what only an embedded session tells."""
    return open_session()


@pytest.fixture(params=PLACES)
def qy(request, data, tmp_path):
    options = {"slots": 1, "memory": "4 GB", "history": False, "profile": "fifo"}
    (tmp_path / "served").mkdir()
    with a_session(
        request.param, tmp_path / "served", data, temp=tmp_path / "temp", **options
    ) as session:
        yield session


# --- why, in every state -----------------------------------------------------------------------


def test_a_waiting_query_says_what_is_ahead_and_by_which_rule(qy):
    running = busy(qy)
    ahead = qy.submit(spin(1))
    handle = qy.submit(spin(1))
    wait_until(lambda: len(handle.why().ahead) > 0)
    why = handle.why()
    assert (why.query, why.status, why.slots, why.started_s) == (handle.id, "waiting", 0, None)
    assert why.rule == "fifo"
    assert ahead.id in why.ahead
    assert why.reasons
    assert f"{handle.id} waits for" in str(why)
    assert ahead.id in str(why)
    assert str(qy.why(handle.id)).startswith(f"{handle.id} waits for")
    running.cancel()


def test_a_running_query_says_how_many_slots_it_has(qy):
    handle = busy(qy)
    wait_until(lambda: handle.why().slots == 1)
    why = handle.why()
    assert why.status == "running"
    assert why.started_s is not None
    assert "1 slot at work on it" in why.reasons
    assert f"{handle.id} runs for" in str(why)
    handle.cancel()


def test_a_query_that_waits_for_memory_says_so(embedded):
    running = busy(embedded, memory=embedded.client.pool_bytes)
    handle = embedded.submit(spin(1), memory=embedded.client.pool_bytes)
    wait_until(lambda: handle.why().pool != "")
    assert "bytes of memory" in str(handle.why())
    running.cancel()


def test_a_query_that_shares_an_execution_says_with_which_query(qy):
    first = busy(qy)
    sharer = qy.submit(first.sql)
    assert f"it shares the execution of {first.id}" in str(sharer.why())
    first.cancel()
    sharer.cancel()


def test_a_query_queued_for_the_connection_says_so(qy):
    qy.sql("CREATE TEMP TABLE t AS SELECT range AS i FROM range(1000000)")
    first = qy.submit("SELECT count(*) FROM t, range(2000) WHERE hash(i, range) % 7 < 9")
    second = qy.submit("SELECT count(*) FROM t")
    assert second.status == "waiting"
    why = second.why()
    assert "queued for its client's own connection" in str(why)
    assert why.forecast is None
    assert second.forecast() is None
    first.cancel()
    assert second.result(30).fetchall() == [(1_000_000,)]


def test_a_query_that_is_being_planned_says_so(qy, monkeypatch):
    from queryard.sql import planner

    go_on = threading.Event()
    plan_staged = planner.plan_staged

    def slowly(*arguments, **options):
        assert go_on.wait(30)
        return plan_staged(*arguments, **options)

    monkeypatch.setattr(planner, "plan_staged", slowly)
    handle = qy.submit("SELECT key, count(*) FROM facts GROUP BY key", plan="staged")
    assert handle.status == "waiting"
    assert "is being planned" in str(handle.why())
    assert handle.progress() == 0.0
    assert [view.id for view in qy.queries()] == [handle.id]
    go_on.set()
    assert len(handle.result(60).fetchall()) == 1000


def test_what_has_ended_says_how_long_it_took(qy):
    handle = qy.submit(spin(2))
    assert handle.wait(60)
    why = handle.why()
    assert why.status == "finished"
    assert why.reasons == ()
    assert why.submitted_s <= why.started_s <= why.ended_s <= qy.now()
    assert f"{handle.id} finished after" in str(why)


def test_what_failed_says_why(qy):
    handle = qy.submit("SELECT sum(words::INTEGER) FROM facts")
    assert handle.wait(60)
    assert handle.why().status == "failed"
    assert "Could not convert" in str(handle.why())


def test_what_was_cancelled_says_so(qy):
    running = busy(qy)
    handle = qy.submit(spin(1))
    for query in (handle, running):
        query.cancel()
        assert query.wait(30)
        assert query.why().status == "cancelled"
        assert "cancelled after" in str(query.why())


def test_a_session_knows_only_active_queries(embedded):
    handle = embedded.submit("SELECT 1")
    assert handle.wait(30)
    with pytest.raises(QueryardError, match="active query"):
        embedded.why(handle.id)
    with pytest.raises(QueryardError, match="nonsense"):
        embedded.why("nonsense")


def test_a_session_that_is_closed_still_tells_of_what_has_ended(data):
    session = queryard.connect(data, history=False)
    handle = session.submit("SELECT 1")
    assert handle.wait(30)
    session.close()
    assert handle.why().status == "finished"
    assert session.queries() == ()


# --- forecasts ---------------------------------------------------------------------------------


def test_queries_in_a_row_are_expected_one_after_another(qy):
    qy.sql(spin(5)).fetchall()  # how long its like take is known from now on
    running = qy.submit(spin(40))
    handles = [qy.submit(spin(5)) for _ in range(6)]
    wait_until(lambda: len(qy.forecasts()) >= 6)
    found = [handle.forecast() for handle in handles]
    if not handles[0].ended:
        assert all(each is not None for each in found)
        for each in found:
            assert each.start_s <= each.end_s
        starts = [each.start_s for each in found]
        assert starts == sorted(starts)
        assert "it is expected to start in" in str(handles[-1].why())
    assert running.wait(60)
    for handle in handles:
        assert handle.wait(60)


def test_a_forecast_is_roughly_right(embedded):
    alone = embedded.submit(spin(10))
    assert alone.wait(60)
    handles = [embedded.submit(spin(10)) for _ in range(8)]
    wait_until(lambda: len(embedded.forecasts()) == 8)
    expected_s = handles[-1].forecast().end_s - embedded.now()
    began_s = embedded.now()
    assert all(handle.wait(60) for handle in handles)
    took_s = embedded.now() - began_s
    # The machine may be busy with other things, and much slower than before.
    assert 0.1 * took_s < expected_s < 10 * took_s


def test_how_good_a_forecast_was_is_told_afterwards(embedded):
    running = busy(embedded)
    handles = []

    def one_is_foreseen() -> bool:
        # They are made as queries come, for a small share of the time only.
        handles.append(embedded.submit(spin(1)))
        time.sleep(0.05)
        return any(handle._ticket.first_forecast is not None for handle in handles)

    wait_until(one_is_foreseen, 60.0, "a forecast")
    told = next(handle for handle in handles if handle._ticket.first_forecast is not None)
    running.cancel()
    assert told.wait(60)
    assert told.why().forecast_error is not None
    assert "was forecast" in str(told.why())
    assert told.why().forecast.end_s is not None


def test_queries_that_share_an_execution_are_expected_to_end_with_it(embedded):
    running = busy(embedded)
    first = embedded.submit(spin(5))
    sharers = [embedded.submit(first.sql) for _ in range(3)]
    wait_until(lambda: len(embedded.forecasts()) == 5)
    found = embedded.forecasts()
    assert {found[sharer.id].end_s for sharer in sharers} == {found[first.id].end_s}
    running.cancel()
    assert all(sharer.wait(60) for sharer in sharers)


# --- the whole session -------------------------------------------------------------------------


def test_all_active_queries_are_listed_with_the_earliest_first(embedded):
    running = busy(embedded, tenant="web", priority=2)
    handles = [embedded.submit(spin(1), tenant="lab", deadline=60) for _ in range(3)]
    views = embedded.queries()
    assert [view.id for view in views] == [running.id, *(handle.id for handle in handles)]
    assert [view.status for view in views] == ["running"] + ["waiting"] * 3
    assert (views[0].tenant, views[0].priority, views[0].sql) == ("web", 2, ENDLESS)
    assert views[0].deadline_s is None
    assert views[1].deadline_s == pytest.approx(views[1].submitted_s + 60, abs=1)
    assert views[1].started_s is None
    assert views[1].predicted_work_s > 0
    assert all(0 <= view.progress <= 1 for view in views)
    report = embedded.report()
    assert (report.waiting, report.running) == (3, 1)
    assert report.decisions > 0
    assert report.driver_cpu_s >= report.decide_s > 0
    running.cancel()
    assert all(handle.wait(30) for handle in handles)
    report = embedded.report()
    assert (report.waiting, report.running) == (0, 0)
    assert embedded.queries() == ()
    assert embedded.forecasts() == {}


@pytest.mark.parametrize("many", [400, pytest.param(2000, marks=pytest.mark.long)])
def test_very_many_may_wait_and_submitting_does_not_block(open_session, many):
    session = open_session(profile="marshal")
    running = busy(session, priority=9)
    began = time.monotonic()
    handles = [session.submit(f"SELECT {i}, count(*) FROM range(10)") for i in range(many)]
    assert time.monotonic() - began < 30
    assert session.report().waiting == many
    assert handles[-1].why().status == "waiting"
    running.cancel()
    for i, handle in enumerate(handles):
        assert handle.result(60).fetchall() == [(i, 10)]
    check_empty(session)


def test_queries_come_from_many_threads_and_tasks(open_session):
    session = open_session(slots=2, profile="marshal")
    wrong: list[BaseException] = []

    def ask(thread: int) -> None:
        try:
            handles = [session.submit(f"SELECT {thread}, {i}, 42") for i in range(60)]
            for i, handle in enumerate(handles):
                assert handle.result(60).fetchall() == [(thread, i, 42)]
        except BaseException as error:
            wrong.append(error)

    async def one(i: int) -> None:
        answer = await session.submit(f"SELECT 'task', {i}")
        assert answer.fetchall() == [("task", i)]

    async def tasks() -> None:
        await asyncio.gather(*(one(i) for i in range(200)))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    asyncio.run(tasks())
    for thread in threads:
        thread.join(100)
    assert not wrong
    check_empty(session)


# --- asyncio -----------------------------------------------------------------------------------


def test_several_answers_are_awaited_at_once(qy):
    async def ask() -> list[int]:
        answers = await asyncio.gather(*(qy.submit(spin(0.5)) for _ in range(10)))
        return [answer.fetchall()[0][1] for answer in answers]

    assert asyncio.run(ask()) == [spun(0.5)] * 10


def test_a_handle_may_be_awaited_twice_and_after_its_end(qy):
    async def ask() -> None:
        handle = qy.submit(spin(0.5))
        assert await handle is await handle
        handle.wait(30)
        assert (await handle).fetchall()[0][1] == spun(0.5)

    asyncio.run(ask())


def test_an_error_is_raised_where_it_is_awaited(qy):
    async def ask() -> None:
        good, bad = await asyncio.gather(
            qy.submit(spin(0.5)),
            qy.submit("SELECT sum(words::INTEGER) FROM facts"),
            return_exceptions=True,
        )
        assert good.fetchall()[0][1] == spun(0.5)
        assert isinstance(bad, QueryFailed)

    asyncio.run(ask())


def test_a_query_that_is_cancelled_raises_where_it_is_awaited(qy):
    async def ask() -> None:
        handle = qy.submit(ENDLESS)
        asyncio.get_running_loop().call_later(0.05, handle.cancel)
        with pytest.raises(QueryCancelled):
            await handle

    asyncio.run(ask())


def test_a_task_that_is_cancelled_lets_go_of_its_query(embedded):
    async def wait_for_it() -> None:
        await embedded.submit(ENDLESS)

    async def ask() -> None:
        task = asyncio.create_task(wait_for_it())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(ask())
    check_empty(embedded)


def test_a_time_out_of_asyncio_ends_the_wait_and_not_the_query(embedded):
    async def ask(handle) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await handle

    handle = embedded.submit(ENDLESS)
    asyncio.run(ask(handle))
    assert not handle.ended
    # Its event loop is closed, which is no error.
    handle.cancel()
    assert handle.wait(30)
    check_empty(embedded)


def test_an_answer_after_its_event_loop_is_closed_is_no_error(embedded):
    async def ask(handle) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await handle

    running = busy(embedded)
    handle = embedded.submit(spin(0.5))
    asyncio.run(ask(handle))
    running.cancel()
    assert handle.result(30).fetchall()[0][1] == spun(0.5)
    check_empty(embedded)


def test_a_query_is_known_as_soon_as_it_was_submitted(open_session):
    session = open_session()
    blocking = busy(session)
    for _ in range(20):
        handle = session.submit(spin(0.1))
        assert handle.forecast() is not None
        assert handle.id in session.forecasts()
        handle.cancel()
    blocking.cancel()
    assert blocking.wait(30)
    check_empty(session)
