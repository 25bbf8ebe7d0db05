"""POSUM's workloads, what its schedulers score on them, and the three experiments in small."""

from __future__ import annotations

from itertools import pairwise

import pytest

from queryard.policies import compose
from queryard.portfolio import Decision, QueryEnd, Schedule
from research import EXPERIMENTS, Outcome, RunOptions
from research.numbers import margin
from research.outcome import Verdict
from research.posum.borrowing import borrowing_table
from research.posum.jobs import KINDS
from research.posum.pairs import (
    COST_WEIGHT,
    MAX_SLOWDOWN,
    begun_hours,
    node_hours,
    pairs,
    scored,
)
from research.posum.published import PUBLISHED
from research.posum.schedulers import (
    MODES,
    POLICIES,
    Played,
    Rule,
    by_policy,
    by_portfolio,
    gap,
    peak_queue,
    play_portfolio,
    portfolio_of,
)
from research.posum.scores import less_violation
from research.posum.usage import shares
from research.posum.workloads import (
    INTERVAL_S,
    WORKLOADS,
    Draw,
    posum_nodes,
    posum_setting,
)
from tests.long_forms import except_for

SMALL = RunOptions(seeds=1, size=0.03)
NAMES = ("posum-scores", "posum-usage", "posum-provisioning")
RULES: tuple[Rule, ...] = ("published", "slow", "reflecting")


# --- the workload ----------------------------------------------------------------------------


def test_the_cluster_is_the_published_one() -> None:
    assert [node.slots for node in posum_nodes()] == [16] * 8


def test_an_hour_is_an_even_mix_with_three_in_ten_deadlines() -> None:
    arrivals = posum_setting(Draw(1), 0).workload.arrivals
    count = len(arrivals)
    assert 0.7 < count * INTERVAL_S / 3600 < 1.3
    assert all(0 <= arrival.query.submit_s < 3600 for arrival in arrivals)
    kinds = [arrival.query.class_name for arrival in arrivals]
    assert all(abs(kinds.count(kind.name) - count / len(KINDS)) < 1 for kind in KINDS)
    due = [arrival for arrival in arrivals if arrival.query.deadline_s is not None]
    assert len(due) == round(0.3 * count)


def test_jobs_have_the_published_sizes_and_their_tasks_times_of_their_own() -> None:
    by_name = {kind.name: kind for kind in KINDS}
    for arrival in posum_setting(Draw(1), 0).workload.arrivals:
        kind = by_name[arrival.query.class_name]
        job, truth = arrival.query.jobs[0], arrival.truth["job"]
        assert job.map is not None
        assert job.reduce is not None
        assert kind.least_gb <= job.map.bytes / 1e9 <= kind.most_gb + 1e-6
        assert job.reduce.tasks == kind.reduces
        assert len(truth.map_times_s) == job.map.tasks
        assert len(truth.reduce_times_s) == kind.reduces


def test_runs_of_a_workload_differ_in_luck_only() -> None:
    first, again, other = (posum_setting(Draw(1, hours=0.2), run).workload for run in (0, 0, 1))
    assert first == again
    assert [a.query for a in first.arrivals] == [a.query for a in other.arrivals]
    assert first.tables == other.tables
    assert all(
        a.truth["job"].map_times_s != b.truth["job"].map_times_s
        for a, b in zip(first.arrivals, other.arrivals, strict=True)
    )


def test_the_two_workloads_are_the_first_with_ten_to_twenty_jobs_at_most() -> None:
    peaks = {
        number: peak_queue(by_policy(Draw(number), 0, "fifo").schedule) for number in (1, 2, 3)
    }
    fitting = [number for number, most in peaks.items() if 10 <= most <= 20]
    assert fitting == list(WORKLOADS.values())


def test_intervals_can_be_poisson_numbers() -> None:
    times_s = [
        arrival.query.submit_s
        for arrival in posum_setting(Draw(1, rhythm="intervals"), 0).workload.arrivals
    ]
    steps_s = [after - before for before, after in pairwise(times_s)]
    assert all(step_s == int(step_s) for step_s in steps_s)
    assert max(steps_s) < 2 * INTERVAL_S


# --- scores ----------------------------------------------------------------------------------


def test_what_was_printed_adds_up() -> None:
    for rows in PUBLISHED.values():
        assert set(rows) == {*POLICIES, *MODES}
        for row in rows.values():
            assert row.batch.average + row.deadline.average == pytest.approx(
                row.mixed.average, abs=1
            )


def test_margins_are_those_of_the_thesis() -> None:
    # Four runs of mean 731 and standard deviation 80 have a margin of 94.
    spread = 80 * (3 / 4) ** 0.5
    values = [731 - spread, 731 - spread, 731 + spread, 731 + spread]
    assert margin(values, 90) == pytest.approx(94, abs=0.5)
    assert margin([731.0], 90) == 0


def test_edls_sh_costs_batch_jobs_less_when_it_borrows() -> None:
    draws = {"workload 1": [Draw(WORKLOADS[1], hours=0.1)]}
    table = borrowing_table(RunOptions(seeds=1, size=0.1), draws)
    caps, borrowing = table.rows
    assert (caps[0], borrowing[0]) == ("workload 1, hard caps", "workload 1, borrowing")
    assert (caps[3], borrowing[3]) == ("16.7", "16.7")
    assert float(borrowing[4]) < float(caps[4])


