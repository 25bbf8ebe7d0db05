"""How long tasks really take: contention, place, memory, riders, starts, luck."""

from __future__ import annotations

import math
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import arrival, commands, events, maps, run, scan, seconds, spans, table

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import InvalidModel
from queryard.core.model import Job, Node, Phase, Query
from queryard.policies import resolve_profile
from queryard.sim import Conditions, alone_times, simulate
from queryard.workload import Mix, generate, parse_nodes
from queryard.workload.model import Arrival, JobTruth, Workload

ONE = [Node("a", 1)]


def test_in_an_ideal_world_a_task_takes_what_it_takes():
    found = run([arrival("q", (maps(3), 7.0))], [Node("a", 2)])
    assert set(seconds(found.journal).values()) == {7.0}
    assert found.ends == {"q": 14.0}


def test_the_speed_of_a_node_divides_the_time_by_kind():
    job, truth = maps(1, 1), JobTruth(map_s=6.0, shuffle_s=1.0, merge_s=2.0, reduce_s=3.0)
    node = Node("a", 1, map_speed=2.0, reduce_speed=0.5)
    found = seconds(run([arrival("q", (job, truth))], [node]).journal)
    assert found == {"q/j:m0": 3.0, "q/j:r0": 12.0}


def test_larger_input_takes_longer():
    job = Job("j", map=Phase(3, sizes=(1.0, 2.0, 3.0)))
    found = seconds(run([arrival("q", (job, 10.0))], [Node("a", 3)]).journal)
    assert found == pytest.approx({"q/j:m0": 5.0, "q/j:m1": 10.0, "q/j:m2": 15.0})


# --- contention ----------------------------------------------------------------------------------


def test_two_maps_on_a_node_take_a_quarter_longer_than_one():
    """TuMM's calibration: 18.5 s with one map slot per node, 23.1 s with two."""
    two = [arrival("q", (maps(2), 18.5))]
    alone = seconds(run(two, [Node("a", 1), Node("b", 1)], contention=0.25).journal)
    together = seconds(run(two, [Node("a", 2)], contention=0.25).journal)
    assert set(alone.values()) == {18.5}
    assert list(together.values()) == pytest.approx([23.125, 23.125])


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
def test_contention_grows_with_every_map_of_the_node(slots: int):
    found = run([arrival("q", (maps(slots), 10.0))], [Node("a", slots)], contention=0.25)
    assert found.ends["q"] == pytest.approx(10.0 * (1 + 0.25 * (slots - 1)))


def test_maps_and_reduces_contend_with_their_own_kind():
    job, truth = maps(1, 1), JobTruth(map_s=10.0, reduce_s=10.0)
    both = [arrival("m", (maps(1), 40.0)), arrival("q", (job, truth))]
    found = seconds(run(both, [Node("a", 2)], contention=0.25).journal)
    assert found["q/j:m0"] == pytest.approx(12.5), "beside another map"
    assert found["q/j:r0"] == pytest.approx(10.0), "beside a map only"


# --- where the data is ---------------------------------------------------------------------------


def test_remote_data_costs_and_data_in_the_rack_costs_less():
    nodes = [Node("a", 1, rack="r1"), Node("b", 1, rack="r1"), Node("c", 1, rack="r2")]
    t = table("t", 3, "a")
    found = run(
        [arrival("q", (scan(t), 10.0))], nodes, tables=(t,), remote_penalty=0.5, rack_penalty=0.2
    )
    took = {node: end - start for start, end, node in spans(found.journal).values()}
    assert took == pytest.approx({"a": 10.0, "b": 12.0, "c": 15.0})


def test_a_table_without_a_place_is_local_everywhere():
    t = table("t", 2)
    found = run([arrival("q", (scan(t), 10.0))], ONE, tables=(t,), remote_penalty=0.5)
    assert set(seconds(found.journal).values()) == {10.0}


def test_nodes_without_a_rack_are_far_apart():
    t = table("t", 2, "a")
    nodes = [Node("a", 1), Node("b", 1)]
    found = run(
        [arrival("q", (scan(t), 10.0))], nodes, tables=(t,), remote_penalty=0.5, rack_penalty=0.2
    )
    assert sorted(seconds(found.journal).values()) == [10.0, 15.0]


