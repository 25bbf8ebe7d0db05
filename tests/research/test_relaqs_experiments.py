"""The experiments of ReLAQS: its queries, its readings of error, its findings."""

from __future__ import annotations

from random import Random

import pytest

from queryard.core.events import AnswerReported
from queryard.metrics.online import reductions
from queryard.metrics.runs import read_run
from queryard.sim import simulate
from research import EXPERIMENTS, Outcome, RunOptions
from research.relaqs.arrival_gaps import gains
from research.relaqs.batch_answers import (
    KINDS,
    draw_answer,
    progress,
    true_error,
    width_change,
)
from research.relaqs.errors import (
    ACTUAL,
    BOTH,
    EXACT,
    FAIR,
    LAW,
    LEVELS,
    RELAQS,
    SAMPLING,
    crossing,
    curve,
    curves,
    errors_left,
    relaqs_with,
)
from research.relaqs.progress_metric import CHOSEN, LINEAR, SQUARE, forecast_errors
from research.relaqs.queries import CORES, FOUR_CORES, NESTED, Scene, setting

SMALL = Scene(queries=3, hours=0.5, batches=20, nodes="16x1@16")


def number_of(class_name: str) -> int:
    return int(class_name.removeprefix("TPC-H "))


def test_the_queries_are_those_of_the_paper() -> None:
    built = setting(Scene(), 3)
    arrivals = built.workload.arrivals
    assert sum(node.slots for node in built.nodes) == CORES == 256
    assert len(built.nodes) == 16
    assert len(arrivals) == 12
    numbers = [number_of(arrival.query.class_name) for arrival in arrivals]
    assert set(numbers) == {1, 3, 5, 6, 11, 16, 17, 19}
    for arrival in arrivals:
        (job,) = arrival.query.jobs
        assert job.divisible is not None
        assert job.divisible.nested == (number_of(arrival.query.class_name) in NESTED)
        assert sum(item.bytes for item in job.inputs) < 1e12


def test_work_is_an_hour_of_the_cluster_on_average_whatever_grows() -> None:
    for scene in (Scene(), Scene(grown=0.0), Scene(least_gb=10.0), Scene(batches=7)):
        work_s = [
            sum(arrival.work_s for arrival in setting(scene, seed).workload.arrivals)
            for seed in range(200)
        ]
        assert sum(work_s) / len(work_s) == pytest.approx(3600 * CORES, rel=0.05)


def test_arrivals_keep_their_pattern_when_gaps_change() -> None:
    times = {
        gap_s: [a.query.submit_s for a in setting(Scene(gap_s=gap_s), 1).workload.arrivals]
        for gap_s in (0.0, 10.0, 120.0)
    }
    assert set(times[0.0]) == {0.0}
    assert times[120.0] == pytest.approx([12 * time_s for time_s in times[10.0]])
    assert setting(Scene(), 1) == setting(Scene(), 1)
    assert setting(Scene(), 1).workload != setting(Scene(), 2).workload


def test_times_are_those_of_the_metric_and_answers_those_of_the_run() -> None:
    built = setting(SMALL, 5)
    found = curve(built, BOTH[RELAQS], 5)
    assert found == curve(built, BOTH[RELAQS], 5)
    simulated = simulate(
        built.workload,
        built.nodes,
        BOTH[RELAQS],
        conditions=built.conditions,
        estimates=built.estimates,
        seed=5,
    )
    run = read_run(simulated.journal)
    for row in reductions(run, (0.7, 0.9, EXACT)):
        assert row.mean_s == pytest.approx(found.at(SAMPLING, row.reduction))
    first = built.workload.arrivals[0]
    mine = [a for a in run.answers if a.job.startswith(f"{first.query.id}/")]
    left = errors_left(first, mine, 5)
    assert left[LAW][:3] == [1.0, 1 / 2, 1 / 3]
    assert all(values[-1] == 0.0 for values in left.values())
    assert max(left[ACTUAL]) == 1.0


