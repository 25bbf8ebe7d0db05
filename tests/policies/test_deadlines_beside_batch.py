"""EDLS-Sh, EDLS-Pr and the version that borrows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_driver import Yard

from queryard.core import events as ev
from queryard.core import lots
from queryard.core.commands import Grant
from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import compose, resolve_profile
from queryard.sim import replay
from queryard.sim.conditions import Conditions
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload


def both(profile: str, slots: str, deadline_tasks: int, batch_tasks: int) -> Yard:
    yard = Yard(profile, slots)
    if deadline_tasks:
        yard.submit("dc", [("work", deadline_tasks, 1.0)], deadline_s=1e6)
    if batch_tasks:
        yard.submit("bc", [("work", batch_tasks, 1.0)])
    return yard


def test_edls_sh_leaves_reserved_slots_idle():
    assert both("edls-sh", "1x10", 0, 90).run().ends == {"bc": 30.0}
    assert both("edls-sh", "1x10", 70, 0).run().ends == {"dc": 10.0}
    assert both("edls-sh", "1x10", 70, 30).run().ends == {"dc": 10.0, "bc": 10.0}
    assert not compose(resolve_profile("edls-sh")).work_conserving


@pytest.mark.parametrize("slots", range(2, 33))
def test_edls_sh_leaves_no_slot_to_neither_part(slots: int):
    """0.7 and 0.3 of 4, 5, 8, 16 … slots are no whole numbers; all slots are used all the same."""
    yard = both("edls-sh", f"1x{slots}", 200, 200).run(0.0)
    deadline, batch = yard.slots_of("dc"), yard.slots_of("bc")
    assert deadline + batch == slots
    assert abs(deadline - 0.7 * slots) < 1


def test_edls_sh_at_the_size_of_the_paper():
    yard = both("edls-sh", "8x16", 200, 200).run(0.0)
    assert (yard.slots_of("dc"), yard.slots_of("bc")) == (90, 38)


def test_caps_beside_a_default_are_rounded_down_one_by_one():
    pools = {
        "by": "deadline",
        "children": {"deadline": {"order": "edf", "cap": 0.7}},
        "default": {"order": "fifo", "cap": 0.3},
    }
    yard = Yard({"pools": pools}, "1x4")
    yard.submit("dc", [("work", 9, 1.0)], deadline_s=9.0).submit("bc", [("work", 9, 1.0)]).run(0.0)
    assert (yard.slots_of("dc"), yard.slots_of("bc")) == (2, 1)


def test_the_borrowing_form_differs_only_where_a_part_is_idle():
    capped, borrows = (resolve_profile(name) for name in ("edls-sh", "edls-sh-borrow"))
    for name, pool in borrows["pools"]["children"].items():
        of_cap = capped["pools"]["children"][name]
        assert (pool["order"], pool["guarantee"]) == (of_cap["order"], of_cap["cap"])
    assert both("edls-sh-borrow", "1x10", 70, 30).run().ends == {"dc": 10.0, "bc": 10.0}
    assert both("edls-sh-borrow", "1x10", 0, 90).run().ends == {"bc": 9.0}
    assert both("edls-sh-borrow", "1x10", 90, 0).run().ends == {"dc": 9.0}
    assert compose(borrows).work_conserving


def test_edls_sh_orders_each_part_by_its_own_rule():
    yard = Yard("edls-sh", "1x10")
    yard.submit("late", [("work", 7, 1.0)], deadline_s=90.0)
    yard.submit("soon", [("work", 7, 1.0)], deadline_s=50.0)
    yard.submit("large", [("work", 30, 1.0)]).submit("small", [("work", 3, 1.0)], 0.5)
    yard.run()
    assert yard.ends["soon"] == 1.0
    assert yard.ends["late"] == 2.0
    # At 1 s the large one is slowed by 1/30, the small one by 0.5/3.
    assert yard.ends["small"] == 2.0


def test_the_version_that_borrows_leaves_nothing_idle():
    assert both("deadline-first", "1x10", 0, 90).run().ends == {"bc": 9.0}
    assert both("deadline-first", "1x10", 90, 0).run().ends == {"dc": 9.0}
    yard = both("deadline-first", "1x10", 70, 30).run(0.0)
    assert yard.slots_of("dc") >= 7
    assert compose(resolve_profile("deadline-first")).work_conserving


def test_edls_pr_serves_deadlines_first_with_probability_delta():
    yard = both("edls-pr", "1x1", 2000, 2000).run(999.0)
    served = sum(launch.job == "dc/work" for launch in yard.launches)
    assert len(yard.launches) == 1000
    assert served / 1000 == pytest.approx(0.7, abs=0.05)


def test_edls_pr_gives_the_turn_to_the_other_queue_if_one_is_empty():
    assert both("edls-pr", "1x10", 0, 90).run().ends == {"bc": 9.0}
    assert both("edls-pr", "1x10", 90, 0).run().ends == {"dc": 9.0}
    assert compose(resolve_profile("edls-pr")).work_conserving


def test_edls_pr_draws_from_the_state():
    first = both("edls-pr", "1x2", 50, 50).run(10.0)
    fork = first.scheduler.fork()
    assert fork.state.random.getstate() == first.state.random.getstate()
    assert both("edls-pr", "1x2", 50, 50).run().launches == first.run().launches


# --- EDLS-Pr where slots are leased --------------------------------------------------------------


def leases(slots: int, until_s: float, seed: int = 0, profile: Any = "edls-pr") -> SimDriver:
    """A batch query, then one with a deadline, both able to use all slots."""
    job = Job("d", divisible=Divisible(slots))
    truth = {"d": JobTruth(work_s=1e6)}
    arrivals = (
        Arrival(Query("bc", (job,)), truth),
        Arrival(Query("dc", (job,), deadline_s=1e6), truth),
    )
    driver = build(
        Workload("w", arrivals),
        [Node("n", slots)],
        profile,
        seed=seed,
        conditions=Conditions(revoke_delay_s=0.01),
    )
    driver.run(until_s)
    return driver


def slot_seconds(driver: SimDriver) -> Counter[str]:
    total: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    now = 0.0
    assert driver.scheduler.journal is not None
    for step in driver.scheduler.journal.steps:
        for name, count in slots.items():
            total[name] += count * (step.time_s - now)
        now = step.time_s
        for event in step.events:
            if isinstance(event, ev.LeaseEnded):
                slots[event.job[:2]] -= event.slots
        for command in step.commands:
            if isinstance(command, Grant):
                slots[command.job[:2]] += command.slots
    return total


@pytest.mark.parametrize("slots", [1, 2, 3, 8, 10])
def test_the_lottery_decides_over_leased_slots_too(slots: int):
    driver = leases(slots, 500.0)
    total = slot_seconds(driver)
    assert total["dc"] / total.total() == pytest.approx(0.7, abs=0.03)
    driver.scheduler.validate()


def test_the_same_seed_draws_the_same_lots_and_the_journal_replays():
    first, again, other = (leases(1, 60.0, seed).scheduler.journal for seed in (3, 3, 4))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.steps == again.steps
    assert first.steps != other.steps
    replay(first)


@given(st.lists(st.floats(0, 20), min_size=1, max_size=6), st.floats(0, 1, exclude_max=True))
def test_drawn_slots_lie_next_to_their_quotas(quotas: list[float], lot: float):
    drawn = lots.drawn_slots(quotas, lot)
    assert all(abs(slots - quota) <= 1 + 1e-6 for slots, quota in zip(drawn, quotas, strict=True))
    assert abs(sum(drawn) - sum(quotas)) <= 1 + 1e-6


def test_a_draw_lasts_for_a_quantum():
    profile = resolve_profile("edls-pr")
    slow = {**profile, "pools": {**profile["pools"], "quantum_s": 20.0}}
    changes = [
        sum(isinstance(command, Grant) for step in journal.steps for command in step.commands)
        for journal in (leases(1, 400.0, profile=p).scheduler.journal for p in (profile, slow))
        if journal is not None
    ]
    assert changes[0] > 10 * changes[1] > 30


def test_why_names_the_draw():
    scheduler = leases(1, 20.0).scheduler
    told = [str(scheduler.why(query)) for query in ("bc", "dc")]
    assert not any("guarantee" in text for text in told)
    assert any("all slots are busy" in text or "that it drew" in text for text in told)
