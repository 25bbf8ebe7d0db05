"""TLS's accuracy tables: figures by hand, and the experiment at a tiny size."""

from __future__ import annotations

import pytest

from queryard.estimate.jobs import JobSizes, PhaseSizes
from research.outcome import RunOptions
from research.report import markdown
from research.sections import section_of
from research.tls import accuracy
from research.tls.accuracy import EQUATION, EXPERIMENT, TASKS, figures_of
from research.tls.staged_runs import RanJob, RanQuery, Task


def job(scanned: float, cpu_s: float, planned: float | None = None) -> RanJob:
    real = JobSizes("extract", PhaseSizes(1, scanned))
    expected = JobSizes("extract", PhaseSizes(1, scanned if planned is None else planned))
    return RanJob(expected, real, (Task("map", 0.0, cpu_s),))


def test_errors_and_fits_are_of_both_models_and_both_sizes() -> None:
    jobs = [job(1e8 * n, 0.004 + 0.5 * n, planned=1e8 * (n + n % 3)) for n in range(1, 60)]
    training = [RanQuery(1, 0.1, tuple(jobs))]
    beyond = [RanQuery(1, 0.2, (job(1.2e10, 60.0, planned=2.4e10),))]
    found = figures_of(training, beyond, 0)
    for model in (EQUATION, TASKS):
        assert found["R² of job times, extract", model, "true sizes"] > 0.99
        assert found["mean error of job times, extract", model, "true sizes"] < 0.05
        unseen = "mean error of job times beyond training"
        assert found[unseen, model, "true sizes"] < 0.05
        assert found[unseen, model, "estimated sizes"] > 0.2
    assert not any("join" in what or "reduce" in what for what, _, _ in found)


def test_a_seed_is_a_fit() -> None:
    jobs = tuple(job(1e7 * n, 0.01 * n + 0.003 * (n % 5)) for n in range(1, 30))
    queries = [RanQuery(1, 0.1, jobs)]
    assert figures_of(queries, queries, 1) == figures_of(queries, queries, 1)
    assert figures_of(queries, queries, 1) != figures_of(queries, queries, 2)


def test_the_experiment_runs_tasks_and_compares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accuracy, "SCALES", (0.02,))
    monkeypatch.setattr(accuracy, "BEYOND", 0.002)
    outcome = EXPERIMENT.run(RunOptions(seeds=1, size=0.01))
    assert len(outcome.findings) == 24
    assert sum(finding.ours != "" for finding in outcome.findings) >= 18
    for table in outcome.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert [chart.name for chart in outcome.charts] == [EXPERIMENT.name]
    assert markdown(section_of(EXPERIMENT, outcome, 1, 0.0)).startswith(f"## {EXPERIMENT.title}")
