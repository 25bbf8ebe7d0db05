"""+X, -X, DLX and MaxBSD (POSUM Table 4.1)."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.core.entities import QueryState
from queryard.core.model import Job, Node, Phase, Query
from queryard.core.nodes import NodeState
from queryard.core.state import State
from queryard.policies.provisioning.dlx import MeetDeadlines
from queryard.policies.provisioning.maxbsd import BoundSlowdown

LONG = [("work", 10, 20.0)]


def with_rule(**rule: object) -> dict[str, object]:
    return {"order": "fifo", "provisioning": rule}


def cluster(*queries: tuple[float, float, float | None], nodes: int = 2) -> State:
    """Nodes of four slots; queries of (submitted, core-seconds, deadline)."""
    state = State()
    for number in range(nodes):
        state.nodes[f"n{number}"] = NodeState(Node(f"n{number}", 4))
    for uid, (submit_s, work_s, deadline_s) in enumerate(queries):
        spec = Query(f"q{uid}", (Job("j", map=Phase(1)),), deadline_s=deadline_s)
        query = state.queries[spec.id] = QueryState(uid, spec, submit_s)
        query.total_s = query.left_s = work_s
    return state


def test_plus_x_adds_nodes_every_period_up_to_the_maximum():
    yard = Yard(with_rule(name="+x", x=2, period_s=30.0, maximum=7), "2x1")
    yard.submit("q", LONG).run()
    assert yard.ends == {"q": 100.0}
    assert yard.scales == [(0.0, 4), (30.0, 6), (60.0, 7)]


def test_minus_x_takes_nodes_away_down_to_the_minimum_and_loses_no_work():
    yard = Yard(with_rule(name="-x", x=1, period_s=30.0, minimum=2), "4x1")
    yard.submit("q", [("work", 12, 20.0)]).run()
    assert yard.scales == [(0.0, 3), (30.0, 2)]
    assert list(yard.ends) == ["q"]
    assert len(yard.state.nodes) == 2


def test_dlx_meets_every_deadline_in_turn():
    # 400 core-seconds due in 50 s need 8 slots, 200 more in 100 s only 6: two nodes of four.
    state = cluster((0.0, 400.0, 50.0), (0.0, 200.0, 100.0), (0.0, 9e9, None))
    assert MeetDeadlines().wanted(state) == 2
    state.queries["q1"].left_s = 500.0
    assert MeetDeadlines().wanted(state) == 3


def test_dlx_counts_what_is_late_as_due_at_the_next_tick():
    state = cluster((0.0, 1200.0, 10.0))
    state.now = 50.0
    assert MeetDeadlines(period_s=30.0).wanted(state) == 10


def test_dlx_asks_once_a_period():
    yard = Yard(with_rule(name="dlx", period_s=10.0, maximum=8), "1x1")
    yard.submit("q", [("work", 8, 5.0)], deadline_s=20.0).run()
    # 40 core-seconds in 20 s; no node is added, so 30 in 10 s; then what is left is late.
    assert yard.scales == [(0.0, 2), (10.0, 3), (20.0, 2), (30.0, 1)]


def test_dlx_lets_nodes_go_when_all_is_done():
    yard = Yard(with_rule(name="dlx", period_s=10.0), "2x1")
    yard.submit("q", [("work", 15, 1.0)], deadline_s=10.0).run()
    assert yard.ends == {"q": 8.0}
    assert yard.scales == [(0.0, 2), (10.0, 1)]
    assert len(yard.state.nodes) == 1


def test_maxbsd_turns_the_slowdown_into_a_latest_end():
    # 400 core-seconds at a slowdown of at most 0.25: done 100 s after submission, on 4 slots.
    state = cluster((0.0, 400.0, None))
    assert BoundSlowdown(max_slowdown=0.25).wanted(state) == 1
    assert BoundSlowdown(max_slowdown=0.125).wanted(state) == 2
    state.now = 50.0
    assert BoundSlowdown(max_slowdown=0.25).wanted(state) == 2


def test_maxbsd_bounds_the_work_of_tiny_queries_from_below():
    state = cluster((0.0, 0.001, None))
    assert BoundSlowdown(max_slowdown=0.5, min_e_s=100.0).wanted(state) == 1


@pytest.mark.parametrize("name", ["+x", "-x", "dlx", "maxbsd"])
def test_an_idle_cluster_asks_for_no_wake(name: str):
    yard = Yard(with_rule(name=name, period_s=1.0), "2x1")
    yard.submit("q", [("work", 4, 3.0)]).run(1000.0)
    assert not yard._events
    assert list(yard.ends) == ["q"]
