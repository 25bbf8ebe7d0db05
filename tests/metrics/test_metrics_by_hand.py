"""Each metric on the hand-made journal, against numbers worked out on paper."""

from __future__ import annotations

import doctest
import importlib
import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.commands import Finish, Launch
from queryard.core.events import NodeJoined, NodeLost, QuerySubmitted, TableChanged, TaskFinished
from queryard.core.journal import Journal, Step
from queryard.core.model import Job, Node, Phase, Query, Split, Table, TaskId
from queryard.metrics import RunRows, read_run, summarise
from queryard.metrics.cost import cost
from queryard.metrics.deadlines import deadlines
from queryard.metrics.fairness import by_tenant, jain
from queryard.metrics.locality import locality, scanned
from queryard.metrics.response import (
    bounded_slowdowns,
    by_size_bin,
    quantile,
    slowdowns,
    spread,
    throughput_per_h,
)
from queryard.metrics.series import StepSeries
from queryard.metrics.utilisation import (
    mean_utilisation,
    slots_in_use,
    slots_present,
)

ALONE_S = {"a": 5.0, "b": 7.0, "c": 6.0, "d": 1.0, "f": 1.0}
numbers = st.lists(st.floats(0, 1e6), min_size=1, max_size=50)


def test_response_is_of_finished_queries_and_the_rest_is_counted(journal: Journal) -> None:
    summary = summarise(journal)
    counts = summary.counts
    assert (counts.submitted, counts.finished, counts.failed) == (6, 3, 1)
    assert (counts.cancelled, counts.unfinished) == (1, 1)
    assert summary.unfinished == ("f",)
    response = summary.response_s
    assert (response.count, response.mean, response.median, response.max) == (3, 14, 14, 18)
    assert response.p95 == pytest.approx(14 + 0.9 * 4)
    assert summary.wait_s.mean == pytest.approx(1 / 6)
    assert summary.makespan_s == 40


def test_throughput_is_finished_queries_per_hour(run: RunRows) -> None:
    assert throughput_per_h(run) == pytest.approx(3 / 40 * 3600)


def test_slowdown_is_response_over_time_alone(run: RunRows) -> None:
    assert slowdowns(run, ALONE_S) == {"a": 2, "b": 2, "c": 3}
    assert slowdowns(run, {"a": 0.0, "b": 7.0}) == {"b": 2}


def test_bounded_slowdown_divides_by_the_sum_of_task_seconds_but_no_less_than_min_e(
    run: RunRows,
) -> None:
    assert bounded_slowdowns(run, 1.0) == {"a": 10 / 16, "b": 14 / 16, "c": 18 / 34}
    assert bounded_slowdowns(run, 20.0) == {"a": 10 / 20, "b": 14 / 20, "c": 18 / 34}
    with pytest.raises(ValueError, match="min_e_s"):
        bounded_slowdowns(run, 0.0)


def test_size_bins_keep_their_order_and_hold_every_query(run: RunRows) -> None:
    bins = {"c": "big", "a": "small", "b": "small", "d": "small", "e": "small"}
    rows = by_size_bin(run, bins, slowdowns(run, ALONE_S), bounded_slowdowns(run))
    assert [(row.bin, row.counts.submitted) for row in rows] == [("big", 1), ("small", 4), ("", 1)]
    assert (rows[0].slowdown.mean, rows[1].slowdown.max) == (3, 2)
    assert rows[2].counts.unfinished == 1


def test_fairness_is_jain_over_tenants_and_over_queries(journal: Journal) -> None:
    fairness = summarise(journal, alone_s=ALONE_S).fairness
    assert fairness.queries == pytest.approx(7**2 / (3 * 17))
    assert fairness.tenants == pytest.approx(4.5**2 / (2 * (2**2 + 2.5**2)))


def test_each_tenant_has_a_row(run: RunRows) -> None:
    default, two = by_tenant(run, slowdowns(run, ALONE_S))
    assert (default.tenant, two.tenant) == ("default", "two")
    assert (default.counts.submitted, default.counts.finished) == (4, 1)
    assert (two.response_s.mean, two.slowdown.mean) == (16, 2.5)
    assert two.slot_s == pytest.approx(11 + 34)
    assert default.deadlines.missed == 2


