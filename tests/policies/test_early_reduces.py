"""Sub-jobs of circular scans with reduces of their own, which fold what each has left."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core import events as ev
from queryard.core.commands import Launch
from queryard.core.model import Job, Node, Phase, Query, Split, Table
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings
from queryard.policies import compose
from queryard.policies.effects import idle_in_sessions
from queryard.sim import Conditions, replay, simulate
from queryard.sim.run import SimResult
from queryard.workload.model import Arrival, JobTruth, Workload

TABLE = Table("t", tuple(Split() for _ in range(8)))
LAST, EARLY = ({"sharing": {"name": "circular", "reduces": when}} for when in ("last", "early"))
# Maps of 1 s on two slots; two reduces of 4 s have slots of their own.
NODES = [Node("n", 4)]
LANES = {"slots": {"name": "static", "maps": 2, "reduces": 2}}
JOB = Job("j", map=Phase(8), reduce=Phase(2), scans=("t",))
TRUTH = {"j": JobTruth(map_s=1.0, reduce_s=4.0)}


def run(sharing: Any, conditions: Conditions | None = None, jobs: int = 1) -> SimResult:
    arrivals = tuple(Arrival(Query(f"q{i}", (JOB,)), TRUTH) for i in range(jobs))
    workload = Workload("w", arrivals, (TABLE,))
    found = simulate(workload, NODES, LANES | sharing, conditions=conditions)
    assert replay(found.journal) is None
    return found


def reduces(found: SimResult) -> list[tuple[float, str]]:
    """(time, round) of every launch of the first reduce of the first job."""
    return [
        (step.time_s, command.round)
        for step in found.journal.steps
        for command in step.commands
        if isinstance(command, Launch) and str(command.tasks[0]) == "q0/j:r0"
    ]


def test_what_a_round_left_is_folded_while_the_next_is_read():
    found = run(EARLY)
    # The first round has four blocks, as four slots are free; two of them at a time are read.
    assert reduces(found) == [(2.0, "t#1"), (4.0, "")]
    assert found.ends == {"q0": 6.0}


def test_at_the_end_all_work_is_left_otherwise():
    found = run(LAST)
    assert reduces(found) == [(4.0, "")]
    assert found.ends == {"q0": 8.0}


def test_what_was_folded_may_cost_something_again():
    assert run(EARLY, Conditions(fold_cost=0.5)).ends == {"q0": 7.0}


def test_every_sub_job_pays_for_the_start_of_its_reduces():
    apart = sum(1 for _ in reduces(run(EARLY, Conditions(task_start_s=0.5))))
    assert apart > sum(1 for _ in reduces(run(LAST, Conditions(task_start_s=0.5))))


def test_a_fold_that_fails_is_tried_again_or_left_to_the_end():
    found = run(EARLY, Conditions(task_failure=0.3), jobs=3)
    assert found.unfinished == 0
    assert not found.failed


def test_a_driver_that_cannot_fold_never_has_to():
    kernel = Scheduler(compose, LANES | EARLY, Settings())
    kernel.handle(ev.NodeJoined(0.0, NODES[0]), ev.TableChanged(0.0, TABLE))
    out = list(kernel.handle(ev.QuerySubmitted(0.0, Query("q", (JOB,)))))
    for now in range(1, 30):
        ends = [ev.TaskFinished(float(now), c.number) for c in out if isinstance(c, Launch)]
        out = list(kernel.handle(*ends)) if ends else []
        assert not any(isinstance(c, Launch) and c.round and c.tasks[0].kind != "map" for c in out)
    assert not kernel.state.queries


def test_a_session_says_that_it_does_not_fold_this_way():
    assert not idle_in_sessions(LAST)
    (told,) = idle_in_sessions(EARLY)
    assert "reduces = 'early'" in told


@pytest.mark.parametrize("at_s", [1.5, 2.5, 3.5])
def test_a_cancelled_query_leaves_no_fold_behind(at_s: float):
    arrival = Arrival(Query("q0", (JOB,)), TRUTH, cancel_s=at_s)
    other = Arrival(Query("q1", (JOB,)), TRUTH)
    workload = Workload("w", (arrival, other), (TABLE,))
    found = simulate(workload, NODES, LANES | EARLY)
    assert set(found.failed) == {"q0"}
    assert found.unfinished == 0
    assert replay(found.journal) is None
