"""SRTF's slot formula and deficit (POSUM §5.3.2)."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.entities import QueryState
from queryard.core.model import Job, Phase, Query
from queryard.core.state import State
from queryard.policies.orders.srtf import ShortestRemaining


def query(uid: int, total_s: float, left_s: float, slots: int, submit_s: float = 0.0) -> QueryState:
    made = QueryState(uid, Query(f"q{uid}", (Job("j", map=Phase(1)),)), submit_s)
    made.total_s, made.left_s, made.slots = total_s, left_s, slots
    return made


def deficits(queries: list[QueryState], slots: int, now: float) -> list[float]:
    state = State()
    state.total_slots, state.now = slots, now
    order = ShortestRemaining()
    keys = [order.key(each, state) for each in queries]
    return [order.key_now(key, (), state) for key in keys]


def test_desired_slots_are_in_inverse_proportion_to_remaining_work():
    # w = 10 and 30 on 4 slots: N = 1/10 + 1/30, s' = n / (w N) = 3 and 1. With s = 1 each,
    # nothing elapsed and W = w: σ = (w/1) / (w/4) = 4, Δ = 1 - 3·4 and 1 - 1·4.
    assert deficits([query(1, 10, 10, 1), query(2, 30, 30, 1)], 4, 0.0) == pytest.approx([-11, -3])


def test_without_a_slot_the_guard_assumes_one():
    assert deficits([query(1, 10, 10, 0), query(2, 30, 30, 0)], 4, 0.0) == pytest.approx([-12, -4])


def test_the_guard_grows_with_the_time_that_passed():
    # s' = 3 and 1 again; elapsed 5 s, W = 20 and 60, s = 2 and 2:
    # σ1 = (5 + 10/2) / (20/4) = 2, σ2 = (5 + 30/2) / (60/4) = 4/3.
    found = deficits([query(1, 20, 10, 2), query(2, 60, 30, 2)], 4, 5.0)
    assert found == pytest.approx([2 - 3 * 2, 2 - 1 * 4 / 3])
    # A long wait makes up for a large query: σ2 = (500 + 15) / 15.
    first, second = deficits([query(1, 20, 10, 2, 495.0), query(2, 60, 30, 2)], 4, 500.0)
    assert second < first


def test_free_slots_are_dealt_out_as_desired():
    yard = Yard("srtf", "1x4")
    yard.submit("small", [("work", 10, 1.0)]).submit("large", [("work", 30, 1.0)]).run(0.0)
    assert (yard.slots_of("small"), yard.slots_of("large")) == (3, 1)


def test_no_estimate_at_all_is_not_a_division_by_zero():
    assert len(deficits([query(1, 0, 0, 0), query(2, 30, 30, 0)], 4, 1.0)) == 2
    assert len(deficits([query(1, 0, 0, 0)], 0, 0.0)) == 1


def test_a_candidate_that_leaves_counts_no_more():
    state = State()
    state.total_slots = 4
    order = ShortestRemaining()
    for each in (query(1, 10, 10, 1), query(2, 30, 30, 1), query(3, 15, 15, 1)):
        key = order.key(each, state)
    alone = ShortestRemaining()
    alone.key(query(3, 15, 15, 1), state)
    order.left(1)
    twin = order.fork()
    order.left(2)
    assert order.key_now(key, (), state) == pytest.approx(alone.key_now(key, (), state))
    assert twin.key_now(key, (), state) > order.key_now(key, (), state)
