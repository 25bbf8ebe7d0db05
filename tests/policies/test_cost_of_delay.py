"""Whose waiting costs most: small queries, and deadlines that are about to be missed."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core.errors import InvalidProfile
from queryard.core.model import Job, Node, Phase, Query
from queryard.policies import compose
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload


def asked(name: str, tasks: int, at_s: float = 0.0, **query: Any) -> Arrival:
    """So many tasks of a second."""
    jobs = (Job("j", map=Phase(tasks)),)
    return Arrival(Query(name, jobs, submit_s=at_s, **query), {"j": JobTruth(map_s=1.0)})


def order_of(*arrivals: Arrival, **order: Any) -> list[str]:
    """Who ends first on one slot."""
    profile = {"order": {"name": "cost-of-delay", **order}}
    driver = build(Workload("w", arrivals), [Node("n", 1)], profile)
    driver.run()
    assert not driver.unfinished
    return sorted(driver.ends, key=lambda name: driver.ends[name])


def test_without_deadlines_small_queries_go_first() -> None:
    assert order_of(asked("a", 30), asked("b", 3), asked("c", 10)) == ["b", "c", "a"]


def test_what_is_almost_done_is_finished_first() -> None:
    """By size times what is left: 60 · 1 is less than 10 · 10, and 60 · 3 is more."""
    assert order_of(asked("large", 60), asked("small", 10, at_s=58.5)) == ["large", "small"]
    assert order_of(asked("large", 60), asked("small", 10, at_s=56.5)) == ["small", "large"]


def test_a_deadline_counts_once_it_would_be_missed() -> None:
    small = [asked(f"small{n}", 10) for n in range(10)]
    soon, late = asked("soon", 20, deadline_s=22.0), asked("late", 20, deadline_s=500.0)
    order = order_of(*small, soon, late)
    assert order[0] == "soon"
    assert order[-1] == "late"


def test_a_deadline_that_is_missed_a_little_does_not_hold_up_all_others() -> None:
    """Being ten seconds late costs 100; ten queries that wait for it cost more."""
    small = [asked(f"small{n}", 1) for n in range(10)]
    assert order_of(*small, asked("due", 100, deadline_s=101.0))[-1] == "due"
    hard = order_of(*small, asked("due", 100, deadline_s=101.0), violation=1000.0)
    assert hard[0] == "due"


def test_an_order_that_weighs_nothing_is_refused() -> None:
    with pytest.raises(InvalidProfile, match="violation"):
        compose({"order": {"name": "cost-of-delay", "violation": 0.0}})


def test_long_tasks_of_one_query_do_not_fill_all_slots() -> None:
    """Two queries of equal cost get half each, whichever came first; so slots come free soon."""
    long = Arrival(Query("long", (Job("j", map=Phase(10)),)), {"j": JobTruth(map_s=10.0)})
    short = Arrival(Query("short", (Job("j", map=Phase(100)),)), {"j": JobTruth(map_s=1.0)})
    profile = {"order": "cost-of-delay"}
    driver = build(Workload("w", (long, short)), [Node("n", 10)], profile)
    driver.run(until_s=0.0)
    slots = {query.id: query.slots for query in driver.scheduler.state.queries.values()}
    assert slots == {"long": 5, "short": 5}