def test_deadlines_are_met_missed_open_or_withdrawn(run: RunRows) -> None:
    found = deadlines(run.queries.values(), run.closed_s)
    # a is late by 2, c in time, d cancelled before 100, e failed before 90, f may make it.
    assert (found.queries, found.met, found.missed, found.open, found.withdrawn) == (5, 1, 2, 1, 1)
    assert found.squared_violation_s2 == pytest.approx(2**2 / 3)


def test_an_unfinished_query_is_late_once_its_deadline_has_passed(run: RunRows) -> None:
    found = deadlines([run.queries["f"]], 63.0)
    assert (found.missed, found.open, found.squared_violation_s2) == (1, 0, 9)


def test_slots_in_use_by_kind(run: RunRows) -> None:
    used = slots_in_use(run)
    assert used["map"] == StepSeries((10, 12, 20, 24, 25, 40), (2, 3, 2, 1, 0, 1))
    assert used["reduce"] == StepSeries()
    assert used["lease"] == StepSeries((12, 20, 24, 30), (1, 2, 3, 0))
    assert slots_present(run) == StepSeries((0, 35), (4, 2))


def test_utilisation_is_over_the_makespan(run: RunRows) -> None:
    present_s = 4 * 25 + 2 * 15
    found = mean_utilisation(run)
    map_s = 2 + 10 + 2 + 6 + 11 + 6 + 10
    assert found.map == pytest.approx(map_s / present_s)
    assert (found.reduce, found.lease) == (0, pytest.approx(34 / present_s))
    assert found.all == pytest.approx((map_s + 34) / present_s)


def test_locality_counts_placed_map_tasks(run: RunRows) -> None:
    # a0 n1 twice: local; a1 and b1 on n1: not; d1 on n2: local; b0 and f0 on n1: local.
    # e reads no table and has no preference.
    found = locality(run)
    assert (found.placed, found.local, found.share) == (7, 5, 5 / 7)


def test_a_merged_launch_reads_its_split_once(run: RunRows) -> None:
    found = scanned(run)
    # finished: the merged one (200, else 400), a0 (100), e (50), b0 (100)
    assert (found.bytes, found.alone_bytes) == (450, 650)


def test_splits_follow_the_tables_as_they_change_and_one_table_another() -> None:
    query = Query("q", jobs=(Job("s", map=Phase(3, 7.0), scans=("t", "u")),))
    tasks = [TaskId("q/s", "map", index) for index in range(3)]
    steps = [
        Step(
            0.0,
            (
                TableChanged(0.0, Table("t", (Split(10, ("n1",)),))),
                TableChanged(0.0, Table("u", (Split(20, ("n2",)), Split(0, ("n1",))))),
                QuerySubmitted(0.0, query),
            ),
            (Launch(0, "n1", (tasks[0],)), Launch(1, "n1", (tasks[1],))),
        ),
        Step(
            1.0,
            (
                TaskFinished(1.0, 0),
                TaskFinished(1.0, 1),
                TableChanged(1.0, Table("u", (Split(20, ("n2",)), Split(0, ("n2",))))),
            ),
            (Launch(2, "n1", (tasks[2],)),),
        ),
        Step(2.0, (TaskFinished(2.0, 2),), (Finish("q"),)),
    ]
    run = read_run(Journal(steps=steps))
    assert [row.reading.local for row in run.launches] == [1, 0, 0]
    assert [row.reading.bytes for row in run.launches] == [10, 20, 7]


def test_maps_behind_other_jobs_read_no_table() -> None:
    query = Query(
        "q", jobs=(Job("x", map=Phase(1, 5.0)), Job("y", map=Phase(1, 9.0), upstream=("x",)))
    )
    steps = [
        Step(0.0, (QuerySubmitted(0.0, query),), (Launch(0, "n", (TaskId("q/x", "map", 0),)),)),
        Step(1.0, (TaskFinished(1.0, 0),), (Launch(1, "n", (TaskId("q/y", "map", 0),)),)),
        Step(2.0, (TaskFinished(2.0, 1),), (Finish("q"),)),
    ]
    assert scanned(read_run(Journal(steps=steps))).bytes == 5


