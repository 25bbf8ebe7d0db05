"""Orders of which the rule can be read off the order of the launches."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.entities import QueryState
from queryard.core.model import Job, Phase, Query
from queryard.core.state import State
from queryard.policies.orders.largest_slowdown import LargestSlowdown

ONE = [("work", 1, 10.0)]


def test_priority_passes_what_came_before_but_not_what_runs():
    yard = Yard("priority", "1x1")
    yard.submit("first", ONE, 0.0).submit("low", ONE, 1.0)
    yard.submit("high", ONE, 2.0, priority=5.0).submit("as-high", ONE, 3.0, priority=5.0)
    assert yard.run().order() == ["first", "high", "as-high", "low"]


def test_edf_puts_queries_without_a_deadline_last_in_order_of_submission():
    yard = Yard("edf", "1x1")
    yard.submit("running", ONE, 0.0)
    yard.submit("none-1", ONE, 1.0).submit("none-2", ONE, 2.0)
    yard.submit("late", ONE, 3.0, deadline_s=90.0).submit("soon", ONE, 4.0, deadline_s=60.0)
    assert yard.run().order() == ["running", "soon", "late", "none-1", "none-2"]


def test_swrd_counts_what_is_left_not_what_there_was():
    yard = Yard("swrd", "1x1")
    yard.submit("large", [("work", 4, 100.0)], 0.0)
    yard.submit("middle", [("work", 2, 100.0)], 150.0)
    # At 200 s both have 200 s left: the one submitted first goes on, and is ahead from then.
    assert yard.run().order() == ["large", "middle"]
    yard = Yard("swrd", "1x1")
    yard.submit("large", [("work", 4, 100.0)], 0.0).submit("small", [("work", 4, 10.0)], 150.0)
    assert yard.run().order() == ["large", "small", "large"]


def test_largest_slowdown_divides_the_time_since_submission_by_the_work():
    state = State()
    order = LargestSlowdown()
    small, large, tiny = (
        QueryState(uid, Query(f"q{uid}", (Job("j", map=Phase(1)),)), 0.0) for uid in (1, 2, 3)
    )
    small.total_s, large.total_s, tiny.total_s = 5.0, 100.0, 0.001
    state.now = 10.0
    keys = [order.key(query, state) for query in (small, large, tiny)]
    assert [-order.key_now(key, (), state) for key in keys] == pytest.approx([2.0, 0.1, 10.0])


def test_largest_slowdown_lets_a_small_query_overtake_with_time():
    yard = Yard("largest-slowdown", "1x1")
    yard.submit("old", [("work", 3, 40.0)], 0.0).submit("new", [("work", 1, 10.0)], 35.0)
    # At 40 s: old 40/120, new 5/10.
    assert yard.run().order() == ["old", "new", "old"]


def test_slowdowns_are_compared_at_the_time_of_the_decision():
    """Whenever a query was last looked at."""
    state = State()
    order = LargestSlowdown()
    ranking = order.ranking()
    for uid, submit_s, total_s in ((1, 0.0, 10.0), (2, 9.0, 1.0)):
        query = QueryState(uid, Query("q", (Job("j", map=Phase(1)),)), submit_s)
        query.total_s = total_s
        state.now = submit_s
        ranking.put(uid, order.key(query, state))
    for state.now, first in ((9.5, 1), (11.0, 2)):
        assert next(iter(order.turns(ranking, (ranking,), state)))[1] == first