def test_reduces_have_no_place():
    t = table("t", 1, "elsewhere")
    job = scan(t, reduces=1)
    truth = JobTruth(map_s=10.0, reduce_s=10.0)
    found = seconds(run([arrival("q", (job, truth))], ONE, tables=(t,), remote_penalty=0.5).journal)
    assert found == {"q/j:m0": 15.0, "q/j:r0": 10.0}


# --- memory locality -----------------------------------------------------------------------------


def test_a_split_that_was_just_read_is_still_in_memory():
    t = table("t", 2, bytes=50.0)
    queries = [arrival("first", (scan(t), 10.0)), arrival("second", (scan(t), 10.0))]
    found = run(queries, ONE, tables=(t,), memory_gain=0.4, memory_cache_bytes=100.0)
    assert seconds(found.journal) == pytest.approx(
        {"first/j:m0": 10.0, "first/j:m1": 10.0, "second/j:m0": 6.0, "second/j:m1": 6.0}
    )


def test_memory_holds_only_the_last_bytes_read():
    t = table("t", 3, bytes=50.0)
    queries = [arrival("first", (scan(t), 10.0)), arrival("second", (scan(t), 10.0))]
    found = run(queries, ONE, tables=(t,), memory_gain=0.4, memory_cache_bytes=100.0)
    assert found.ends["second"] == 60.0, "each split is gone when its turn comes again"


def test_every_node_has_its_own_memory():
    t = table("t", 1, bytes=50.0)
    queries = [arrival("first", (scan(t), 10.0)), arrival("second", (scan(t), 10.0))]
    nodes = [Node("a", 1), Node("b", 1)]
    found = run(queries, nodes, tables=(t,), memory_gain=0.4, memory_cache_bytes=100.0)
    assert set(found.ends.values()) == {10.0}


def test_jobs_that_read_the_same_table_side_by_side_gain():
    """LoDFA against DFA: of three jobs the first and the last read the same large table.

    DFA runs the two deep jobs one after the other, and what the first has read is forgotten
    when the shallow one reads it again. LoDFA runs those that share it in turn.
    """
    big, other = table("big", 4, bytes=25.0), table("other", 4, bytes=25.0)
    jobs = (
        (scan(big, name="deep"), 11.0),
        (scan(other, name="deep-too"), 10.0),
        (Job("join", "join", ("deep", "deep-too"), map=Phase(1)), 1.0),
        (scan(big, name="shallow"), 10.0),
        (Job("both", "join", ("join", "shallow"), map=Phase(1)), 1.0),
    )
    ends = {}
    for order in ("dfa", "lodfa"):
        found = run(
            [arrival("q", *jobs)],
            ONE,
            {"jobs": order},
            tables=(big, other),
            memory_gain=0.5,
            memory_cache_bytes=50.0,
        )
        ends[order] = found.ends["q"]
    assert ends["dfa"] == pytest.approx(4 * 11.0 + 4 * 10.0 + 4 * 10.0 + 2.0)
    assert ends["lodfa"] < 0.9 * ends["dfa"]
    assert ends["lodfa"] == pytest.approx(4 * (11.0 + 5.0) + 4 * 10.0 + 2.0, rel=0.1)


# --- shared scans --------------------------------------------------------------------------------


@pytest.mark.parametrize(("riders", "factor"), [(1, 1.0), (2, 1.0283), (10, 1.2547)])
def test_every_rider_adds_to_a_merged_scan(riders: int, factor: float):
    """S³: ten jobs that share a scan take 25.5 % longer than one."""
    t = table("t", 1)
    queries = [arrival(f"q{n}", (scan(t), 100.0)) for n in range(riders)]
    found = run(queries, ONE, resolve_profile("s3"), tables=(t,), rider_cost=0.0283)
    (launch,) = [c for _, c in commands(found.journal, do.Launch)]
    assert len(launch.tasks) == riders
    assert list(found.ends.values()) == pytest.approx([100.0 * factor] * riders)


def test_riders_wait_for_the_slowest():
    t = table("t", 1)
    queries = [arrival("fast", (scan(t), 10.0)), arrival("slow", (scan(t), 30.0))]
    found = run(queries, ONE, resolve_profile("s3"), tables=(t,))
    assert found.ends == {"fast": 30.0, "slow": 30.0}


