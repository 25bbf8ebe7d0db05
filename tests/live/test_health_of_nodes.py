"""A node at which queries fail that succeed elsewhere gets no work for a while."""

from __future__ import annotations

import pytest

from queryard.core.model import Node
from queryard.core.nodes import NodeState
from queryard.core.state import State
from queryard.live.coordinating.health import MOST_FAILED, REST_S, NodeHealth


@pytest.fixture
def state() -> State:
    state = State()
    for name in "abc":
        state.nodes[name] = NodeState(Node(name, 1))
    state.total_slots = 3
    return state


@pytest.fixture
def health(state: State) -> NodeHealth:
    health = NodeHealth(state)
    for name in "abc":
        health.joined(name)
    return health


def retried(health: NodeHealth, query: str, failed: str = "a", now: float = 0.0) -> list[str]:
    """A query fails at a node and succeeds at another one."""
    health.failed(query, failed, f"disk full under {query}")
    return health.succeeded(query, "b" if failed != "b" else "c", (failed,), now)


def test_after_some_different_queries_a_node_rests_and_says_why(health):
    for number in range(MOST_FAILED - 1):
        assert retried(health, f"q{number}") == []
    assert retried(health, "last") == ["a"]
    assert health.resting("a", 10.0) == (
        "for 50 s: queries failed there, and succeeded elsewhere; the last with: disk full under "
        "last"
    )
    assert health.resting("b", 10.0) == ""


def test_the_failures_of_one_query_count_once(health):
    assert all(retried(health, "q") == [] for _ in range(3 * MOST_FAILED))


def test_success_at_the_node_in_between_clears_it(health):
    for number in range(5 * MOST_FAILED):
        assert retried(health, f"q{number}") == []
        if number % 2:
            health.succeeded("other", "a", (), 0.0)


def test_what_fails_everywhere_says_nothing_of_a_node(health):
    for number in range(5 * MOST_FAILED):
        for node in "abc":
            health.failed(f"q{number}", node, "no such file")
        health.forget(f"q{number}")
    assert health.resting("a", 0.0) == ""


def test_it_works_again_after_a_while_and_one_more_failure_is_too_many(health):
    for number in range(MOST_FAILED):
        retried(health, f"q{number}")
    assert health.rested(REST_S / 2) == []
    assert health.rested(REST_S) == ["a"]
    assert retried(health, "another", now=REST_S) == ["a"]


def test_a_node_that_does_not_answer_either_gets_no_work_after_its_rest(health):
    for number in range(MOST_FAILED):
        retried(health, f"q{number}")
    assert health.heard("a", True)
    assert health.rested(REST_S) == []
    assert not health.heard("a", False)


def test_a_node_that_answers_again_rests_on(health):
    for number in range(MOST_FAILED):
        retried(health, f"q{number}")
    health.heard("a", True)
    assert health.heard("a", False)


def test_the_last_node_that_takes_work_does_not_rest(health, state):
    state.nodes["b"].draining = state.nodes["c"].draining = True
    for number in range(2 * MOST_FAILED):
        assert retried(health, f"q{number}") == []


def test_if_no_other_node_is_left_all_work_again(health, state):
    for number in range(MOST_FAILED):
        retried(health, f"q{number}")
    state.total_slots = 0
    assert health.rested(1.0) == ["a"]


def test_a_node_that_is_lost_comes_back_healthy(health):
    for number in range(MOST_FAILED):
        retried(health, f"q{number}")
    health.lost("a")
    assert retried(health, "late") == []
    health.joined("a")
    assert health.resting("a", 0.0) == ""
    assert retried(health, "later") == []
