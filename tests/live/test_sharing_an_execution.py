"""Queries that share an execution: it is as urgent as the most urgent; each may leave it."""

from __future__ import annotations

import gc
import threading
import time

import pytest
from engine.native_driving import check_same, plain, write_facts
from waiting import turns_until, wait_until

import queryard
from queryard.engine.errors import QueryCancelled, QueryTimedOut

from .crowds import (
    ENDLESS,
    HEAVY,
    busy,
    check_empty,
    check_kernel,
    kernel,
    runs,
    sessions,
    spin,
    spun,
)


@pytest.fixture
def open_session(data, tmp_path):
    with sessions(data, tmp_path / "temp", slots=2, memory="2 GB", history=False) as make:
        yield make


@pytest.fixture
def qy(open_session):
    return open_session()


# --- which query is served next ----------------------------------------------------------------


@pytest.mark.parametrize("profile", ["priority", "marshal"])
def test_a_shared_execution_is_as_urgent_as_its_most_urgent_query(open_session, profile):
    session = open_session(slots=1, profile=profile)
    flood = [session.submit(ENDLESS + f" AND i <> {i}", priority=5) for i in range(3)]
    wait_until(lambda: session.report().running > 0, 30.0)
    humble = session.submit(spin(1), priority=0)
    time.sleep(0.1)
    assert humble.status == "waiting"
    urgent = session.submit(humble.sql, priority=10)
    assert runs(humble, urgent) == 1
    for handle in (urgent, humble):
        assert handle.result(60).fetchall()[0][1] == spun(1)
        assert handle.wait(60)
    assert not any(handle.ended for handle in flood)
    for handle in flood:
        handle.cancel()
    check_empty(session)


def test_a_twin_in_a_tenant_with_a_share_brings_its_slots(open_session):
    tenants = {"poor": {"weight": 0.001}, "rich": {"guarantee": 0.5}}
    session = open_session(profile="fifo", tenants=tenants)
    flood = [session.submit(ENDLESS + f" AND i <> {i}", tenant="flood") for i in range(4)]
    wait_until(lambda: session.report().running > 0, 30.0)
    poor = session.submit(spin(1), tenant="poor")
    rich = session.submit(poor.sql, tenant="rich")
    assert runs(poor, rich) == 1
    assert rich.result(60).fetchall() == poor.result(60).fetchall()
    assert poor.wait(60)
    check_kernel(session)
    for handle in flood:
        handle.cancel()
    check_empty(session)


# --- leaving -----------------------------------------------------------------------------------


@pytest.mark.parametrize("leaver", [0, 1, 2])
def test_one_may_leave_and_the_others_get_their_answer(qy, data, leaver):
    handles = [qy.submit(HEAVY) for _ in range(3)]
    wait_until(lambda: handles[0].status == "running", 30.0)
    handles[leaver].cancel()
    assert handles[leaver].wait(30)
    assert handles[leaver].status == "cancelled"
    with pytest.raises(QueryCancelled):
        handles[leaver].result(30)
    check_kernel(qy)
    expected = plain(data, HEAVY)
    for place, handle in enumerate(handles):
        if place != leaver:
            check_same(handle.result(60).arrow(), expected, ordered=True)
            assert handle.wait(60)
            assert handle.error is None
    check_empty(qy)


def test_one_may_leave_before_the_run_begins(qy):
    blocking = busy(qy, priority=9)
    handles = [qy.submit(HEAVY) for _ in range(3)]
    handles[0].cancel()
    assert handles[0].wait(30)
    check_kernel(qy)
    blocking.cancel()
    assert handles[1].result(60).arrow() == handles[2].result(60).arrow()
    check_empty(qy)


def test_when_all_leave_nothing_is_left(qy):
    for _ in range(5):
        first = busy(qy)
        handles = [first, *(qy.submit(ENDLESS) for _ in range(3))]
        assert runs(*handles) == 1
        for handle in handles:
            handle.cancel()
        for handle in handles:
            assert handle.wait(30)
            assert handle.status == "cancelled"
    check_empty(qy)


def test_the_memory_stays_reserved_when_its_holder_leaves(open_session):
    session = open_session(slots=1, memory="1 GB", profile="fifo")
    most = session.client.pool_bytes
    first = session.submit(ENDLESS, memory=most)
    wait_until(lambda: first.status == "running", 30.0)
    sharer = session.submit(ENDLESS, memory=most)
    other = session.submit(spin(1), memory=most)
    assert runs(first, sharer) == 1
    first.cancel()
    assert first.wait(30)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        check_kernel(session)
        assert kernel(session, lambda k: k.state.reserved_bytes) <= most
        assert not other.ended
        time.sleep(0.005)
    sharer.cancel()
    assert other.result(30).fetchall()[0][1] == spun(1)
    check_empty(session)


