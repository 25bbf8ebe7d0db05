"""Policies on estimates of predictors that learn during the run."""

from __future__ import annotations

import pytest

from queryard.core.events import EstimateChanged
from queryard.estimate.tasks import PREDICTORS
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.sim.replay import replay
from queryard.workload import Mix, generate

MIX = Mix(queries=30, deadlines=0.3, classes=4, load=0.9)


@pytest.mark.parametrize("name", PREDICTORS)
def test_any_policy_runs_on_any_predictor(name: str) -> None:
    workload = generate(MIX, seed=2)
    run = simulate(workload, workload.nodes, resolve_profile("tls"), estimates=name, seed=2)
    assert not run.unfinished
    assert len(run.ends) == 30
    assert replay(run.journal) is None


def test_estimates_come_nearer_to_the_truth() -> None:
    workload = generate(MIX, seed=2)
    truth = {
        arrival.query.job_id(job.name): arrival.truth[job.name].map_s
        for arrival in workload.arrivals
        for job in arrival.query.jobs
    }
    run = simulate(workload, workload.nodes, resolve_profile("fifo"), estimates="regression")
    errors: dict[str, list[float]] = {}
    for step in run.journal.steps:
        for event in step.events:
            if isinstance(event, EstimateChanged) and event.map_s is not None:
                error = abs(event.map_s - truth[event.job]) / truth[event.job]
                errors.setdefault(event.job, []).append(error)
    last = sorted(found[-1] for found in errors.values())
    assert last[len(last) // 2] < 0.05
    assert len(errors) >= 0.9 * len(truth)


def test_a_predictor_is_the_same_under_the_same_seed() -> None:
    workload = generate(MIX, seed=3)
    profile = resolve_profile("srtf")
    first, second = (
        simulate(workload, workload.nodes, profile, estimates="regression", seed=3)
        for _ in range(2)
    )
    assert first.ends == second.ends
