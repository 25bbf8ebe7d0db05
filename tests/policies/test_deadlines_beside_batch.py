"""EDLS-Sh, EDLS-Pr and the version that borrows."""

from __future__ import annotations

import pytest
from kernel_driver import Yard

from queryard.policies import compose, resolve_profile


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
