"""Measured errors of online answers, in truth and in files."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median

import pytest

from queryard.core.errors import InvalidModel, InvalidRecord
from queryard.core.model import Divisible, Job
from queryard.sim.leases import LeasedJob
from queryard.workload import load_workload, save_workload
from queryard.workload.error_curves import ERROR_CURVES, error_at
from queryard.workload.model import JobTruth

FILE = """
[[tables]]
name = "t"
splits = 4
[[queries]]
id = "a"
kind = "online"
scans = ["t"]
[queries.divisible]
width = 2
work = 10
batches = 4
format = "text"
errors = {errors}
"""


@pytest.mark.parametrize("name", ERROR_CURVES)
def test_errors_are_as_measured_and_never_rise(name: str):
    points = ERROR_CURVES[name]
    assert [error_at(points, share) for share, _ in points] == pytest.approx([e for _, e in points])
    errors = [error_at(points, place / 400) for place in range(1, 401)]
    assert all(before >= after for before, after in pairwise(errors))
    assert errors[-1] == 0.0
    JobTruth(errors=points)


def test_shuffled_rows_follow_the_law_and_a_heavy_tail_does_not():
    def fall(name: str) -> float:
        return error_at(ERROR_CURVES[name], 0.01) / error_at(ERROR_CURVES[name], 0.25)

    law = math.sqrt(0.99 / 0.01 / 3.0)
    for query in ("q1", "q3", "q5", "q6", "q12", "q14", "q19"):
        assert fall(query) == pytest.approx(law, rel=0.12)
    assert fall("heavy tail") < 0.75 * law


def test_answers_are_as_far_away_as_the_curve_says():
    truth = JobTruth(work_s=1.0, errors=ERROR_CURVES["heavy tail"])
    job = Job("j", divisible=Divisible(1, 20))
    away: list[list[float]] = [[] for _ in range(20)]
    for number in range(400):
        answers = LeasedJob(f"q{Random(number).random()}/j", job, truth, None, number).answers
        for distances, (value, _) in zip(away, answers, strict=True):
            distances.append(abs(value - answers[-1][0]))
    for batch in (1, 5, 15):
        found = median(away[batch - 1])
        assert found == pytest.approx(truth.error_after(batch, 20), rel=0.2)


@pytest.mark.parametrize("given", ['"q3 blocks"', "[[0.1, 0.5], [0.5, 0.2]]"])
def test_files_name_a_curve_or_give_one_and_are_written_back(tmp_path: Path, given: str):
    file = tmp_path / "w.toml"
    file.write_text(FILE.format(errors=given))
    workload = load_workload(file)
    (arrival,) = workload.arrivals
    truth = arrival.truth["job"]
    assert truth.errors
    assert truth.make_s == pytest.approx(24.4)
    assert arrival.query.jobs[0].scans == ("t",)
    again = tmp_path / "w.json"
    save_workload(workload, again)
    assert load_workload(again).arrivals == workload.arrivals


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ('"q2"', "unknown errors 'q2'"),
        ("[[0.1, 0.2, 0.3]]", r"expected a pair \[share, error\]"),
        ("[[0.5, 0.1], [0.1, 0.2]]", "by rising shares"),
        ("[[0.1, 0.1], [0.5, 0.2]]", "never rise"),
        ("7", "give the name of a curve"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, given: str, message: str):
    file = tmp_path / "w.toml"
    file.write_text(FILE.format(errors=given))
    with pytest.raises(InvalidRecord, match=message):
        load_workload(file)


def test_a_curve_must_fall():
    with pytest.raises(InvalidModel, match="above 0"):
        JobTruth(errors=((0.1, 0.0),))


def test_formats_need_a_scan(tmp_path: Path):
    file = tmp_path / "w.toml"
    file.write_text('[[queries]]\nid = "a"\nmap = { tasks = 2, format = "text" }\n')
    with pytest.raises(InvalidRecord, match="only a job that scans one table"):
        load_workload(file)
