"""Online queries in rounds: all have a first answer after one."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core.events import AnswerReported
from queryard.core.model import Divisible, Job, Node, Query, Split, Table
from queryard.policies import resolve_profile
from queryard.sim import Conditions, replay, simulate
from queryard.workload.model import Arrival, JobTruth, Workload
from queryard.workload.scan_costs import with_scan_costs

TABLE = Table("t", tuple(Split() for _ in range(10)))


def answers(profile: Any, kind: str = "", queries: int = 4) -> list[tuple[float, str]]:
    """(time, query) of every answer; a batch takes a second."""
    job = Job("j", scans=("t",), divisible=Divisible(1, 10, span="cluster"))
    truth = JobTruth(work_s=10.0)
    if kind:
        truth = with_scan_costs(truth, kind)
    arrivals = tuple(
        Arrival(Query(f"q{i}", (job,), kind="online"), {"j": truth}) for i in range(queries)
    )
    conditions = Conditions(segment_cache_bytes=1e9)
    found = simulate(
        Workload("w", arrivals, (TABLE,)), [Node("n", 1)], profile, conditions=conditions
    )
    assert replay(found.journal) is None
    return [
        (event.time_s, event.job[:2])
        for step in found.journal.steps
        for event in step.events
        if isinstance(event, AnswerReported)
    ]


def test_all_have_a_first_answer_after_one_round():
    found = answers("online-rounds")
    assert [query for _, query in found[:4]] == ["q0", "q1", "q2", "q3"]
    assert found[3][0] == pytest.approx(4.0)
    assert found[-1][0] == pytest.approx(40.0)


def test_in_rounds_riders_parse_each_part_once():
    together = answers("online-rounds", "text")
    apart = answers({**resolve_profile("online-rounds"), "sharing": "none"}, "text")
    assert together[-1][0] == pytest.approx(24.4 + 4 * 0.4)
    assert apart[-1][0] == pytest.approx(40.0)


def test_narrow_columns_are_not_parsed_together():
    assert answers("online-rounds", "narrow", 8)[-1][0] == pytest.approx(80.0)