# --- starting ------------------------------------------------------------------------------------


def test_every_task_has_a_start():
    job, truth = maps(2, 1), JobTruth(map_s=10.0, reduce_s=5.0)
    found = run([arrival("q", (job, truth))], ONE, task_start_s=1.5)
    assert seconds(found.journal) == {"q/j:m0": 11.5, "q/j:m1": 11.5, "q/j:r0": 6.5}


def test_tasks_wait_until_their_job_is_set_up_once():
    found = run([arrival("q", (maps(3), 10.0))], [Node("a", 2)], job_start_s=4.0)
    assert seconds(found.journal) == {"q/j:m0": 14.0, "q/j:m1": 14.0, "q/j:m2": 10.0}


def test_every_job_is_set_up():
    jobs = ((maps(1, name="a"), 10.0), (maps(1, name="b", upstream=("a",)), 10.0))
    assert run([arrival("q", *jobs)], ONE, job_start_s=4.0).ends == {"q": 28.0}


def test_every_round_of_a_shared_scan_is_set_up_instead():
    t = table("t", 2)
    found = run(
        [arrival("q", (scan(t), 10.0))],
        ONE,
        resolve_profile("s3"),
        tables=(t,),
        round_start_s=3.0,
        job_start_s=100.0,
    )
    rounds = {c.round for _, c in commands(found.journal, do.Launch)}
    assert len(rounds) == 2, "one slot, one block a round"
    assert found.ends == {"q": 26.0}


# --- luck ----------------------------------------------------------------------------------------

MANY = [arrival("q", (maps(4000), 10.0))]
WIDE = [Node(f"n{i}", 10) for i in range(10)]


def test_noise_has_mean_one():
    took = seconds(run(MANY, WIDE, noise=0.5).journal).values()
    assert statistics.fmean(took) == pytest.approx(10.0, rel=0.03)
    spread = statistics.stdev(map(math.log, took))
    assert spread == pytest.approx(0.5, rel=0.05)


def test_some_tasks_are_stragglers():
    took = Counter(
        seconds(run(MANY, WIDE, straggler_share=0.1, straggler_factor=4.0).journal).values()
    )
    assert set(took) == {10.0, 40.0}
    assert took[40.0] / 4000 == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("profile", ["fair", "swrd", "tls", "srtf", "edls-pr", "tumm", "lodfa"])
def test_a_task_is_equally_lucky_under_every_policy(profile: str):
    queries = [
        arrival(f"q{n}", (maps(5 + n, 3), JobTruth(map_s=4.0, reduce_s=6.0)), at=float(n))
        for n in range(5)
    ]
    lucky = {"noise": 0.4, "straggler_share": 0.05, "seed": 3}
    fifo = seconds(run(queries, [Node("a", 3)], **lucky).journal)
    other = seconds(run(queries, [Node("a", 3)], resolve_profile(profile), **lucky).journal)
    assert other == pytest.approx(fifo)
    assert len(set(fifo.values())) > 20


def test_maps_and_reduces_and_jobs_have_their_own_luck():
    queries = [arrival(f"q{n}", (maps(2, 2), JobTruth(map_s=1.0, reduce_s=1.0))) for n in range(3)]
    took = seconds(run(queries, [Node("a", 9)], noise=0.5).journal)
    assert len(set(took.values())) == len(took)


def test_the_same_seed_is_the_same_run_and_another_seed_another():
    queries = [arrival(f"q{n}", (maps(9, 2), 2.0), at=float(n)) for n in range(4)]
    rough = {"noise": 0.3, "task_failure": 0.1, "node_mtbf_s": 30.0, "node_repair_s": 3.0}
    nodes = [Node("a", 2), Node("b", 2)]
    first, again, other = (run(queries, nodes, seed=seed, **rough) for seed in (1, 1, 2))
    assert first.journal == again.journal
    assert first.ends == again.ends
    assert first.journal.steps != other.journal.steps


# --- failures ------------------------------------------------------------------------------------


