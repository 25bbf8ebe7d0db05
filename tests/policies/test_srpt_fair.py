"""Small queries soon, large ones in their time, deadlines and priorities."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from queryard.core.errors import InvalidProfile
from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import compose
from queryard.policies.orders.alike import Alike
from queryard.sim import replay
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.references import Demand, processor_sharing
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload


def asked(name: str, at_s: float, work_s: float, slots: int = 2, **query: Any) -> Arrival:
    jobs = (Job("d", divisible=Divisible(slots)),)
    return Arrival(Query(name, jobs, submit_s=at_s, **query), {"d": JobTruth(work_s=work_s)})


def run(*arrivals: Arrival, slots: int = 2, estimates: str = "oracle", **order: Any) -> SimDriver:
    driver = build(
        Workload("w", arrivals),
        [Node("n", slots)],
        {"order": {"name": "srpt-fair", **order}},
        conditions=Conditions(revoke_delay_s=0.01),
        estimates=estimates,
    )
    driver.run()
    assert not driver.unfinished
    return driver


def order_of(driver: SimDriver) -> list[str]:
    return sorted(driver.ends, key=lambda name: driver.ends[name])


def test_the_least_work_left_goes_first_and_takes_the_slots():
    driver = run(asked("large", 0.0, 20.0), asked("small", 1.0, 1.0))
    assert order_of(driver) == ["small", "large"]
    assert driver.ends["small"] == pytest.approx(1.51)
    assert driver.ends["large"] == pytest.approx(10.5, abs=0.05)


def test_slots_do_not_change_hands_for_about_the_same_work():
    driver = run(asked("first", 0.0, 4.0), asked("second", 0.5, 2.5))
    assert order_of(driver) == ["first", "second"]
    assert driver.ends["first"] == 2.0


def test_a_large_query_ends_not_much_later_than_under_equal_sharing():
    small = [asked(f"s{i}", i * 2.6, 5.0) for i in range(150)]
    driver = run(asked("large", 0.25, 30.0), *small, ageing=0.67)
    demands = [Demand("large", 0.25, 30.0, 15.0)]
    demands += [Demand(f"s{i}", i * 2.6, 5.0, 2.5) for i in range(150)]
    shared_s = processor_sharing(demands, 2)["large"]
    assert driver.ends["large"] - 0.25 <= 1.55 * shared_s
    never = run(asked("large", 0.25, 30.0), *small, ageing=0.0)
    assert driver.ends["large"] < 0.9 * never.ends["large"]


@pytest.mark.parametrize("seed", range(5))
def test_with_full_ageing_no_query_ends_later_than_under_equal_sharing(seed: int):
    draw = random.Random(seed)
    works = [math.exp(draw.uniform(-1, 3)) for _ in range(30)]
    times = [draw.uniform(0, 60) for _ in works]
    arrivals = [
        asked(f"q{i}", at, work) for i, (at, work) in enumerate(zip(times, works, strict=True))
    ]
    driver = run(*arrivals, ageing=1.0, begun=1.0)
    demands = [
        Demand(f"q{i}", at, work, work / 2)
        for i, (at, work) in enumerate(zip(times, works, strict=True))
    ]
    for name, response_s in processor_sharing(demands, 2).items():
        taken_s = driver.ends[name] - times[int(name[1:])]
        # Slots come back after a moment, several times.
        assert taken_s <= response_s * 1.05 + 0.2


def test_a_deadline_in_sight_goes_before_larger_work():
    others = [asked(f"q{i}", 0.0, 6.0) for i in range(3)]
    assert order_of(run(*others, asked("due", 0.0, 8.0, deadline_s=9.0)))[0] == "due"
    assert order_of(run(*others, asked("due", 0.0, 8.0)))[-1] == "due"


def test_a_deadline_far_away_does_not_hurry_until_it_is_in_sight():
    others = [asked(f"q{i:02}", 0.0, 6.0) for i in range(20)]
    driver = run(*others, asked("due", 0.0, 8.0, deadline_s=30.0))
    order = order_of(driver)
    assert 2 < order.index("due") < 15
    assert driver.ends["due"] <= 30.0


def test_small_queries_still_pass_one_with_a_deadline():
    driver = run(asked("due", 0.0, 40.0, deadline_s=25.0), asked("tiny", 1.0, 0.2))
    assert order_of(driver) == ["tiny", "due"]
    assert driver.ends["due"] <= 25.0


def test_a_deadline_that_has_passed_hurries_no_query():
    driver = run(asked("late", 0.0, 40.0, deadline_s=2.0), asked("next", 3.0, 10.0))
    assert order_of(driver) == ["next", "late"]


def test_a_higher_priority_goes_before_everything_else():
    driver = run(
        asked("small", 0.0, 1.0),
        asked("due", 0.0, 4.0, deadline_s=2.5),
        asked("boss", 0.0, 30.0, priority=1.0),
    )
    assert order_of(driver)[0] == "boss"
    assert driver.ends["boss"] == 15.0


def test_the_record_of_a_run_with_wrong_estimates_replays():
    draw = random.Random(3)
    arrivals = [
        asked(
            f"q{i}", draw.uniform(0, 20), draw.uniform(0.1, 9), deadline_s=draw.choice((None, 30))
        )
        for i in range(25)
    ]
    driver = run(*arrivals, estimates="oracle:0.6")
    assert driver.scheduler.journal is not None
    assert replay(driver.scheduler.journal) is None


def test_what_has_ended_is_forgotten():
    arrivals = [asked(f"q{i}", i * 0.55, 1.0) for i in range(600)]
    driver = run(asked("long", 0.0, 60.0), *arrivals)
    (order,) = [part for part in driver.scheduler.parts if part.name == "srpt-fair"]
    assert len(order._alike) < 250  # type: ignore[attr-defined]


def test_equal_sharing_follows_estimates_that_change():
    alike = Alike()
    alike.expect(1, 4.0)
    alike.expect(2, 4.0)
    alike.expect(1, 1.0)
    alike.serve(2.0)
    assert alike.level_s == 1.0, "the first has ended"
    alike.expect(1, 3.0)
    alike.serve(4.0)
    assert alike.level_s == 3.0, "it is back, with more to do"
    twin = alike.fork()
    twin.serve(9.0)
    assert (alike.level_s, twin.level_s) == (3.0, 4.0)


@pytest.mark.parametrize(
    "wrong", [{"ageing": -0.1}, {"begun": 1.5}, {"hurry": "much"}, {"slack": 0.0}]
)
def test_settings_are_checked(wrong: dict[str, Any]):
    name = next(iter(wrong))
    with pytest.raises(InvalidProfile, match=f"order, srpt-fair: {name} must be a number"):
        compose({"order": {"name": "srpt-fair", **wrong}})
