"""Statements that sprint have the answers of all others, and lose nothing if they are stopped."""

from __future__ import annotations

import random
import time

import pytest
from long_forms import one_each, some_of
from waiting import wait_until

from engine.native_driving import MIB, Bench, Slots, check_same, collect, plain
from engine.test_random_widths import FAILING, QUERIES, expected
from queryard.engine import statement
from queryard.engine.errors import QueryCancelled, QueryFailed
from queryard.results.streams import ResultStream

LONG = "SELECT sum(sin(a.amount + b.amount)) FROM facts a, facts b"


@pytest.fixture(scope="module")
def shared(facts, tmp_path_factory):
    made = Bench(facts, tmp_path_factory.mktemp("temp"))
    yield made
    made.close()


@pytest.fixture
def bench(shared):
    yield shared
    shared.check_idle()


def run(bench: Bench, sql: str, width: int = 2, **options):
    query = bench.query(sql, sprints=True, **options)
    slots = Slots(query).widen(width)
    try:
        return collect(query)
    finally:
        slots.close()


@pytest.mark.parametrize(("name", "sprint_s"), one_each(list(QUERIES), [60.0, 0.01, 0.0]))
def test_answers_however_long_it_may_sprint(bench, name, sprint_s, monkeypatch):
    monkeypatch.setattr(statement, "SPRINT_S", sprint_s)
    check_same(run(bench, QUERIES[name]), expected(bench, name))


@pytest.mark.parametrize("seed", some_of(range(20), 8))
def test_slots_come_and_go_during_a_sprint(bench, seed, monkeypatch):
    draw = random.Random(seed)
    monkeypatch.setattr(statement, "SPRINT_S", draw.choice([0.0, 0.02, 0.05, 60.0]))
    name = draw.choice(list(QUERIES))
    query = bench.query(QUERIES[name], sprints=True, output=ResultStream())
    slots = Slots(query).widen(draw.choice([1, 2]))
    for _ in range(12):
        time.sleep(draw.choice([0.0, 0.002, 0.01]))
        if not query.ended:
            slots.set_width(draw.randint(0, 3))
    if not query.ended:
        slots.set_width(2)
    answer = collect(query)
    slots.close()
    check_same(answer, expected(bench, name))


@pytest.mark.parametrize("name", FAILING)
def test_an_error_is_told_and_nothing_begun_again(bench, name):
    sql, text = FAILING[name]
    with pytest.raises(QueryFailed, match=text):
        run(bench, sql)


def test_a_table_that_is_not_there(bench):
    with pytest.raises(QueryFailed, match="nowhere does not exist"):
        run(bench, "SELECT * FROM nowhere")


def test_a_statement_with_a_revoked_slot_does_not_sprint_on(bench, monkeypatch):
    monkeypatch.setattr(statement, "SPRINT_S", 600.0)
    query = bench.query(LONG, sprints=True)
    slots = Slots(query).widen(1)
    wait_until(lambda: query.sprinting)
    (thread,) = slots.narrow(1)
    wait_until(lambda: not thread.is_alive(), what="the slot")
    assert not query.sprinting
    query.cancel()
    slots.widen(1)
    slots.close()


def test_one_that_goes_on_for_ever_becomes_like_all_others(bench, monkeypatch):
    """Afterwards its slots can be revoked."""
    monkeypatch.setattr(statement, "SPRINT_S", 0.02)
    query = bench.query(LONG, sprints=True)
    slots = Slots(query).widen(2)
    wait_until(lambda: query.sprinting)
    wait_until(lambda: not query.sprinting and query.computes)
    for thread in slots.narrow(2):
        thread.join(10.0)
        assert not thread.is_alive()
    query.cancel()
    slots.widen(1)
    slots.close()


@pytest.mark.parametrize("wait_s", [0.0, 0.001, 0.005, 0.03])
def test_cancelled_at_any_moment(bench, wait_s, monkeypatch):
    monkeypatch.setattr(statement, "SPRINT_S", 60.0)
    query = bench.query(LONG, sprints=True)
    slots = Slots(query).widen(2)
    time.sleep(wait_s)
    query.cancel()
    began = time.monotonic()
    slots.close()
    assert time.monotonic() - began < 10.0
    with pytest.raises(QueryCancelled):
        collect(query)


def test_too_many_rows_to_hold_are_streamed(bench):
    """A sprint keeps its whole result in memory; without, a few rows at a time are enough."""
    sql = "SELECT id, repeat(words, 40) AS much FROM facts"
    answer = run(bench, sql, memory_bytes=40 * MIB)
    assert answer.nbytes > 4 * 40 * MIB
    assert answer.num_rows == plain(bench.where, "SELECT id FROM facts").num_rows


def test_parameters_and_scripts_do_not_sprint(bench):
    assert bench.query("SELECT 1; SELECT 2", sprints=True)._sprints is False
    assert bench.query("SELECT $1", [1], sprints=True)._sprints is False
    assert bench.query("SELECT 1", sprints=True)._sprints is True