def test_leased_hours_round_every_stay_up() -> None:
    query = Query("q", jobs=(Job("x", map=Phase(1)),))
    steps = [
        Step(0.0, (NodeJoined(0.0, Node("n1", 1)), QuerySubmitted(0.0, query)), ()),
        Step(1800.0, (NodeJoined(1800.0, Node("n2", 1)),), ()),
        Step(3600.0, (NodeLost(3600.0, "n2"),), ()),
        Step(5400.0, (NodeJoined(5400.0, Node("n2", 1)),), ()),
        Step(7200.0, (), (Finish("q"),)),
        Step(9000.0, (NodeLost(9000.0, "n1"),), ()),
    ]
    found = cost(read_run(Journal(steps=steps)))
    assert (found.nodes, found.node_hours, found.leased_hours) == (2, 2 + 0.5 + 0.5, 2 + 1 + 1)
    assert cost(read_run(Journal(steps=steps)), unit_s=600).leased_hours == 3


def test_attempts_are_counted_by_their_end(journal: Journal) -> None:
    found = summarise(journal).attempts
    assert (found.launches, found.finished, found.failed, found.killed) == (7, 4, 1, 1)
    assert (found.lost, found.running, found.retries) == (0, 1, 1)


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [Step(0.0, (NodeJoined(0.0, Node("n", 1)),), ())],
        [Step(5.0, (QuerySubmitted(5.0, Query("q", (Job("x", map=Phase(1)),))),), ())],
        [Step(5.0, (QuerySubmitted(5.0, Query("q", (Job("x", map=Phase(1)),))),), (Finish("q"),))],
    ],
    ids=["nothing", "a node", "a waiting query", "a query of no time"],
)
def test_empty_runs_have_a_summary_that_is_valid_json(steps: list[Step]) -> None:
    summary = summarise(Journal(steps=steps), alone_s={"q": 1.0}, size_bins={"q": "small"})
    plain = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    submitted = sum(isinstance(event, QuerySubmitted) for step in steps for event in step.events)
    finished = sum(isinstance(command, Finish) for step in steps for command in step.commands)
    assert plain["counts"]["submitted"] == submitted
    assert plain["counts"]["finished"] == finished
    assert plain["response_s"]["mean"] == (0.0 if finished else None)


def test_the_json_has_every_part(journal: Journal) -> None:
    summary = summarise(journal, alone_s=ALONE_S, size_bins=dict.fromkeys("abcdef", "all"))
    plain = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert plain["counts"]["unfinished"] == 1
    assert plain["unfinished"] == ["f"]
    assert plain["slowdown"]["max"] == 3
    assert [row["tenant"] for row in plain["tenants"]] == ["default", "two"]
    assert plain["size_bins"][0]["bin"] == "all"
    assert plain["online"] == []


@given(numbers)
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    index = jain(values)
    assert index is not None
    assert 1 / len(values) - 1e-9 <= index <= 1 + 1e-9


@given(numbers)
def test_the_spread_is_ordered_and_agrees_with_the_standard_library(values: list[float]) -> None:
    found = spread(values)
    ordered = sorted(values)
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.median == pytest.approx(statistics.median(values))
    assert found.max == ordered[-1]
    if len(values) > 1:
        cuts = statistics.quantiles(values, n=100, method="inclusive")
        assert quantile(ordered, 0.95) == pytest.approx(cuts[94], abs=1e-6)


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(-3, 3)), max_size=30),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_the_area_under_a_series_is_the_sum_of_its_instants(
    changes: list[tuple[int, int]], start: int, end: int
) -> None:
    series = StepSeries.of_changes(changes)
    seconds = range(start, end)
    by_second = [sum(change for time, change in changes if time <= second) for second in seconds]
    assert math.isclose(series.integral(start, end), sum(by_second))
    assert [series.at(second + 0.5) for second in seconds] == by_second


@pytest.mark.parametrize("name", ["response", "fairness", "series", "summary"])
def test_the_examples_in_the_documentation_hold(name: str) -> None:
    module = importlib.import_module(f"queryard.metrics.{name}")
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
