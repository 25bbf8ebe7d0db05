"""The three branches of QEF (TLS Alg. 1), and its load."""

from __future__ import annotations

from heapq import merge

import pytest

from queryard.core.entities import QueryState
from queryard.core.model import Job, Phase, Query
from queryard.core.state import State
from queryard.policies.orders.qef import EfficientFair

NOW = 100.0


def query(uid: int, slowdown: float, left_s: float) -> QueryState:
    """A query that has done half of its work and will be slowed by this much."""
    alone_s = 10.0
    # slowdown = (sojourn + alone · left / total) / alone
    sojourn_s = (slowdown - 0.5) * alone_s
    made = QueryState(uid, Query(f"q{uid}", (Job("j", map=Phase(1)),)), NOW - sojourn_s)
    made.alone_s, made.total_s, made.left_s = alone_s, 2 * left_s, left_s
    return made


def ranked(order: EfficientFair, queries: list[QueryState]) -> list[int]:
    state = State()
    state.now, state.total_slots = NOW, 10
    state.random.shuffle(queries)
    # As many stand in each of two lanes, and one does in both.
    lanes = (order.ranking(), order.ranking())
    order._arrive = lambda query: None  # the load stays what it is
    for number, each in enumerate(queries):
        for lane in {0, 1} if not number else {number % 2}:
            lanes[lane].put(each.uid, order.key(each, state))
    found = [uid for _, uid in merge(*(order.turns(lane, lanes, state) for lane in lanes))]
    keys = {uid: key for lane in lanes for uid, key in lane.keys.items()}
    now = {uid: order.key_now(key, lanes, state) for uid, key in keys.items()}
    assert list(dict.fromkeys(found)) == sorted(keys, key=lambda uid: (now[uid], uid))
    assert all(lane.is_sound and lane.fork().is_sound for lane in lanes)
    return list(dict.fromkeys(found))


def half_loaded(limit_slow: int = 3) -> EfficientFair:
    """An order that saw a load of 1/2, so that D = 2."""
    order = EfficientFair(window_s=1000.0, limit_slow=limit_slow)
    state = State()
    state.now, state.total_slots = NOW, 10
    past = QueryState(1_000, Query("past", (Job("j", map=Phase(1)),)), NOW - 50.0)
    past.total_s, past.alone_s = 5_000.0, 10.0
    order.key(past, state)
    assert order.threshold(state) == pytest.approx(2.0)
    return order


def test_first_branch_a_severely_slowed_query_goes_first_the_smallest_of_them():
    # D = 2: queries 3 and 4 are beyond 2D. The small query 1 must wait.
    queries = [query(1, 1.0, 5), query(2, 3.9, 8), query(3, 9.0, 90), query(4, 4.1, 70)]
    assert ranked(half_loaded(), queries) == [4, 3, 1, 2]


def test_second_branch_too_many_slow_queries_give_the_most_slowed_its_turn():
    queries = [query(1, 1.0, 5), *(query(uid, 1.8 + uid / 5, 10.0 * uid) for uid in (2, 3, 4, 5))]
    assert ranked(half_loaded(), queries) == [5, 4, 3, 2, 1]


def test_third_branch_as_many_as_the_limit_are_not_too_many():
    queries = [query(1, 1.0, 25), *(query(uid, 1.8 + uid / 5, 10.0 * uid) for uid in (2, 3, 4))]
    assert ranked(half_loaded(), queries) == [2, 1, 3, 4]
    assert ranked(half_loaded(limit_slow=2), queries) == [4, 3, 2, 1]


@pytest.mark.parametrize(("slowdown", "tier"), [(2.0, 2.0), (2.01, 1.0), (4.0, 1.0), (4.01, 0.0)])
def test_exactly_at_a_threshold_is_not_beyond_it(slowdown: float, tier: float):
    order = half_loaded(limit_slow=0)
    state = State()
    state.now, state.total_slots = NOW, 10
    ranking = order.ranking()
    order._arrive = lambda query: None
    ranking.put(1, order.key(query(1, slowdown, 10.0), state))
    assert order.key_now(ranking.keys[1], (ranking,), state)[0] == tier


def test_load_is_what_arrived_in_the_window_and_is_clamped():
    order = EfficientFair(window_s=100.0)
    state = State()
    state.total_slots = 10
    for uid, submit_s, work_s in ((1, 0.0, 400.0), (2, 50.0, 400.0)):
        state.now = submit_s
        arrived = QueryState(uid, Query(f"q{uid}", (Job("j", map=Phase(1)),)), submit_s)
        arrived.total_s, arrived.left_s, arrived.alone_s = work_s, work_s, 1.0
        order.key(arrived, state)
        order.key(arrived, state)  # looked at again: still one arrival
    assert order.threshold(state) == pytest.approx(1 / (1 - 0.8))
    state.now = 120.0
    assert order.threshold(state) == pytest.approx(1 / (1 - 0.4))
    order.key(arrived, state)
    assert order.threshold(state) == pytest.approx(1 / (1 - 0.4))
    state.now = 151.0
    assert order.threshold(state) == pytest.approx(1.0)
    arrived = QueryState(9, Query("q9", (Job("j", map=Phase(1)),)), 151.0)
    arrived.total_s = 1e9
    order.key(arrived, state)
    assert order.threshold(state) == pytest.approx(20.0)


def test_a_fork_sees_its_own_arrivals_only():
    order = half_loaded()
    twin = order.fork()
    state = State()
    state.now, state.total_slots = NOW, 10
    other = query(77, 1.0, 1_000.0)
    twin.key(other, state)
    assert order.threshold(state) == pytest.approx(2.0)
    assert twin.threshold(state) > 2.0
