"""Python's switch interval is shorter while queries run, and only then."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

import pytest
from waiting import wait_until

import queryard
from queryard.core.errors import QueryardError
from queryard.engine import gil_interval
from queryard.engine.gil_interval import INTERVAL_S

BEFORE_S = 0.007
LONG = "SELECT sum(hash(words, r)::HUGEINT), {} FROM facts, range(9999) t(r)"


@pytest.fixture(scope="module", autouse=True)
def others_have_ended() -> None:
    """Queries of other modules' sessions have ended, as far as they do.

    A cluster's node that other tests let die in this process leaves some that never end.
    """
    with contextlib.suppress(AssertionError):
        wait_until(lambda: gil_interval._users == 0, 5.0)


@pytest.fixture(autouse=True)
def own_interval() -> Iterator[None]:
    """A switch interval that only this test sets."""
    others, gil_interval._users = gil_interval._users, 0
    before = sys.getswitchinterval()
    sys.setswitchinterval(BEFORE_S + 5e-7)
    yield
    try:
        wait_until(is_back, 20.0, "the old interval")
    finally:
        sys.setswitchinterval(before)
        gil_interval._users += others


def is_now(interval_s: float) -> bool:
    return round(sys.getswitchinterval() * 1e6) == round(interval_s * 1e6)


def is_short() -> bool:
    return is_now(INTERVAL_S)


def is_back() -> bool:
    return is_now(BEFORE_S)


@pytest.fixture
def session(data) -> Iterator[queryard.Session]:
    with queryard.connect(data, slots=1, memory="2 GB", history=False) as made:
        yield made


def test_an_idle_session_leaves_the_interval_alone(session):
    assert is_back()


def test_turns_are_short_while_a_query_runs_or_waits(session):
    runs, waits = session.submit(LONG.format(1)), session.submit(LONG.format(2))
    assert is_short()
    runs.cancel()
    assert runs.wait(30.0)
    assert is_short()
    waits.cancel()
    assert waits.wait(30.0)
    wait_until(is_back, 5.0)


def test_a_query_that_fails_ends_them(session):
    with pytest.raises(QueryardError, match="my words"):
        session.sql("SELECT error('my words') FROM dims").fetchall()
    wait_until(is_back, 5.0)
    with pytest.raises(QueryardError, match="nowhere"):
        session.sql("SELECT * FROM nowhere").fetchall()
    wait_until(is_back, 5.0)


def test_what_never_begins_changes_nothing(data):
    limits = {"memory": "100 MB"}
    with queryard.connect(data, slots=1, history=False, limits=limits) as session:
        with pytest.raises(QueryardError):
            session.submit("SELEC 1")
        assert is_back()
        with pytest.raises(queryard.Refused):
            session.submit("SELECT 1", memory="200 MB")
        assert is_back()
        with pytest.raises(QueryardError):
            session.submit("SELECT 1", tenant="a//b")
        assert is_back()


def test_a_query_cancelled_in_the_queue_counts_once(session):
    first = session.submit(f"CREATE TEMP TABLE t AS {LONG.format('1 AS one')}")
    second = session.submit("FROM t")
    second.cancel()
    second.cancel()
    assert second.wait(30.0)
    assert is_short()
    first.cancel()
    assert first.wait(30.0)
    wait_until(is_back, 5.0)


def test_sessions_inside_each_other(data, session):
    outer = session.submit(LONG.format(1))
    with queryard.connect(data, slots=1, memory="2 GB", history=False) as inner:
        inner.sql("SELECT count(*) FROM dims").fetchall()
        assert is_short()
        inner.submit(LONG.format(2))
    assert is_short()
    outer.cancel()
    assert outer.wait(30.0)
    wait_until(is_back, 5.0)


def test_closing_ends_them(data):
    session = queryard.connect(data, slots=1, memory="2 GB", history=False)
    handles = [session.submit(LONG.format(n)) for n in range(5)]
    staged = session.submit("SELECT key, count(*) FROM facts GROUP BY key", plan="staged")
    assert is_short()
    session.close()
    assert is_back()
    assert all(handle.ended for handle in (*handles, staged))


def test_a_shorter_interval_of_the_program_is_kept(session):
    sys.setswitchinterval(INTERVAL_S / 5 + 5e-7)
    session.sql("SELECT count(*) FROM dims").fetchall()
    assert is_now(INTERVAL_S / 5)
    wait_until(lambda: gil_interval._users == 0, 5.0)
    assert is_now(INTERVAL_S / 5)
    sys.setswitchinterval(BEFORE_S + 5e-7)


@pytest.mark.parametrize("micros", [5000, 7000, 4999, 123, 10_001])
def test_the_interval_comes_back_exactly_however_often(micros):
    sys.setswitchinterval(micros * 1e-6 + 5e-7)
    for _ in range(100):
        gil_interval.begin()
        gil_interval.begin()
        gil_interval.end()
        gil_interval.end()
    assert is_now(micros * 1e-6)
    sys.setswitchinterval(BEFORE_S + 5e-7)


def test_many_threads_asking_leave_nothing_behind(session):
    def ask(start: int) -> None:
        for number in range(start, start + 15):
            session.sql(f"SELECT count(*) + {number} FROM dims").fetchall()

    threads = [threading.Thread(target=ask, args=(100 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(is_back, 10.0)
    assert gil_interval._users == 0
