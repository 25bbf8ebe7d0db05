"""Which queries are refused, with which error, and that other queries are not affected."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from waiting import wait_until

import queryard
from queryard import Handle, Refused
from queryard.core.errors import QueryardError
from queryard.history import HistoryReader
from queryard.live.admission.gate import Gate
from queryard.live.admission.limits import Limits
from queryard.live.request import QueryRequest

from .crowds import busy, check_empty, sessions, spin, spun


@pytest.fixture
def open_session(data, tmp_path):
    """Makes sessions with one slot on which the earliest query goes first."""
    with sessions(
        data, tmp_path / "temp", slots=1, memory="4 GB", history=False, profile="fifo"
    ) as make:
        yield make


# --- the number of waiting queries -------------------------------------------------------------


def test_so_many_may_wait_and_no_more(open_session):
    session = open_session(limits={"waiting": 3})
    blocking = busy(session)
    waiting = [session.submit(spin(0.1)) for _ in range(3)]
    with pytest.raises(Refused, match=r"the session: 3 queries are waiting.*limit is 3") as caught:
        session.submit(spin(0.1))
    assert caught.value.retry_after_s is not None
    assert caught.value.retry_after_s >= 0
    assert isinstance(caught.value, QueryardError)
    assert session.report().waiting == 3
    blocking.cancel()
    for handle in waiting:
        assert handle.result(30).fetchall()[0][1] == spun(0.1)
    # There is room again.
    assert session.sql("SELECT 1").fetchall() == [(1,)]
    check_empty(session)


def test_running_queries_do_not_wait(open_session):
    session = open_session(limits={"waiting": 1})
    blocking = busy(session)
    waiting = session.submit(spin(0.1))
    with pytest.raises(Refused):
        session.submit(spin(0.1))
    waiting.cancel()
    assert waiting.wait(30)
    again = session.submit(spin(0.1))
    blocking.cancel()
    assert again.wait(30)
    check_empty(session)


def test_a_limit_of_a_tenant_is_its_own(open_session):
    session = open_session(tenants={"web": {"limits": {"waiting": 1}}})
    blocking = busy(session)
    waiting = session.submit(spin(0.1), tenant="web")
    with pytest.raises(Refused, match="tenant 'web': 1 query is waiting"):
        session.submit(spin(0.1), tenant="web")
    others = [session.submit(spin(0.1), tenant="lab") for _ in range(5)]
    blocking.cancel()
    for handle in (waiting, *others):
        assert handle.wait(30)
        assert handle.error is None
    session.sql(spin(0.1), tenant="web").fetchall()
    check_empty(session)


def test_a_limit_of_a_parent_counts_all_below_it(open_session):
    tenants = {
        "sales": {
            "limits": {"waiting": 3},
            "tenants": {"emea": {"limits": {"waiting": 2}}, "apac": {}},
        }
    }
    session = open_session(tenants=tenants)
    blocking = busy(session)
    handles = [session.submit(spin(0.1), tenant="sales/emea") for _ in range(2)]
    with pytest.raises(Refused, match="tenant 'sales/emea': 2 queries"):
        session.submit(spin(0.1), tenant="sales/emea")
    handles.append(session.submit(spin(0.1), tenant="sales/apac"))
    for tenant in ("sales/apac", "sales/unnamed", "sales"):
        with pytest.raises(Refused, match="tenant 'sales': 3 queries"):
            session.submit(spin(0.1), tenant=tenant)
    handles.append(session.submit(spin(0.1), tenant="salesforce"))
    blocking.cancel()
    assert all(handle.wait(30) for handle in handles)
    check_empty(session)


def test_a_limit_of_nought_refuses_every_query(open_session):
    session = open_session(tenants={"closed": {"limits": {"waiting": 0}}})
    with pytest.raises(Refused, match=r"tenant 'closed'.*is 0") as caught:
        session.submit("SELECT 1", tenant="closed")
    assert caught.value.retry_after_s is None  # it does not help to wait
    assert session.sql("SELECT 1", tenant="open").fetchall() == [(1,)]


def test_queries_queued_for_the_connection_wait_too(data, tmp_path):
    with queryard.connect(data, slots=1, history=False, limits={"waiting": 2}) as session:
        session.sql("CREATE TEMP TABLE t AS SELECT range AS i FROM range(20000000)").fetchall()
        handles = [session.submit("SELECT count(*) FROM t a, range(5)")]
        wait_until(lambda: handles[0].status != "waiting", 30.0)
        refused = 0
        for _ in range(5):
            try:
                handles.append(session.submit("SELECT count(*) FROM t"))
            except Refused:
                refused += 1
        assert refused >= 2
        for handle in handles:
            assert handle.result(60).fetchall()
        assert session.sql("SELECT 1").fetchall() == [(1,)]


def test_the_count_is_right_after_a_crowd_from_many_threads(open_session):
    session = open_session(limits={"waiting": 20})
    answered, refused = [], []

    def ask() -> None:
        for _ in range(40):
            try:
                answered.append(session.sql("SELECT 42").fetchall())
            except Refused as error:
                refused.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(answered) + len(refused) == 320
    assert all(rows == [(42,)] for rows in answered)
    check_empty(session)
    blocking = busy(session)
    waiting = [session.submit(spin(0.1)) for _ in range(20)]
    with pytest.raises(Refused, match="20 queries are waiting"):
        session.submit(spin(0.1))
    blocking.cancel()
    assert all(handle.wait(30) for handle in waiting)


# --- the wait that is to be expected -----------------------------------------------------------


def test_a_wait_that_is_too_long_is_refused_until_it_is_shorter(open_session):
    session = open_session(limits={"wait": "100 ms"})
    session.sql(spin(5)).fetchall()  # how long its like take is known from now on
    blocking = busy(session)
    handles: list[Handle] = []
    with pytest.raises(Refused, match=r"the session: a wait of about .* the limit is") as caught:
        handles.extend(session.submit(spin(5)) for _ in range(1000))
    assert caught.value.retry_after_s is not None
    assert caught.value.retry_after_s > 0
    blocking.cancel()
    for handle in handles:
        assert handle.result(60).fetchall()[0][1] == spun(5)
        assert handle.wait(30)
    assert session.sql("SELECT 1").fetchall() == [(1,)]
    check_empty(session)


def test_a_tenant_may_have_a_shorter_wait_than_others(open_session):
    session = open_session(tenants={"web": {"limits": {"wait": 0.001}}})
    session.sql(spin(5), tenant="lab").fetchall()
    blocking = busy(session, tenant="lab")
    handles = [session.submit(spin(5), tenant="lab") for _ in range(5)]
    with pytest.raises(Refused, match="tenant 'web': a wait"):
        session.submit(spin(5), tenant="web")
    handles.append(session.submit(spin(5), tenant="lab"))
    blocking.cancel()
    assert all(handle.wait(60) for handle in handles)


def test_the_flood_of_one_tenant_is_not_the_wait_of_another(open_session):
    session = open_session(profile="marshal", tenants={"web": {"limits": {"wait": "1 s"}}})
    session.sql(spin(5), tenant="lab").fetchall()
    blocking = busy(session, tenant="lab")
    session.sql("SELECT 1", tenant="web").fetchall()
    flood = [session.submit(spin(5), tenant="lab") for _ in range(200)]
    # Tenants take turns: its turn comes soon, however many of the other wait.
    assert session.sql("SELECT 1", tenant="web").fetchall() == [(1,)]
    blocking.cancel()
    for handle in flood:
        handle.cancel()


# --- the memory of one query -------------------------------------------------------------------


def test_more_memory_than_the_limit_is_refused(open_session):
    session = open_session(limits={"memory": "200 MB"})
    with pytest.raises(Refused, match=r"the session.*300 MB.*200 MB.*memory=") as caught:
        session.submit("SELECT 1", memory="300 MB")
    assert caught.value.retry_after_s is None
    assert session.sql("SELECT 1", memory="200 MB").fetchall() == [(1,)]


def test_the_memory_of_a_tenant_is_limited_by_those_above_it(open_session):
    tenants = {"sales": {"limits": {"memory": "150 MB"}, "tenants": {"emea": {}}}}
    session = open_session(tenants=tenants)
    with pytest.raises(Refused, match="tenant 'sales'"):
        session.submit("SELECT 1", memory="151 MB", tenant="sales/emea")
    assert session.sql("SELECT 1", memory="151 MB", tenant="lab").fetchall() == [(1,)]


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_a_query_that_names_no_memory_reserves_no_more_than_its_limit(open_session, plan):
    session = open_session(tenants={"web": {"limits": {"memory": "100 MB"}}})
    blocking = busy(session)
    sql = "SELECT words, count(*) FROM facts GROUP BY words"
    handle = session.submit(sql, tenant="web", plan=plan)
    ticket = handle._ticket
    wait_until(lambda: ticket.facts.memory_bytes > 0, 30.0)
    assert ticket.facts.memory_bytes <= 100_000_000
    blocking.cancel()
    assert len(handle.result(60).fetchall()) == 5000


# --- afterwards --------------------------------------------------------------------------------


def test_refused_queries_are_in_the_history(data, tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(
        data, slots=1, profile="fifo", history=file, limits={"waiting": 1, "memory": "1 GB"}
    ) as session:
        blocking = busy(session)
        waiting = session.submit(spin(0.1), tenant="web")
        with pytest.raises(Refused):
            session.submit("SELECT 'too many'", tenant="web", priority=2)
        with pytest.raises(Refused):
            session.submit("SELECT 'too large'", memory="1.5 GB")
        blocking.cancel()
        assert waiting.wait(30)
    with HistoryReader(file) as reader:
        found = {record.sql: record for record in reader.queries()}
    many = found["SELECT 'too many'"]
    assert (many.outcome, many.tenant, many.priority) == ("refused", "web", 2)
    assert "1 query is waiting" in many.error
    assert "limit is" in found["SELECT 'too large'"].error
    assert sorted(record.outcome for record in found.values()) == [
        "cancelled",
        "finished",
        "refused",
        "refused",
    ]


def test_queries_that_find_a_free_slot_do_not_wait(open_session):
    session = open_session(slots=2, limits={"waiting": 1})
    for _ in range(20):
        both = [session.submit("SELECT 1"), session.submit("SELECT 2")]
        assert [handle.result(30).fetchall() for handle in both] == [[(1,)], [(2,)]]
        assert all(handle.wait(30) for handle in both)
    check_empty(session)


def test_tenants_that_have_left_are_not_counted_any_more():
    gate = Gate(Limits(), {}, 2)
    inside = [
        SimpleNamespace(
            id=str(place),
            request=QueryRequest("", (), (), "native", tenant=f"sales/{place}"),
            expected_s=1.0,
        )
        for place in range(3)
    ]
    for admitted in inside:
        gate.enter(admitted)
    gate.started(inside[0])
    for admitted in inside:
        gate.left(admitted)
    assert gate.empty
    assert not gate._waiting