def test_the_answers_redrawn_are_those_reported() -> None:
    built = setting(SMALL, 2)
    arrival = built.workload.arrivals[0]
    (job,) = arrival.query.jobs
    simulated = simulate(
        built.workload, built.nodes, BOTH[FAIR], conditions=built.conditions, seed=2
    )
    reported = [
        event
        for step in simulated.journal.steps
        for event in step.events
        if isinstance(event, AnswerReported) and event.job == arrival.query.job_id(job.name)
    ]
    left = errors_left(arrival, reported, 2)[ACTUAL]
    # The last change leads to the exact answer: it is the error of the answer before.
    unit = reported[-1].change / left[-2]
    for place in range(1, len(left)):
        change = reported[place].change / unit
        sides = (abs(left[place] - left[place - 1]), left[place] + left[place - 1])
        assert any(change == pytest.approx(side, abs=1e-9) for side in sides)


def test_crossing_points() -> None:
    rising = [float(place) for place in range(1, len(LEVELS) + 1)]
    later = [value + 1 for value in rising]
    assert crossing(rising, later) == EXACT
    assert crossing(later, rising) == 0.0
    assert crossing(rising, rising) == 0.0
    assert crossing([*rising[:-1], 1e9], later) == LEVELS[-2]


def test_relaqs_is_sooner_at_first_and_later_in_the_end() -> None:
    found = curves(RunOptions(), "eight", Scene(queries=8, batches=40, nodes=FOUR_CORES), 1)
    (ours,), (fair,) = found[RELAQS], found[FAIR]
    for reading in (SAMPLING, LAW):
        assert ours.at(reading, 0.5) < fair.at(reading, 0.5)
    assert ours.at(SAMPLING, EXACT) > fair.at(SAMPLING, EXACT)


def test_a_least_share_of_all_is_fair() -> None:
    profiles = {FAIR: BOTH[FAIR], RELAQS: relaqs_with(min_share=1.0)}
    found = curves(RunOptions(), "least", SMALL, 1, profiles)
    (least,), (fair,) = found[RELAQS], found[FAIR]
    for level in (0.5, 0.9, EXACT):
        assert least.at(SAMPLING, level) == pytest.approx(fair.at(SAMPLING, level), rel=0.03)


def test_a_single_query_has_no_gain() -> None:
    found = curves(RunOptions(), "single", Scene(queries=1, nodes=FOUR_CORES), 2)
    assert gains(found, SAMPLING).mean == pytest.approx(0.0, abs=1e-6)


def test_progress_is_closer_to_the_error_than_the_change_of_widths_is() -> None:
    numbers = draw_answer(KINDS[0], 50, Random(1))
    assert numbers == draw_answer(KINDS[0], 50, Random(1))
    assert len(numbers) == 32
    errors = true_error(numbers)
    assert errors[-1] == 0.0
    assert 0.0 < max(errors) <= 1.0

    def away(measured: list[float]) -> float:
        return sum(abs(one - other) for one, other in zip(measured, errors, strict=True))

    assert away(progress(numbers)) < away(width_change(numbers))


def test_forecasts_of_a_curve_that_is_one_of_the_two_are_exact() -> None:
    linear = [1.0, *(1 / (0.4 * batch + 0.2) for batch in range(2, 30))]
    found = forecast_errors(linear)
    for ahead in (1, 5):
        assert max(found[LINEAR, ahead][1:]) < 1e-3
        # Two points are on both curves.
        assert max(found[CHOSEN, ahead][2:]) < 1e-3
    assert max(found[SQUARE, 5]) > 0.05
    assert len(found[CHOSEN, 1]) == 27
    assert len(found[CHOSEN, 5]) == 23


@pytest.mark.parametrize("size", [0.08, pytest.param(0.15, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", ["relaqs-time", "relaqs-crossing", "relaqs-metric", "relaqs-two-cores"]
)
def test_a_small_run_of_each(name: str, size: float) -> None:
    outcome: Outcome = EXPERIMENTS[name].run(RunOptions(seeds=1, size=size))
    assert len(outcome.findings) >= (2 if name == "relaqs-two-cores" else 6)
    assert all(finding.paper and finding.ours for finding in outcome.findings)
    assert outcome.tables
    assert all(table.rows for table in outcome.tables)
    assert outcome.charts
    assert EXPERIMENTS[name].parameters
