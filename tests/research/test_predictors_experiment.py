"""The experiment on predictors: its workload, its errors, its findings."""

from __future__ import annotations

from math import exp
from random import Random
from statistics import fmean

import pytest

from queryard.estimate.tasks import Seen, TaskFeatures
from research import EXPERIMENTS, Outcome, RunOptions
from research.outcome import Verdict, interval
from research.posum.jobs import KINDS, NOISE, posum_tasks
from research.posum.predictors import (
    Run,
    counts_table,
    errors_of,
    printed_findings,
    replayed,
    shared,
)
from research.report import Report, markdown
from research.sections import section_of


def test_a_task_is_predicted_from_those_that_had_ended() -> None:
    def task(start_s: float, seconds: float, job: str) -> tuple[float, Seen]:
        asked = TaskFeatures(
            job, "map", "sort", "ada", input_bytes=100.0, map_bytes=100.0, map_tasks=1
        )
        return start_s, Seen(asked, seconds, 10.0)

    # The second begins before the first has ended: nothing is known of either.
    errors = replayed([task(0.0, 10.0, "a"), task(5.0, 10.0, "b"), task(12.0, 5.0, "c")])
    assert [task.get("basic") for task in errors["map"]] == [None, None, pytest.approx(1.0)]
    assert errors["reduce"] == []


# Of two maps that all four predict, one that two do, and one that none does.
MAPS = [
    {"basic": 1.0, "standard": 2.0, "detailed": 2.0, "regression": 0.5},
    {"basic": 3.0, "standard": 4.0, "detailed": 4.0, "regression": 1.5},
    {"basic": 9.0, "regression": 7.0},
    {},
]


def test_tasks_that_are_left_out_are_counted() -> None:
    assert shared(MAPS) == MAPS[:2]
    assert errors_of("regression", MAPS) == [0.5, 1.5, 7.0]
    table = counts_table({"Spark": [{"map": MAPS, "reduce": []}]})
    assert table.columns[1:3] == ("tasks", "by all four: compared")
    assert table.rows == (("Spark, maps", "4", "2 (50 %)", "3", "2", "2", "3"),)


def test_a_predictor_is_judged_beside_the_one_before() -> None:
    def run(basic: float, standard: float) -> Run:
        task = {"basic": basic, "standard": standard, "detailed": standard}
        return {"map": [], "reduce": [task | {"standard-printed": standard}]}

    # Standard is twice as bad as Basic in every seed, Detailed always the same as Standard.
    found = {finding.what: finding for finding in printed_findings([run(1.0, 2.0), run(3.0, 6.0)])}
    basic, standard, detailed = (
        found[f"table 5.3, {name}: mean relative error of reduces"]
        for name in ("basic", "standard", "detailed")
    )
    assert basic.verdict is None
    assert basic.ours == interval([1.0, 3.0]).text()
    assert standard.verdict is Verdict.OTHER_SIZE
    assert "over basic: 4.86x printed, 2.00x (2.00x to 2.00x) ours" in standard.note
    assert detailed.verdict is Verdict.DIFFERS
    assert "0.055 times the printed size" in detailed.note
    # The first runs had it the other way round.
    first = found["table 5.2, standard-printed: mean relative error of reduces"]
    assert first.verdict is Verdict.DIFFERS
    assert not any("maps" in what for what in found)


def test_luck_alone_makes_an_error() -> None:
    """The 0.21 of a note: what a predictor misses on maps that knows all but their luck."""
    rng = Random(1)
    lucks = [exp(rng.gauss(0.0, NOISE) - NOISE**2 / 2) for _ in range(20_000)]
    assert fmean(abs(1 - luck) / luck for luck in lucks) == pytest.approx(0.21, abs=0.005)


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
    return EXPERIMENTS["predictors"].run(RunOptions(seeds=1))


def test_the_regression_is_better_than_standard_and_does_not_explode(outcome: Outcome) -> None:
    judged = [finding for finding in outcome.findings if "regression" in finding.what]
    assert len(judged) == 2
    assert {finding.verdict for finding in judged} == {Verdict.REACHED}


def test_all_that_each_predicts_is_shown_beside_what_is_compared(outcome: Outcome) -> None:
    counts, compared, alone = outcome.tables
    tasks = {row[0]: row[1] for row in compared.rows}
    assert tasks["map, basic"] == tasks["map, regression"]
    own = {row[0]: row[1] for row in alone.rows}
    of_maps = dict(zip(counts.columns, counts.rows[0], strict=True))
    assert own["map, regression"] == of_maps["regression"]
    assert of_maps["by all four: compared"].startswith(tasks["map, basic"])


def test_recorded_tasks_are_missed_aloud(outcome: Outcome) -> None:
    assert any("--traces" in note for note in outcome.notes)
    assert not any("Rumen:" in note for note in outcome.notes)


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