def test_tasks_fail_as_often_as_they_should_and_are_tried_again():
    found = run(MANY, WIDE, task_failure=0.1)
    failures = events(found.journal, ev.TaskFailed)
    assert len(failures) / (4000 + len(failures)) == pytest.approx(0.1, abs=0.02)
    assert found.ends.keys() == {"q"}
    assert not found.failed


def test_a_task_fails_before_it_would_have_ended():
    found = run([arrival("q", (maps(200), 10.0))], [Node("a", 5)], task_failure=0.3)
    launches = {c.number: c for _, c in commands(found.journal, do.Launch)}
    lived = [e.time_s - launches[e.launch].time_s for e in events(found.journal, ev.TaskFailed)]
    assert lived
    assert all(0.0 <= time_s <= 10.0 for time_s in lived)


def test_if_nearly_all_fail_the_query_does():
    found = run([arrival("q", (maps(20), 1.0))], [Node("a", 5)], task_failure=0.95)
    assert "failed 4 times, the last time with: the task failed by chance" in found.failed["q"]
    assert found.unfinished == 0


# --- users ---------------------------------------------------------------------------------------


def test_a_query_is_cancelled_when_its_user_loses_patience():
    queries = [arrival("q", (maps(9), 10.0), cancel_s=25.0), arrival("r", (maps(1), 10.0))]
    found = run(queries, ONE)
    assert found.failed == {"q": "cancelled"}
    assert found.ends == {"q": 25.0, "r": 35.0}


def test_a_query_cannot_be_cancelled_before_its_submission():
    found = run([arrival("q", (maps(9), 10.0), at=5.0, cancel_s=1.0)], ONE)
    assert found.ends == {"q": 5.0}


def test_a_query_alone_is_not_slowed_by_others():
    queries = (arrival("q", (maps(4), 10.0), at=7.0), arrival("r", (maps(2), 5.0)))
    assert alone_times(Workload("w", queries), [Node("a", 2)]) == {"q": 20.0, "r": 5.0}


@given(seed=st.integers(0, 1000), noise=st.sampled_from((0.0, 0.4)))
def test_nodes_that_a_query_cannot_fill_make_no_difference(seed: int, noise: float):
    nodes = parse_nodes("12x2")
    workload = generate(Mix(queries=2), seed, nodes)
    conditions = Conditions(noise=noise)
    found = alone_times(workload, nodes, conditions, seed=seed)
    for query in workload.arrivals:
        alone = Workload("w", (query,), workload.tables)
        ends = simulate(alone, nodes, {"order": "fifo"}, conditions=conditions, seed=seed).ends
        assert ends[query.query.id] - query.query.submit_s == pytest.approx(found[query.query.id])


def test_the_same_question_twice_is_answered_once():
    queries = [
        arrival("q", (maps(1), 10.0), idempotency_key="k"),
        arrival("again", (maps(1), 10.0), at=5.0, idempotency_key="k"),
        arrival("late", (maps(1), 10.0), at=50.0, idempotency_key="k"),
    ]
    found = run(queries, ONE)
    assert found.ends == {"q": 10.0}
    assert found.unfinished == 0


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"noise": -0.1}, "noise must be a number of at least 0, got -0.1"),
        ({"contention": math.nan}, "contention must be a number"),
        ({"node_repair_s": True}, "node_repair_s must be a number"),
        ({"task_failure": 1.0}, "task_failure is a share below 1, got 1.0"),
        ({"memory_gain": 1.5}, "memory_gain is a share below 1"),
        ({"straggler_share": 1.0}, "straggler_share is a share below 1"),
    ],
)
def test_impossible_conditions_are_refused(wrong: dict[str, float], complaint: str):
    with pytest.raises(InvalidModel, match=complaint):
        Conditions(**wrong)


def test_an_arrival_must_know_the_truth_of_all_its_jobs():
    with pytest.raises(InvalidModel, match=r"query 'q': no truth for the jobs \['j'\]"):
        Arrival(Query("q", (maps(1),)), {})
    with pytest.raises(InvalidModel, match="map_s must be a finite number of at least 0"):
        JobTruth(map_s=math.inf)
    with pytest.raises(InvalidModel, match="two queries have the id 'q'"):
        Workload("w", (arrival("q", (maps(1), 1.0)), arrival("q", (maps(1), 1.0))))
