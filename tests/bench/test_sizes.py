"""Benches of sizes and of updates, on small data: they run, and their figures make sense."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from bench import foreseen, operator_sizes, staged_sizes, submission
from bench.families import family
from bench.operator_sizes import Sized, learnt_errors, report, sized_queries
from bench.staged_sizes import SizedJob, lines, summary

WANTED = ("q1.1", "q3.2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("ssb")
    family("ssb").make(made, 0.01, lambda share, line: None)
    return made


@pytest.fixture
def few(folder):
    """The family with two of its queries."""
    chosen = family("ssb")
    queries = [query for query in chosen.queries(folder) if query.name in WANTED]
    return replace(chosen, queries=lambda _: queries)


def test_sizes_of_staged_jobs_are_compared_with_real_ones(few, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(foreseen, "family", lambda name: few)
    file = tmp_path / "found.json"
    foreseen.main(["ssb", "--data", str(folder), "--plan", "staged", "--json", str(file)])
    found = json.loads(file.read_text())
    assert {job["query"] for job in found["jobs"]} == set(WANTED)
    assert found["figures"]["all"]["jobs"] == len(found["jobs"])
    assert 1 <= found["figures"]["all"]["rows_median"] < 3


def test_q_errors_of_jobs_by_hand():
    jobs = [
        SizedJob("q", "j1", "join", 30.0, 10.0, 300.0, 100.0),
        SizedJob("q", "j2", "extract", 10.0, 10.0, 100.0, 200.0),
        SizedJob("q", "j3", "extract", 0.1, 0.0, 0.5, 0.0),
    ]
    figures = summary(jobs)
    assert [job.by_rows for job in jobs] == [3.0, 1.0, 1.0]
    assert [job.by_bytes for job in jobs] == [3.0, 2.0, 1.0]
    assert (figures["all"]["rows_median"], figures["all"]["bytes_worst"]) == (1.0, 3.0)
    first, *_, last = lines(figures, {"q9": "a reason"})
    assert "1.3 and 3: reached" in first
    assert last == "not split: q9"
    assert staged_sizes.as_json(jobs, {}, figures)["jobs"][0]["job"] == "j1"


def test_sizes_of_operators_are_ours_duckdbs_and_real(few, folder):
    queries = sized_queries(few, folder)
    assert len(queries) == len(WANTED)
    kinds = {one.kind for query in queries for one in query}
    assert {"scan", "join"} <= kinds <= set(operator_sizes.CLASSES)
    first, *_ = report("ssb", queries, 2)
    for way in ("ours", "DuckDB's", "learnt", "the better"):
        assert way in first


def test_the_side_is_taken_that_was_off_less():
    wrong = Sized("join", frozenset("ab"), 1.0, 10.0, 1.0)
    right = Sized("join", frozenset("ab"), 10.0, 1.0, 1.0)
    # Ours at first; DuckDB's as soon as it was off less on average.
    assert sum(error for _, error in learnt_errors([[wrong]] * 4, 0)) == 0
    assert sum(error > 0 for _, error in learnt_errors([[right]] * 4, 0)) == 1


def test_families_for_reporting_choose_nothing(folder):
    with pytest.raises(SystemExit, match="for reporting"):
        operator_sizes.main([f"tpcds={folder}"])


def test_an_update_takes_some_time():
    assert submission.update_us(1) > 0
