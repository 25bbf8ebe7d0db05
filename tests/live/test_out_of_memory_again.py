"""A query with too small a guessed reservation runs again, and its reader does not notice."""

from __future__ import annotations

import gc
import time

import pytest
from engine.native_driving import check_same, plain
from long_forms import some_of
from waiting import turns_until, wait_until

import queryard
from queryard.engine.errors import OutOfMemory, QueryCancelled
from queryard.history import HistoryReader

from .crowds import busy, check_empty, check_kernel

# It needs more than 200 MB, which DuckDB cannot write to disk.
GREEDY = (
    "SELECT key, len(list(words || id)) AS n, sum(len(words)) AS s "
    "FROM facts, range(4) GROUP BY key"
)


@pytest.fixture
def guessed(monkeypatch):
    """Every first guess is much too low."""
    from queryard.live.admission.memory import Reservations

    real = Reservations.native
    given = []

    def too_low(self, request, prediction, most_bytes):
        chosen = real(self, request, prediction, most_bytes)
        if request.memory_bytes is None and "list(" in request.sql:
            chosen = chosen._replace(memory_bytes=48 << 20)
        given.append(chosen.memory_bytes)
        return chosen

    monkeypatch.setattr(Reservations, "native", too_low)
    return given


@pytest.fixture
def qy(data, tmp_path, guessed):
    with queryard.connect(
        data, slots=2, memory="3 GB", temp=tmp_path / "temp", history=tmp_path / "history.sqlite"
    ) as session:
        yield session


def test_the_query_needs_more_than_the_guess(qy):
    """Without this the other tests say nothing."""
    with pytest.raises(OutOfMemory):
        qy.sql(GREEDY, memory=48 << 20).arrow()


def test_its_user_sees_the_answer_and_nothing_else(qy, data, guessed, tmp_path):
    handle = qy.submit(GREEDY)
    seen = set()
    for _ in turns_until(lambda: handle.ended):
        seen.add(handle.status)
        assert handle.error is None
        time.sleep(0.001)
    check_same(handle.result(60).arrow(), plain(data, GREEDY))
    assert handle.status == "finished"
    assert seen <= {"waiting", "running", "finished"}
    assert len(guessed) == 2
    assert guessed[1] > 10 * guessed[0]
    check_empty(qy)
    qy.close()
    with HistoryReader(tmp_path / "history.sqlite") as reader:
        (record,) = reader.queries()
        assert record.outcome == "finished"


def test_all_queries_of_a_shared_execution_get_the_answer(qy, data, guessed):
    handles = [qy.submit(GREEDY, tenant=f"t{i % 2}") for i in range(5)]
    expected = plain(data, GREEDY)
    for handle in handles:
        check_same(handle.result(60).arrow(), expected)
        assert handle.wait(60)
        assert handle.status == "finished"
    assert len({handle._ticket.facts.shares_with or handle.id for handle in handles}) <= 2
    check_empty(qy)


def test_many_times(qy):
    for _ in range(3):
        handles = [qy.submit(GREEDY) for _ in range(3)]
        check_kernel(qy)
        for handle in handles:
            assert handle.result(60).arrow().num_rows == 1000
            assert handle.wait(60)
    check_empty(qy)


def test_who_gives_an_amount_is_told_that_it_is_too_little(qy, guessed):
    handle = qy.submit(GREEDY, memory=48 << 20)
    with pytest.raises(OutOfMemory):
        handle.result(60)
    assert handle.wait(60)
    assert handle.status == "failed"
    assert guessed == [48 << 20]
    check_empty(qy)


def test_queries_with_an_amount_do_not_disturb_those_without(qy):
    given = [qy.submit(GREEDY, memory=48 << 20) for _ in range(2)]
    free = [qy.submit(GREEDY) for _ in range(2)]
    for handle in given:
        with pytest.raises(OutOfMemory):
            handle.result(60)
    for handle in free:
        assert handle.result(60).arrow().num_rows == 1000
    check_empty(qy)


def test_a_limit_of_the_tenant_is_kept_to(data, tmp_path, guessed):
    tenants = {"small": {"limits": {"memory": "100 MB"}}}
    with queryard.connect(data, slots=2, memory="3 GB", history=False, tenants=tenants) as session:
        handle = session.submit(GREEDY, tenant="small")
        with pytest.raises(OutOfMemory):
            handle.result(60)
        assert handle.wait(60)
        assert max(guessed) <= 100_000_000
        check_empty(session)


def test_a_query_that_needs_more_than_there_is_fails_in_the_end(data, tmp_path, guessed):
    with queryard.connect(data, slots=2, memory="400 MB", history=False) as session:
        handle = session.submit(GREEDY.replace("range(4)", "range(40)"))
        with pytest.raises(OutOfMemory):
            handle.result(60)
        assert handle.wait(60)
        assert len(guessed) == 2
        check_empty(session)


@pytest.mark.parametrize("delay_s", some_of([0.0, 0.03, 0.1, 0.2], 2))
def test_it_may_be_cancelled_at_any_time(qy, delay_s):
    handles = [qy.submit(GREEDY) for _ in range(2)]
    time.sleep(delay_s)
    handles[0].cancel()
    assert handles[0].wait(30)
    assert handles[0].status in ("cancelled", "finished")
    assert handles[1].result(60).arrow().num_rows == 1000
    check_empty(qy)


def test_it_may_be_cancelled_between_the_two_runs(qy, monkeypatch):
    """After the first run has ended, and before the second begins."""
    ending = qy.host.ask(lambda coordinator: coordinator._ending)
    begin_again = ending._begin_again

    def cancelled_first(entry, memory_bytes):
        handle.cancel()
        begin_again(entry, memory_bytes)

    monkeypatch.setattr(ending, "_begin_again", cancelled_first)
    handle = qy.submit(GREEDY)
    assert handle.wait(30)
    assert handle.status == "cancelled"
    with pytest.raises(QueryCancelled):
        handle.result(30)
    monkeypatch.undo()
    check_empty(qy)


def test_no_reference_may_be_left_when_it_begins_again(qy):
    qy.submit(GREEDY)
    time.sleep(0.1)
    gc.collect()
    check_empty(qy)


def test_it_waits_for_memory_like_every_query(qy):
    blocking = busy(qy, memory=qy.client.pool_bytes - (100 << 20))
    handle = qy.submit(GREEDY)
    wait_until(lambda: handle._ticket.request.memory_bytes is not None, 30.0, "the second run")
    time.sleep(0.1)
    check_kernel(qy)
    assert not handle.ended
    blocking.cancel()
    assert handle.result(60).arrow().num_rows == 1000
    check_empty(qy)
