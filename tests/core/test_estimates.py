"""What is expected of a job: the last estimate given, else what was observed."""

from __future__ import annotations

import math
import statistics

import pytest
from by_hand import Hand, divisible, launched, maps
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core import events as ev
from queryard.core.means import Mean, pooled_mean
from queryard.core.model import MAP, REDUCE, Node

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50)
FEW = settings(max_examples=examples(100), deadline=None, derandomize=True)


@FEW
@given(values)
def test_welford_agrees_with_the_statistics_module(numbers: list[float]):
    mean = Mean()
    for number in numbers:
        mean.add(number)
    assert mean.n == len(numbers)
    assert mean.mean == pytest.approx(statistics.fmean(numbers), rel=1e-9, abs=1e-6)


def test_welford_loses_nothing_far_from_zero():
    mean = Mean()
    for number in (1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16):
        mean.add(number)
    assert mean.mean == 1e9 + 10


@FEW
@given(st.lists(values, max_size=5))
def test_pooled_means_are_the_mean_of_all(groups: list[list[float]]):
    means = []
    for numbers in groups:
        mean = Mean()
        for number in numbers:
            mean.add(number)
        means.append(mean)
    everything = [number for numbers in groups for number in numbers]
    if everything:
        expected = statistics.fmean(everything)
        assert pooled_mean(means) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    else:
        assert pooled_mean([*means, Mean()]) is None


def test_a_forked_mean_goes_its_own_way():
    mean = Mean()
    mean.add(1.0)
    fork = mean.fork()
    fork.add(3.0)
    assert (mean.n, mean.mean, fork.n, fork.mean) == (1, 1.0, 2, 2.0)


# --- the chain: said, the job's own, its class, the cluster, one second --------------------------


def took(hand: Hand, task: str, seconds: float) -> None:
    """The task that was just launched ends so much later."""
    hand.wait(seconds).finish(task)


def expected_s(hand: Hand, job: str) -> tuple[float, float]:
    found = hand.state.jobs[job]
    return found.map_s, found.reduce_s


def test_nothing_known_means_one_second():
    hand = Hand()
    hand.submit("q", maps("j", 3, 2), divisible("d", 2), divisible("batches", 2, 5))
    assert expected_s(hand, "q/j") == (1.0, 1.0)
    assert hand.state.jobs["q/d"].work_s == 1.0
    assert hand.state.jobs["q/batches"].work_s == 5.0


def test_a_given_estimate_counts_most_and_the_last_one_counts():
    hand = Hand()
    hand.submit("q", maps("j", 9, 1), estimates={"j": {"map_s": 4.0}})
    assert expected_s(hand, "q/j") == (4.0, 1.0)
    took(hand, "q/j:m0", 100.0)
    assert expected_s(hand, "q/j") == (4.0, 1.0), "observations do not outdo an estimate"
    hand.do(ev.EstimateChanged(hand.now, "q/j", map_s=2.0, reduce_s=3.0))
    assert expected_s(hand, "q/j") == (2.0, 3.0)
    hand.do(ev.EstimateChanged(hand.now, "q/j"))
    assert expected_s(hand, "q/j") == (2.0, 3.0), "nothing said, nothing changed"


def test_a_jobs_own_mean_replaces_the_guess():
    hand = Hand()
    hand.submit("q", maps("j", 3, 2))
    took(hand, "q/j:m0", 6.0)
    assert expected_s(hand, "q/j") == (6.0, 1.0)
    took(hand, "q/j:m1", 4.0)
    assert expected_s(hand, "q/j") == (5.0, 1.0)
    took(hand, "q/j:m2", 5.0)
    took(hand, "q/j:r0", 9.0)
    assert expected_s(hand, "q/j") == (5.0, 9.0)


def test_a_new_job_is_expected_to_take_what_its_class_took():
    hand = Hand()
    hand.submit("other", maps("j", 1))
    took(hand, "other/j:m0", 50.0)
    hand.submit("q1", maps("j", 1, 1), class_name="daily")
    took(hand, "q1/j:m0", 6.0)
    took(hand, "q1/j:r0", 2.0)
    hand.submit("q2", maps("j", 1, 1), maps("k", 1), class_name="daily")
    assert expected_s(hand, "q2/j") == (6.0, 2.0)
    assert hand.state.jobs["q2/k"].map_s == 28.0, "no such job in the class: the cluster's mean"
    hand.submit("q3", maps("j", 1), class_name="weekly")
    assert hand.state.jobs["q3/j"].map_s == 28.0