def test_the_memory_stays_reserved_for_a_twin_that_has_no_turn(open_session):
    session = open_session(slots=1, memory="1 GB", profile="priority")
    most = session.client.pool_bytes
    first = session.submit(ENDLESS, memory=most, priority=5)
    wait_until(lambda: first.status == "running", 30.0)
    sharer = session.submit(ENDLESS, memory=most, priority=0)
    other = session.submit(spin(1), memory=most, priority=1)
    first.cancel()
    assert first.wait(30)
    deadline = time.monotonic() + 0.5
    while time.monotonic() < deadline:
        # The execution of the identical query has begun, and holds its memory until it ends.
        check_kernel(session)
        time.sleep(0.005)
    sharer.cancel()
    assert other.result(30).fetchall()[0][1] == spun(1)
    check_empty(session)


def test_a_crowd_that_comes_and_goes_leaves_nothing(open_session):
    session = open_session(memory="1 GB")
    wrong: list[BaseException] = []

    def come_and_go(seed: int) -> None:
        for step in range(12):
            handle = session.submit(HEAVY, tenant=f"t{seed % 3}", priority=seed % 2)
            try:
                if (seed + step) % 3 == 0:
                    time.sleep(0.003 * seed)
                    handle.cancel()
                    assert handle.wait(60)
                else:
                    assert handle.result(60).arrow().num_rows == 1000
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=come_and_go, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for _ in turns_until(lambda: not any(thread.is_alive() for thread in threads)):
        check_kernel(session)
        time.sleep(0.005)
    assert not wrong
    check_empty(session)


def test_a_handle_without_references_leaves_the_other_queries(qy, data):
    keep = [qy.submit(HEAVY) for _ in range(2)]
    for _ in range(3):
        qy.submit(HEAVY)
    gc.collect()
    wait_until(lambda: len(qy.queries()) <= 2, 30.0, "the end of the query without a handle")
    expected = plain(data, HEAVY)
    for handle in keep:
        check_same(handle.result(60).arrow(), expected, ordered=True)
    check_empty(qy)


def test_the_first_may_be_forgotten(qy):
    first = qy.submit(HEAVY)
    second = qy.submit(HEAVY)
    del first
    gc.collect()
    assert second.result(60).arrow().num_rows == 1000
    check_empty(qy)


def test_a_time_limit_ends_one_of_them_only(qy):
    first = qy.submit(ENDLESS, time_limit="200 ms")
    second = qy.submit(ENDLESS)
    assert runs(first, second) == 1
    with pytest.raises(QueryTimedOut, match="200 ms"):
        first.result(30)
    assert first.wait(30)
    assert second.status == "running"
    second.cancel()
    assert second.wait(30)
    check_empty(qy)


def test_all_may_have_time_limits(qy):
    handles = [qy.submit(ENDLESS, time_limit=0.1 + 0.02 * i) for i in range(5)]
    assert runs(*handles) == 1
    for handle in handles:
        with pytest.raises(QueryTimedOut):
            handle.result(30)
    check_empty(qy)


# --- readers -----------------------------------------------------------------------------------


def test_a_slow_reader_does_not_hold_up_the_others(qy):
    wide = "SELECT i, hash(i) AS h, hash(i, 1) AS g FROM range(6000000) AS r(i)"
    slow, fast = qy.submit(wide), qy.submit(wide)
    assert runs(slow, fast) == 1
    assert sum(batch.num_rows for batch in fast.result(60).batches()) == 6_000_000
    assert fast.wait(60)
    assert slow.wait(60)  # none of its rows was read, and it has ended all the same
    assert sum(batch.num_rows for batch in slow.result(60).batches()) == 6_000_000
    check_empty(qy)


def test_a_query_with_a_slow_reader_continues_for_an_identical_query(open_session):
    # The rows so far are few, and the buffer is full.
    session = open_session()
    wide = "SELECT i, hash(i) AS h FROM range(4000000) AS r(i)"
    first = session.submit(wide)
    first._ticket.output._limit_bytes = 1 << 20
    wait_until(lambda: first._ticket.output.full, 30.0, "a full buffer")
    time.sleep(0.1)
    late = session.submit(wide)
    assert sum(batch.num_rows for batch in late.result(60).batches()) == 4_000_000
    assert late.wait(60)
    assert sum(batch.num_rows for batch in first.result(60).batches()) == 4_000_000
    check_empty(session)


def test_an_answer_that_is_closed_early_leaves_the_others(qy):
    wide = "SELECT i, hash(i) AS h FROM range(5000000) AS r(i)"
    first, second = qy.submit(wide), qy.submit(wide)
    first.result(60).close()
    assert first.wait(60)
    assert sum(batch.num_rows for batch in second.result(60).batches()) == 5_000_000
    check_empty(qy)


def test_the_session_may_close_while_a_run_is_shared(data, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    write_facts(folder, 1000)
    session = queryard.connect(folder, slots=2, memory="1 GB", history=False)
    handles = [session.submit(ENDLESS) for _ in range(4)]
    wait_until(lambda: handles[0].status == "running", 30.0)
    session.close()
    for handle in handles:
        assert handle.wait(10)
        with pytest.raises(QueryCancelled):
            handle.result(10)
