"""What was parsed is kept for others within a budget; riders pay for the ride only."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core import events as ev
from queryard.core.model import Divisible, Job, Node, Phase, Query, Split, Table
from queryard.sim import Conditions, simulate
from queryard.sim.run import build, run_to_end
from queryard.sim.segments import Segments
from queryard.workload.model import Arrival, JobTruth, Workload

SHARED = {"sharing": "circular"}
PAYING = {"sharing": {"name": "circular", "when": "pays"}}
APART = {"sharing": "none"}
ONE = [Node("n", 1)]
TEXT = Table("text", tuple(Split(100.0) for _ in range(10)))
PLENTY = Conditions(segment_cache_bytes=1e9, kept_share=1.0)
# A map takes 1 s alone; to parse for all 2.5 s, to ride 0.1 s.
TRUTH = JobTruth(map_s=1.0, make_s=2.5, ride_s=0.1)
ONLINE = JobTruth(work_s=10.0, make_s=25.0, ride_s=1.0)


def scans(name: str, at: float, truth: JobTruth = TRUTH, splits: int = 10) -> Arrival:
    job = Job("scan", map=Phase(splits), scans=("text",))
    return Arrival(Query(name, (job,), submit_s=at), {"scan": truth})


def online(name: str, at: float, truth: JobTruth = ONLINE, batches: int = 10) -> Arrival:
    job = Job("ask", scans=("text",), divisible=Divisible(1, batches, span="cluster"))
    return Arrival(Query(name, (job,), submit_s=at, kind="online"), {"ask": truth})


def ends(profile: Any, *arrivals: Arrival, conditions: Conditions = PLENTY) -> dict[str, float]:
    found = simulate(Workload("w", arrivals, (TEXT,)), ONE, profile, conditions=conditions)
    return {name: pytest.approx(end) for name, end in found.ends.items()}


def test_alone_a_job_pays_for_its_scan():
    assert ends(APART, scans("a", 0.0)) == {"a": 10.0}


def test_riders_pay_once_for_parsing_and_each_for_its_ride():
    assert ends(SHARED, scans("a", 0.0), scans("b", 0.0)) == {"a": 27.0, "b": 27.0}


def test_a_later_job_rides_on_what_is_kept():
    assert ends(SHARED, scans("a", 0.0), scans("b", 50.0)) == {"a": 26.0, "b": 51.0}


def test_nothing_is_kept_without_a_budget():
    found = ends(SHARED, scans("a", 0.0), scans("b", 50.0), conditions=Conditions())
    assert found == {"a": 26.0, "b": 76.0}


def test_with_half_the_budget_a_circle_never_finds_what_it_needs():
    half = Conditions(segment_cache_bytes=500.0, kept_share=1.0)
    # The least recently read segment goes first, so a second scan from the start finds none.
    assert ends(SHARED, scans("a", 0.0), scans("b", 50.0), conditions=half)["b"] == 76.0


def test_what_was_kept_of_a_changed_table_is_dropped():
    workload = Workload("w", (scans("a", 0.0), scans("b", 50.0)), (TEXT,))
    driver = build(workload, ONE, SHARED, conditions=PLENTY)
    changed = Table("text", tuple(Split(101.0) for _ in range(10)))
    driver.post(40.0, 0, ev.TableChanged(40.0, changed))
    assert run_to_end(driver).ends["b"] == pytest.approx(76.0)


def test_the_kernel_hears_what_is_kept_and_of_the_change():
    workload = Workload("w", (scans("a", 0.0),), (TEXT,))
    driver = build(workload, ONE, SHARED, conditions=PLENTY)
    driver.run(until_s=14.0)
    assert driver.scheduler.state.kept == {"text": 0.4}
    driver.run()
    driver.scheduler.handle(ev.TableChanged(driver.now, TEXT))
    assert driver.scheduler.state.kept == {}


def test_a_lost_host_keeps_nothing():
    segments = Segments(1e3, 1.0, {})
    segments.keep("h", TEXT, 3)
    assert (segments.kept("h", TEXT, 3), segments.kept("g", TEXT, 3)) == (1.0, 0.0)
    assert list(segments.changed_shares()) == []
    segments.lose("h")
    assert segments.kept("h", TEXT, 3) == 0.0


# --- online jobs -------------------------------------------------------------------------


def test_online_riders_go_round_one_circle_and_parse_once():
    found = ends(SHARED | {"order": "fair"}, *(online(name, 0.0) for name in "abcd"))
    # One of them parses a batch, which takes 2.6 s, and for the three others it is a ride of 0.1 s.
    assert max(end.expected for end in found.values()) == pytest.approx(25.0 + 4 * 1.0)


def test_without_sharing_each_parses_for_itself():
    found = ends(APART | {"order": "fair"}, *(online(name, 0.0) for name in "abcd"))
    assert max(end.expected for end in found.values()) == pytest.approx(40.0)


def test_a_new_rider_begins_where_the_others_are():
    workload = Workload("w", (online("a", 0.0), online("b", 13.0)), (TEXT,))
    driver = build(workload, [Node("n", 2)], SHARED, conditions=PLENTY)
    driver.run(until_s=14.0)
    readers = {name: job.reader for name, job in driver._leasing._jobs.items()}
    assert {name: reader.start for name, reader in readers.items() if reader} == {
        "a/ask": 0,
        "b/ask": 5,
    }
    assert readers["b/ask"] is not None
    assert list(readers["b/ask"].places(6)) == [0]


def test_batches_may_be_more_or_fewer_than_splits():
    assert ends(SHARED, online("a", 0.0, batches=5)) == {"a": 26.0}
    assert ends(APART, online("a", 0.0, batches=20)) == {"a": 10.0}


def test_two_online_riders_do_not_pay_and_three_do():
    fair = PAYING | {"order": "fair"}
    apart = ends(fair, *(online(name, 0.0) for name in "ab"))
    together = ends(fair, *(online(name, 0.0) for name in "abc"))
    assert max(end.expected for end in apart.values()) == pytest.approx(20.0)
    assert max(end.expected for end in together.values()) <= 28.1