def test_queries_without_a_class_have_no_class_mean():
    hand = Hand()
    hand.submit("q1", maps("j", 1))
    took(hand, "q1/j:m0", 6.0)
    assert not hand.state.class_means
    hand.submit("q2", maps("k", 1))
    assert hand.state.jobs["q2/k"].map_s == 6.0


def test_the_clusters_mean_is_over_all_nodes_and_by_kind():
    hand = Hand("fifo", "2x1")
    hand.submit("q", maps("j", 2, 1))
    hand.wait(2.0).finish("q/j:m0")
    hand.wait(2.0).finish("q/j:m1")
    hand.wait(5.0).finish("q/j:r0")
    assert hand.state.observed_s(MAP) == 3.0
    assert hand.state.observed_s(REDUCE) == 5.0


def test_only_results_are_observed():
    hand = Hand()
    hand.submit("q", maps("j", 2))
    hand.wait(7.0).fail("q/j:m0")
    assert hand.state.observed_s(MAP) is None
    assert hand.state.jobs["q/j"].map_s == 1.0


def test_work_left_follows_results_losses_and_estimates():
    hand = Hand("fifo", "2x1")
    hand.submit("q", maps("j", 2, 1), estimates={"j": {"map_s": 4.0, "reduce_s": 10.0}})
    query = hand.state.queries["q"]
    assert (query.left_s, query.total_s) == (18.0, 18.0)
    node = hand.state.running[hand.number("q/j:m0")].node
    hand.finish("q/j:m0")
    assert query.left_s == 14.0
    hand.lose(node)
    assert query.left_s == 18.0
    hand.do(ev.EstimateChanged(hand.now, "q/j", map_s=1.0))
    assert (query.left_s, query.total_s) == (12.0, 12.0)


def test_what_a_query_takes_alone_follows_the_slots_and_the_longest_path():
    hand = Hand("fifo", "1x4")
    jobs = (maps("a", 8), maps("b", 1), maps("c", 4, 2, upstream=("a", "b")))
    times = {"a": {"map_s": 1.0}, "b": {"map_s": 9.0}, "c": {"map_s": 2.0, "reduce_s": 3.0}}
    hand.submit("q", *jobs, estimates=times)
    # b takes 9 s whatever the slots; c then one wave of maps and one of reduces.
    assert hand.state.queries["q"].alone_s == 9.0 + 2.0 + 3.0
    hand.join(Node("new", 12))
    assert hand.state.queries["q"].alone_s == 14.0
    hand.lose("new")
    hand.lose("n0")
    hand.join(Node("new", 1))
    assert hand.state.queries["q"].alone_s == 8.0 + 9.0 + 8.0 + 6.0, "one slot: the sum of all"


def test_divisible_work_is_bounded_by_its_width():
    hand = Hand("fifo", "1x8")
    hand.submit("q", divisible("d", 2), estimates=10.0)
    assert hand.state.queries["q"].alone_s == 5.0


@pytest.mark.parametrize("profile", ["swrd", "tls", "srtf", "largest-slowdown"])
def test_estimates_change_the_order_of_those_who_wait(profile: str):
    hand = Hand(profile, "1x1")
    hand.submit("now", maps("j", 1), estimates=1.0)
    hand.submit("long", maps("j", 1), estimates=50.0)
    hand.submit("short", maps("j", 1), estimates=5.0)
    hand.wait(1.0)
    for job, map_s in (("long/j", 2.0), ("short/j", 80.0)):
        hand.do(ev.EstimateChanged(hand.now, job, map_s))
    assert launched(hand.finish("now/j:m0")) == ["long/j:m0"]


def test_an_estimate_of_nothing_is_possible():
    hand = Hand("tls", "1x1")
    hand.submit("q", maps("j", 2), estimates=0.0)
    hand.submit("r", maps("j", 2), estimates=0.0)
    hand.run_all()
    assert len(hand.ended) == 2
    assert not math.isnan(hand.now)
