"""Policies on estimates of predictors that learn during the run."""

from __future__ import annotations

import pytest

from queryard.core.commands import Launch
from queryard.core.errors import InvalidProfile
from queryard.core.events import EstimateChanged
from queryard.core.model import Job, Node, Phase, Query, TaskId
from queryard.estimate.tasks import PREDICTORS, TaskFeatures
from queryard.estimate.tasks.estimating import Report
from queryard.estimate.tasks.regression import PHASES, Regression
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.sim.predicting import Predicting
from queryard.sim.replay import replay
from queryard.workload import Mix, generate
from queryard.workload.model import Arrival, JobTruth, Workload

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


def test_a_policy_by_its_name_is_the_profile_of_that_name() -> None:
    workload = generate(MIX, seed=2)
    runs = [
        simulate(workload, workload.nodes, of, seed=2) for of in ("tls", resolve_profile("tls"))
    ]
    assert runs[0].ends == runs[1].ends
    with pytest.raises(InvalidProfile, match="unknown profile 'tsl'; did you mean 'tls'"):
        simulate(workload, workload.nodes, "tsl")


def test_a_predictor_is_the_same_under_the_same_seed() -> None:
    workload = generate(MIX, seed=3)
    profile = resolve_profile("srtf")
    first, second = (
        simulate(workload, workload.nodes, profile, estimates="regression", seed=3)
        for _ in range(2)
    )
    assert first.ends == second.ends


def last_reduce_s(
    predictor: str, *, slow_start: float = 1.0, left_bytes: float = 8e6
) -> float | None:
    """What reduces are said to take in the end; they take 5 s: 1 s, 1 s and 3 s for 80 MB."""
    job = Job("j", map=Phase(20, sizes=(1e8,) * 20), reduce=Phase(2))
    truth = JobTruth(
        map_s=20.0, shuffle_s=1.0, merge_s=1.0, reduce_s=3.0, map_output_bytes=left_bytes
    )
    arrivals = [
        Arrival(Query(f"q{n}", (job,), submit_s=500.0 * n, class_name="c"), {"j": truth})
        for n in range(6)
    ]
    run = simulate(
        Workload("w", tuple(arrivals)),
        [Node("n", 4)],
        resolve_profile("fifo"),
        estimates=predictor,
        slow_start=slow_start,
    )
    told = [
        event.reduce_s
        for step in run.journal.steps
        for event in step.events
        if isinstance(event, EstimateChanged) and event.reduce_s is not None
    ]
    return told[-1] if told else None


# As it is printed in the paper, a reduce reads as much as a map leaves.
SOUND = [name for name in PREDICTORS if name != "standard-split"]


@pytest.mark.parametrize("name", SOUND)
def test_reduces_are_predicted_as_they_are(name: str) -> None:
    assert last_reduce_s(name) == pytest.approx(5.0)


@pytest.mark.parametrize("name", SOUND)
def test_waiting_for_maps_is_not_taken_for_work(name: str) -> None:
    """Reduces are launched with the first maps, and have fetched when the last ones end."""
    assert last_reduce_s(name, slow_start=0.05) == pytest.approx(4.5, abs=0.5)


@pytest.mark.parametrize("name", PREDICTORS)
def test_an_unrecorded_map_output_is_unknown_and_not_zero(name: str) -> None:
    assert last_reduce_s(name, left_bytes=0.0) in (None, pytest.approx(5.0))


def test_parts_of_reduces_are_learned() -> None:
    """Their shuffle goes by the bytes, the rest of them by none: only parts can tell."""
    predictor = Regression()
    learner = Predicting(predictor)
    for n in range(40):
        job = Job("j", map=Phase(1, sizes=(1e6 * (n + 1),)), reduce=Phase(1))
        query = Query(f"q{n}", (job,))
        learner(float(n), Arrival(query, {"j": JobTruth()}))
        for kind, report, seconds in (
            ("map", Report(output_bytes=1e6 * (n + 1)), 1.0),
            ("reduce", Report(merge_s=0.5, rest_s=2.0), 2.5 + 0.1 * (n + 1)),
        ):
            began_s = 100.0 * n + (50.0 if kind == "reduce" else 0.0)
            launch = Launch(n, "n", (TaskId(f"q{n}/j", kind, 0),), "", began_s)
            learner.ended(began_s + seconds, launch, report)
    asked = TaskFeatures(
        "new", "reduce", shuffled_bytes=100e6, reduces=1, map_bytes=100e6, map_tasks=1
    )
    assert predictor.predict(asked) == pytest.approx(12.5, rel=0.01)
    assert {name for name in PHASES if predictor._phases[name].predict(asked, 1e6) is None} == {
        "first shuffle"
    }