def test_a_score_and_its_parts() -> None:
    ends = (QueryEnd("a", 0.0, 10.0, 100.0), QueryEnd("b", 0.0, 13.0, 1.0, deadline_s=10.0))
    played = Played(Schedule(ends, (3700.0, 100.0)), 13.0)
    assert (played.batch, played.deadline, played.score("mixed")) == (10.0, 9.0, 19.0)
    assert begun_hours(played) == 3
    assert node_hours(played) == pytest.approx(3800 / 3600)
    assert scored(played) == pytest.approx(19 + 3 * COST_WEIGHT)


def test_gaps_are_shares_of_the_mean_and_may_not_exist() -> None:
    found = gap([12.0, 30.0], [10.0, 30.0])
    assert found is not None
    assert found.mean == pytest.approx(0.05)
    assert gap([1.0], [0.0]) is None


def test_the_same_run_is_the_same_score() -> None:
    draw = Draw(1, hours=0.1)
    first, again = (
        play_portfolio(posum_setting(draw, 0), portfolio_of("mixed"), 0) for _ in range(2)
    )
    assert first.schedule == again.schedule
    assert by_portfolio(draw, 0, "mixed") is by_portfolio(draw, 0, "mixed", "published", "standard")


def test_rules_of_the_portfolio() -> None:
    published, slow, ours = (portfolio_of("batch", rule) for rule in RULES)
    assert list(published.candidates) == list(POLICIES)
    assert (published.least_s, published.period_s, published.margin) == (30, 30, 0)
    assert slow.launch_cost_s > published.launch_cost_s
    assert ours.margin > 0


def test_reserved_slots_cost_batch_jobs_dear_and_spare_deadlines() -> None:
    srtf, reserved = (by_policy(Draw(WORKLOADS[1]), 0, name) for name in ("srtf", "edls-sh"))
    assert reserved.batch > 2 * srtf.batch
    assert reserved.deadline < srtf.deadline


def late(*late_s: float) -> list[Played]:
    """A run for each of these, with one job so much too late."""
    ends = (QueryEnd("a", 0.0, 10.0 + each, 1.0, deadline_s=10.0) for each in late_s)
    return [Played(Schedule((end,)), 99.0) for end in ends]


def test_modes_that_violate_less_must_be_the_printed_ones() -> None:
    assert PUBLISHED[1]["batch"].deadline.average < PUBLISHED[1]["srtf"].deadline.average
    better, worse = late(1.0, 1.1), late(9.0, 9.1)
    runs = {"srtf": late(5.0, 5.1), "mixed": better, "deadline": better}
    found = less_violation("workload 1", PUBLISHED[1], {**runs, "batch": better})
    assert (found.verdict, found.note) == (Verdict.AGREES, "")
    found = less_violation("workload 1", PUBLISHED[1], {**runs, "batch": worse})
    assert found.ours == "mixed, deadline"
    assert (found.verdict, found.note) == (Verdict.DIFFERS, "other than printed: batch")


def test_modes_that_violate_less_by_chance_are_said_to() -> None:
    better, unsure = late(1.0, 1.1), late(1.0, 9.0)
    runs = {"srtf": late(5.0, 5.1), "mixed": better, "deadline": better, "batch": unsure}
    found = less_violation("workload 1", PUBLISHED[1], runs)
    assert found.verdict is None
    assert found.note == "other than printed: batch; within chance: batch"


# --- usage and provisioning ------------------------------------------------------------------


def test_shares_of_the_time_in_force() -> None:
    chosen = [(10.0, "srtf"), (40.0, "locf"), (70.0, "srtf")]
    decisions = tuple(
        Decision(at_s, name, "srtf", {}, 1, 1, 0.0, in_force_s=at_s) for at_s, name in chosen
    )
    found = shares(Played(Schedule(()), 110.0, decisions))
    assert found == {"srtf": 0.7, "locf": 0.3, "edls-sh": 0.0, "edls-pr": 0.0}


def test_all_sixteen_pairs_are_policies() -> None:
    found = pairs(POLICIES)
    assert len(found) == 16
    for profile in found.values():
        assert compose(profile).provisioning.name == profile["provisioning"]["name"]
    assert found["locf maxbsd"]["provisioning"]["max_slowdown"] == MAX_SLOWDOWN


@pytest.fixture(scope="module", params=except_for(NAMES, "posum-provisioning", "posum-scores"))
def outcome(request: pytest.FixtureRequest) -> Outcome:
    return EXPERIMENTS[request.param].run(SMALL)


def test_an_experiment_in_small(outcome: Outcome) -> None:
    assert outcome.findings
    assert outcome.charts
    assert outcome.notes
    assert not any("nan" in finding.ours for finding in outcome.findings)
    for table in outcome.tables:
        assert table.rows
        # Each says on how many runs it rests.
        assert "1 seed)" in table.title or "seeds" in table.columns
        assert all(len(row) == len(table.columns) for row in table.rows)
