"""The experiment on predictors: its workload, its errors, its findings."""

from __future__ import annotations

import pytest

from queryard.estimate.tasks import Asked, Seen
from queryard.experiments import EXPERIMENTS, Outcome, Wish
from queryard.experiments.outcome import interval
from queryard.experiments.posum.jobs import KINDS, posum_tasks
from queryard.experiments.posum.predictors import replayed
from queryard.experiments.report import Report, markdown
from queryard.experiments.sections import section_of


def test_a_task_is_predicted_from_those_that_had_ended() -> None:
    def task(start_s: float, seconds: float, job: str) -> tuple[float, Seen]:
        asked = Asked(job, "map", "sort", "ada", input_bytes=100.0, map_bytes=100.0, map_tasks=1)
        return start_s, Seen(asked, seconds, 10.0)

    # The second begins before the first has ended: nothing is known of either.
    errors = replayed([task(0.0, 10.0, "a"), task(5.0, 10.0, "b"), task(12.0, 5.0, "c")])
    assert errors["map"]["basic"] == [pytest.approx(1.0)]
    assert errors["reduce"]["basic"] == []


def test_posums_jobs_are_as_the_thesis_describes_them() -> None:
    tasks = posum_tasks(1)
    assert tasks == posum_tasks(1)
    assert {seen.asked.class_name for _, seen in tasks} <= {kind.name for kind in KINDS}
    jobs = {seen.asked.job for _, seen in tasks}
    assert 10 < len(jobs) < 200
    reduces = [seen for _, seen in tasks if seen.asked.kind == "reduce"]
    assert all(seen.shuffle_s is not None for seen in reduces)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return EXPERIMENTS["predictors"].run(Wish(seeds=1))


def test_the_regression_is_better_than_standard_and_does_not_explode(outcome: Outcome) -> None:
    judged = [finding for finding in outcome.findings if finding.agrees is not None]
    assert len(judged) == 2
    assert all(finding.agrees for finding in judged)


def test_recorded_tasks_are_missed_aloud(outcome: Outcome) -> None:
    assert any("--traces" in note for note in outcome.notes)


def test_a_report(outcome: Outcome, tmp_path) -> None:
    experiment = EXPERIMENTS["predictors"]
    section = section_of(experiment, outcome, 1, 1.0)
    page = Report(tmp_path / "out").write([section], "Ran.")
    text = page.read_text()
    assert experiment.title in text
    for chart in outcome.charts:
        assert (page.parent / f"{chart.name}.png").stat().st_size > 5000
        assert f"{chart.name}.png" in text
    assert markdown(section).startswith(f"## {experiment.title}")


def test_intervals() -> None:
    assert interval([2.0]).text() == "2"
    found = interval([1.0, 3.0])
    assert found.low < 1.0 < 3.0 < found.high
