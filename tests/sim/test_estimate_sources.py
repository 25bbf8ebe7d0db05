"""What a simulated kernel is told about its work, and what it is not."""

from __future__ import annotations

import math
import statistics

import pytest
from small_worlds import arrival, divisible, events, maps, run

from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.model import Node
from queryard.policies import resolve_profile
from queryard.sim.estimates import estimate_source
from queryard.workload.model import JobTruth

TRUTH = JobTruth(map_s=3.0, shuffle_s=1.0, merge_s=0.5, reduce_s=2.0)
NODES = [Node("a", 4)]


def told(estimates: str, *arrivals, profile: str = "fifo", seed: int = 0):
    found = run(
        list(arrivals), NODES, resolve_profile(profile), estimates=estimates, seed=seed, noise=0.5
    )
    return events(found.journal, ev.EstimateChanged)


def test_the_oracle_tells_the_true_means():
    query = arrival("q", (maps(2, 1), TRUTH), (divisible(2, name="d"), 30.0))
    assert told("oracle", query) == [
        ev.EstimateChanged(0.0, "q/j", 3.0, 3.5),
        ev.EstimateChanged(0.0, "q/d", work_s=30.0),
    ]


def test_of_a_job_without_reduces_none_are_told():
    (estimate,) = told("oracle", arrival("q", (maps(2), TRUTH)))
    assert estimate.reduce_s is None


def test_it_is_told_in_the_instant_of_the_submission():
    found = run([arrival("q", (maps(1), 1.0), at=5.0)], NODES)
    step = next(s for s in found.journal.steps if s.time_s == 5.0)
    assert [type(event) for event in step.events] == [ev.QuerySubmitted, ev.EstimateChanged]


def test_an_erring_oracle_errs_by_the_given_spread():
    queries = [arrival(f"q{n}", (maps(1, 1), TRUTH)) for n in range(800)]
    factors = [e.map_s / 3.0 for e in told("oracle:0.3", *queries)]
    assert statistics.stdev(map(math.log, factors)) == pytest.approx(0.3, rel=0.1)
    assert statistics.median(factors) == pytest.approx(1.0, abs=0.05)
    assert all(
        e.reduce_s / 3.5 == pytest.approx(factor)
        for e, factor in zip(told("oracle:0.3", *queries), factors, strict=True)
    ), "one factor a job"


def test_it_errs_in_the_same_way_under_every_policy_and_otherwise_with_another_seed():
    queries = [arrival(f"q{n}", (maps(1), 3.0)) for n in range(5)]
    fifo = told("oracle:0.3", *queries)
    assert told("oracle:0.3", *queries, profile="tls") == fifo
    assert told("oracle:0.3", *queries, seed=1) != fifo
    assert told("oracle:0", *queries) == told("oracle", *queries)


def test_observed_means_are_not_told_but_seen():
    query = arrival("q", (maps(40), 3.0), class_name="daily")
    later = arrival("later", (maps(1), 3.0), class_name="daily", at=500.0)
    assert told("observed", query, later) == []


def test_the_truth_itself_is_never_an_event():
    found = run([arrival("q", (maps(2), 7.125))], NODES, estimates="observed")
    early = [str(s.events) for s in found.journal.steps if s.time_s == 0.0]
    assert not any("7.125" in text for text in early)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("orcale", "unknown source of estimates 'orcale'; did you mean 'oracle'"),
        ("oracle:lots", "the error must be a number, as in oracle:0.3"),
        ("oracle:-1", "the error must be a number"),
        ("oracle:inf", "the error must be a number"),
        ("oracle:nan", "the error must be a number"),
        ("observed:1", "unknown source of estimates"),
    ],
)
def test_a_wrong_source_is_named(name: str, complaint: str):
    with pytest.raises(QueryardError, match=complaint):
        estimate_source(name)
