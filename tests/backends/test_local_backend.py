"""The local backend carries out grants and revokes at any moment, and posts the outcomes."""

from __future__ import annotations

import queue
import random
import threading
import time

import pytest
from engine.native_driving import MIB, Bench, collect, plain, write_facts
from waiting import turns_until, wait_until

from queryard.backends.local import NODE, LocalBackend, nodes_of
from queryard.backends.protocol import Leased
from queryard.core.commands import Grant, Revoke
from queryard.core.events import LeaseEnded, WidthChanged

from .stubborn import AsGiven

LONG = "SELECT count(*), sum(hash(words, range)::HUGEINT) FROM facts, range(3000)"
MIDDLE = "SELECT key, sum(price) AS s, count(DISTINCT words) AS n FROM facts GROUP BY key"


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("facts")
    write_facts(folder)
    return folder


@pytest.fixture
def engine(facts, tmp_path):
    made = Bench(facts, tmp_path / "temp", 64 * MIB)
    yield made
    made.close()


@pytest.fixture
def events():
    return queue.SimpleQueue()


@pytest.fixture
def backend(events):
    made = LocalBackend(AsGiven(), nodes_of((2, 2), 1 << 30))
    made.start(events.put)
    yield made
    made.close()


def lease_ends(events, count: int) -> list[LeaseEnded]:
    """The next ends of leases, with other events left out."""
    found: list[LeaseEnded] = []
    while len(found) < count:
        event = events.get(timeout=30)
        if isinstance(event, LeaseEnded):
            found.append(event)
    return found


def add(backend, engine, name: str, sql: str, output=None):
    query = engine.query(sql, output=output)
    backend.add(name, Leased(name, 2, query.output, query))
    return query


def test_a_granted_query_finishes_on_every_slot(backend, engine, events):
    query = add(backend, engine, "q", MIDDLE)
    backend.execute(Grant("q/native", NODE, 2))
    assert collect(query).num_rows == 1000
    ends = lease_ends(events, 2)
    assert [(e.job, e.slots, e.outcome) for e in ends] == [("q/native", 1, "finished")] * 2
    backend.forget("q")


def test_a_revoked_slot_comes_back(backend, engine, events):
    query = add(backend, engine, "q", LONG)
    backend.execute(Grant("q/native", NODE, 2))
    time.sleep(0.05)
    backend.execute(Revoke("q/native", NODE, 1))
    assert [e.outcome for e in lease_ends(events, 1)] == ["revoked"]
    backend.execute(Revoke("q/native", NODE, 1))
    assert [e.outcome for e in lease_ends(events, 1)] == ["revoked"]
    assert not query.ended
    backend.execute(Grant("q/native", NODE, 2))
    time.sleep(0.02)
    query.cancel()
    assert {e.outcome for e in lease_ends(events, 2)} == {"failed"}
    backend.forget("q")


def test_every_slot_granted_is_told_back_once(backend, engine, events, facts):
    """However grants, revokes and the end fall together."""
    expected = plain(facts, MIDDLE).num_rows
    for seed in range(12):
        draw = random.Random(seed)
        query = add(backend, engine, f"q{seed}", MIDDLE)
        granted = held = told = 0
        for _ in turns_until(lambda query=query: query.ended):
            if draw.random() < 0.5 or held == 0:
                slots = draw.randint(1, 2)
                backend.execute(Grant(f"q{seed}/native", NODE, slots))
                granted += slots
                held += slots
            else:
                slots = draw.randint(1, held)
                backend.execute(Revoke(f"q{seed}/native", NODE, slots))
                held -= slots
            time.sleep(draw.choice((0, 0.001, 0.005)))
        assert collect(query).num_rows == expected
        told = len(lease_ends(events, granted))
        assert told == granted
        time.sleep(0.01)
        while True:
            try:
                event = events.get_nowait()
            except queue.Empty:
                break
            assert not isinstance(event, LeaseEnded)
        backend.forget(f"q{seed}")
    engine.check_idle()


def test_a_failing_query_says_why(backend, engine, events):
    query = add(backend, engine, "q", "SELECT error('my words') FROM facts")
    backend.execute(Grant("q/native", NODE, 2))
    ends = lease_ends(events, 2)
    assert {e.outcome for e in ends} == {"failed"}
    assert any("my words" in e.cause for e in ends)
    assert query.ended


def test_revoking_more_than_there_is_or_what_is_gone(backend, engine, events):
    query = add(backend, engine, "q", "SELECT 1 AS one")
    backend.execute(Revoke("q/native", NODE, 2))
    backend.execute(Grant("q/native", NODE, 1))
    assert collect(query).num_rows == 1
    lease_ends(events, 1)
    backend.execute(Revoke("q/native", NODE, 1))
    backend.forget("q")
    backend.execute(Revoke("q/native", NODE, 1))


def test_threads_are_used_again(backend, engine, events):
    for number in range(30):
        query = add(backend, engine, f"q{number}", "SELECT 1 AS one")
        backend.execute(Grant(f"q{number}/native", NODE, 2))
        collect(query)
        lease_ends(events, 2)
        backend.forget(f"q{number}")
    names = [t.name for t in threading.enumerate() if t.name.startswith("queryard-slot")]
    assert len(names) <= 4


def test_closing_with_work_under_way(engine, events):
    before = set(threading.enumerate())
    backend = LocalBackend(AsGiven(), nodes_of((2, 2), 1 << 30))
    backend.start(events.put)
    queries = [add(backend, engine, f"q{n}", LONG) for n in range(3)]
    for number in range(2):
        backend.execute(Grant(f"q{number}/native", NODE, 1))
    time.sleep(0.1)
    began = time.monotonic()
    backend.close()
    assert time.monotonic() - began < 5
    assert all(query.ended for query in queries)
    wait_until(lambda: not [t for t in threading.enumerate() if t not in before], 10.0, "the end")
    backend.close()


def test_a_query_of_a_moment_that_takes_longer_can_use_all_slots(backend, engine, events):
    query = engine.query(LONG)
    backend.add("q", Leased("q", 2, query.output, query, narrow=True))
    backend.execute(Grant("q/native", NODE, 1))
    while not isinstance(event := events.get(timeout=30), WidthChanged):
        pass
    assert (event.job, event.width) == ("q/native", 2)
    query.cancel()
    lease_ends(events, 1)
    backend.forget("q")
