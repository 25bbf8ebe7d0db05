"""Scans are shared only while that takes less than scans apart; a portfolio can choose it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queryard.core import events as ev
from queryard.core.errors import InvalidProfile
from queryard.core.model import Job, Node, Phase, Query, Split, Table
from queryard.policies import compose, resolve_profile
from queryard.policies.sharing.circular import Circular
from queryard.portfolio import PortfolioSettings, Selector
from queryard.sim import Conditions, forecast, replay, simulate
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload
from queryard.workload.scan_costs import SCAN_COSTS, with_scan_costs

SPLITS = 20
ONE = [Node("n", 1)]
TABLE = Table("t", tuple(Split(1e6) for _ in range(SPLITS)))
ALWAYS, PAYS, APART = (
    {"sharing": "circular"},
    {"sharing": {"name": "circular", "when": "pays"}},
    {"sharing": "none"},
)
KEEPS = Conditions(segment_cache_bytes=1e9)


def workload(kind: str, *submits_s: float) -> Workload:
    job = Job("scan", map=Phase(SPLITS), scans=("t",))
    truth = JobTruth(map_s=1.0)
    if kind:
        truth = with_scan_costs(truth, kind)
    arrivals = tuple(
        Arrival(Query(f"q{number}", (job,), submit_s=at_s), {"scan": truth})
        for number, at_s in enumerate(submits_s)
    )
    return Workload("w", arrivals, (TABLE,))


def busy_s(kind: str, profile: dict, *submits_s: float, keeps: Conditions = KEEPS) -> float:
    """The slot-seconds of all launches."""
    found = simulate(workload(kind, *submits_s), ONE, profile, conditions=keeps)
    launched, total = {}, 0.0
    for step in found.journal.steps:
        for event in step.events:
            if isinstance(event, ev.TaskFinished):
                total += step.time_s - launched.pop(event.launch)
        launched.update((c.number, step.time_s) for c in step.commands if hasattr(c, "number"))
    assert replay(found.journal) is None
    return total


@pytest.mark.parametrize("riders", [1, 2, 3, 5, 20])
@pytest.mark.parametrize("kind", sorted(SCAN_COSTS))
def test_with_the_rule_work_is_the_less_of_both(kind: str, riders: int):
    submits_s = (0.0,) * riders
    least = min(busy_s(kind, ALWAYS, *submits_s), busy_s(kind, APART, *submits_s))
    assert busy_s(kind, PAYS, *submits_s) <= least * 1.05


def test_narrow_columns_are_never_shared():
    submits_s = (0.0,) * 20
    assert busy_s("narrow", PAYS, *submits_s) == pytest.approx(20.0 * SPLITS)
    assert busy_s("narrow", ALWAYS, *submits_s) > 20.0 * SPLITS


def test_a_job_that_read_for_itself_rides_along_once_it_pays():
    together = busy_s("text", PAYS, 0.0, 1.5, 1.5, 1.5)
    assert together < 0.75 * busy_s("text", APART, 0.0, 1.5, 1.5, 1.5)


def test_kept_segments_are_always_ridden_on():
    first = busy_s("text", PAYS, 0.0, 0.0, 0.0)
    assert busy_s("text", PAYS, 0.0, 0.0, 0.0, 500.0) == pytest.approx(first + 0.04 * SPLITS)


def test_after_passes_with_company_the_first_job_parses_for_those_to_come():
    rushes = [100.0 * turn + 0.5 * number for turn in range(6) for number in range(4)]
    found = simulate(workload("text", *rushes), ONE, PAYS)
    launches = [c for step in found.journal.steps for c in step.commands if hasattr(c, "round")]
    first = next(c for c in launches if c.tasks[0].job == "q0/scan")
    last = next(c for c in launches if c.tasks[0].job == "q20/scan")
    assert not first.round
    assert last.round


def test_what_was_seen_of_passes_is_kept_when_the_policy_is_chosen_again():
    rushes = [100.0 * turn + 0.5 * number for turn in range(6) for number in range(4)]
    driver = build(workload("text", *rushes), ONE, PAYS)
    driver.run(until_s=399.0)
    before = driver.scheduler.sharing
    assert isinstance(before, Circular)
    expected = before._company.further("t")
    driver.scheduler.handle(ev.PolicyChosen(399.0, PAYS))
    after = driver.scheduler.sharing
    assert isinstance(after, Circular)
    assert after is not before
    assert after._company.further("t") == expected > 1.0


def test_without_costs_jobs_share_as_they_always_did():
    found = [
        simulate(workload("", 0.0, 5.0, 11.0), ONE, profile).ends for profile in (ALWAYS, PAYS)
    ]
    assert found[0] == found[1]


@settings(max_examples=25, deadline=None)
@given(
    submits=st.lists(st.floats(0.0, 60.0), min_size=1, max_size=6),
    kind=st.sampled_from(sorted(SCAN_COSTS)),
    slots=st.integers(1, 4),
)
def test_every_split_is_read_once_by_each(submits: list[float], kind: str, slots: int):
    found = simulate(workload(kind, *submits), [Node("n", slots)], PAYS, conditions=KEEPS)
    tasks = [t for s in found.journal.steps for c in s.commands for t in getattr(c, "tasks", ())]
    assert len(tasks) == len(set(tasks)) == SPLITS * len(submits)
    assert found.unfinished == 0


def test_a_wrong_word_is_refused():
    with pytest.raises(InvalidProfile, match=r"unknown when 'sometimes'.*always, pays"):
        compose({"sharing": {"name": "circular", "when": "sometimes"}})


# --- forecasts and portfolios ------------------------------------------------------------


def test_a_forecast_counts_what_is_kept():
    driver = build(workload("text", 0.0, 0.0, 0.0, 100.0), ONE, PAYS, conditions=KEEPS)
    driver.run(until_s=100.0)
    assert driver.scheduler.state.kept == {"t": 1.0}
    expected_s = forecast(driver.scheduler)["q3"].end_s
    driver.run()
    assert expected_s == pytest.approx(driver.ends["q3"])
    assert expected_s < 102.0


@pytest.mark.parametrize(("kind", "best"), [("text", "together"), ("narrow", "apart")])
def test_a_portfolio_chooses_to_share_or_not(kind: str, best: str):
    driver = build(workload(kind, *(0.0,) * 6), ONE, APART)
    driver.run(until_s=0.0)
    candidates = {
        "together": {**resolve_profile("s3"), "name": "together"},
        "apart": {**resolve_profile("fifo"), "name": "apart"},
    }
    selector = Selector(PortfolioSettings(candidates=candidates))
    assert selector.decide(driver.scheduler).policy == best


def test_estimates_that_err_change_the_choice_and_nothing_else():
    truth = replace(with_scan_costs(JobTruth(), "text"), make_s=1e3)
    job = Job("scan", map=Phase(SPLITS), scans=("t",))
    arrivals = tuple(Arrival(Query(f"q{i}", (job,)), {"scan": truth}) for i in range(5))
    ends = simulate(Workload("w", arrivals, (TABLE,)), ONE, PAYS).ends
    assert max(ends.values()) == pytest.approx(5.0 * SPLITS)
