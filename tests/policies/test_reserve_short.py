"""Slots that long tasks may not take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.core.errors import InvalidProfile
from queryard.core.events import NodeLost, PolicyChosen, QueryCancelled
from queryard.core.model import Divisible, Job, Node, Phase, Query, Split, Table
from queryard.core.state import Settings
from queryard.policies import compose
from queryard.policies.splits.reserve_short import DEGREES, ReserveShort
from queryard.sim.driver import SimDriver
from queryard.sim.forecast import resume
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

NODES = [Node(f"n{number}", 10) for number in range(2)]
ROOM = {"order": "fifo", "slots": "reserve-short"}


def asked(name: str, tasks: int, task_s: float, at_s: float = 0.0) -> Arrival:
    jobs = (Job("j", map=Phase(tasks)),)
    return Arrival(Query(name, jobs, submit_s=at_s), {"j": JobTruth(map_s=task_s)})


# They make queries of a second the typical ones, and tasks of a second hold a dozen slots.
SHORT = [asked(f"short{number}", 12, 1.0, float(number)) for number in range(20)]


def played(*arrivals: Arrival, until_s: float, profile: dict[str, object] = ROOM) -> SimDriver:
    driver = build(Workload("w", (*SHORT, *arrivals)), NODES, profile, estimates="oracle")
    driver.run(until_s=until_s)
    driver.scheduler.validate()
    return driver


def slots_of(driver: SimDriver) -> dict[str, int]:
    return {query.id: query.slots for query in driver.scheduler.state.queries.values()}


@pytest.mark.parametrize(("task_s", "slots"), [(0.9, 20), (5.0, 18), (60.0, 16), (5000.0, 14)])
def test_the_longer_tasks_are_the_more_slots_they_leave_to_others(
    task_s: float, slots: int
) -> None:
    assert slots_of(played(asked("q", 1000, task_s, 20.0), until_s=20.5)) == {"q": slots}


def test_no_more_slots_are_kept_than_shorter_tasks_have_needed_of_late() -> None:
    """Of a hundred, five of a second each ten seconds hold half a slot."""
    few = [asked(f"few{number}", 5, 1.0, 10.0 * number) for number in range(100)]
    long = asked("long", 1000, 300.0, 1000.0)
    driver = build(Workload("w", (*few, long)), [Node("n", 100)], ROOM, estimates="oracle")
    driver.run(until_s=1001.0)
    driver.scheduler.validate()
    assert slots_of(driver) == {"long": 98}


def test_one_slot_is_kept_however_little_is_needed() -> None:
    first, long = asked("first", 1, 1.0), asked("long", 1000, 300.0, 1000.0)
    late = asked("late", 1, 1.0, 1100.0)
    driver = build(Workload("w", (first, long, late)), NODES, ROOM, estimates="oracle")
    driver.run(until_s=1101.0)
    assert (slots_of(driver)["long"], driver.ends["late"]) == (19, 1101.0)


@pytest.mark.parametrize("slots_a_node", [1, 10])
def test_slots_that_are_kept_no_longer_are_used(slots_a_node: int) -> None:
    """No short query comes any more, and no task ends where the slots are free."""
    nodes = [Node(f"n{number}", slots_a_node) for number in range(20 // slots_a_node)]
    long = asked("long", 2000, 60.0, 20.0)
    driver = build(Workload("w", (*SHORT, long)), nodes, ROOM, estimates="oracle")
    driver.run(until_s=25.0)
    assert slots_of(driver) == {"long": 16}
    driver.run(until_s=5000.0)
    driver.scheduler.validate()
    assert slots_of(driver) == {"long": 19}


@pytest.mark.parametrize(("between", "slots"), [(ROOM, 16), ({"order": "fifo"}, 19)])
def test_what_was_needed_of_late_is_remembered_by_those_who_take_over(
    between: dict[str, object], slots: int
) -> None:
    """None runs when they do; a rule that only sees that keeps one slot at most."""
    driver = build(
        Workload("w", (*SHORT, asked("long", 1000, 60.0, 20.5))), NODES, ROOM, estimates="oracle"
    )
    driver.post(20.2, 0, PolicyChosen(20.2, between))
    driver.post(20.3, 0, PolicyChosen(20.3, {**ROOM, "order": "srtf"}))
    driver.run(until_s=21.0)
    driver.scheduler.validate()
    assert slots_of(driver) == {"long": slots}


def test_long_tasks_on_nodes_that_leave_do_not_count() -> None:
    nodes = [Node(f"n{number:02}", 10) for number in range(10)]
    long = [asked(f"long{n}", 10, 200.0 + 40 * n, 20.0 + n / 10) for n in range(30)]
    driver = build(Workload("w", (*SHORT, *long)), nodes, ROOM, estimates="oracle")
    fewer = {"name": "-x", "x": 5, "period_s": 1e6, "minimum": 5, "maximum": 10}
    driver.post(60.0, 0, PolicyChosen(60.0, {**ROOM, "provisioning": fewer}))
    driver.run(until_s=350.0)
    state = driver.scheduler.state
    leaving = [node for node in state.nodes.values() if node.draining]
    assert any(node.free < node.spec.slots for node in leaving)
    split = driver.scheduler._crew.split
    assert isinstance(split, ReserveShort)
    kept = max(split._kept)
    assert kept <= 2
    assert sum(node.free for node in state.nodes.values() if not node.draining) <= kept


def test_a_merged_scan_takes_one_slot_however_many_ride_on_it() -> None:
    table = Table("t", tuple(Split(64e6) for _ in range(200)))
    job = Job("s", map=Phase(200), scans=("t",))
    riders = [
        Arrival(Query(f"q{number}", (job,), submit_s=20.0), {"s": JobTruth(map_s=60.0)})
        for number in range(18)
    ]
    workload = Workload("w", (*SHORT, *riders), (table,))
    profile = {**ROOM, "sharing": "circular"}
    driver = build(workload, NODES, profile, estimates="oracle")
    driver.run(until_s=30.0)
    assert driver.scheduler.state.busy_slots >= 14


@given(st.lists(st.tuples(st.integers(0, 5), st.floats(1e-9, 1e5)), max_size=60))
def test_what_is_usual_is_never_less_than_nothing(spans: list[tuple[int, float]]) -> None:
    """Neither is it more than there was."""
    driver = played(until_s=20.0)
    split = driver.scheduler._crew.split
    assert isinstance(split, ReserveShort)
    now = driver.scheduler.state.now
    for short, passed_s in spans:
        split._short = [short] * DEGREES
        now += passed_s
        split._pass_time(now)
        assert all(0.0 <= usual <= 12.0 for usual in split._usual)


def test_a_short_query_need_not_wait_for_long_tasks() -> None:
    long, late = asked("long", 100, 5.0, 20.0), asked("late", 3, 0.5, 21.0)
    driver = played(long, late, until_s=21.0)
    assert slots_of(driver) == {"long": 18, "late": 2}
    driver.run(until_s=23.0)
    assert driver.ends["late"] == 22.0


def test_what_is_kept_serves_all_who_are_short_enough() -> None:
    """Tasks of an hour leave six slots; four of these are for tasks of a minute."""
    driver = played(
        asked("hour", 100, 3600.0, 20.0), asked("minute", 100, 60.0, 21.0), until_s=22.0
    )
    assert slots_of(driver) == {"hour": 14, "minute": 2}


def test_with_open_slots_the_same_query_waits_for_a_long_task() -> None:
    long, late = asked("long", 100, 60.0, 20.0), asked("late", 3, 0.5, 30.0)
    driver = played(long, late, until_s=90.0, profile={"order": "fair"})
    assert driver.ends["late"] > 80.0


def test_nothing_is_kept_where_nothing_is_typical_yet() -> None:
    driver = build(Workload("w", (asked("long", 100, 60.0),)), NODES, ROOM, estimates="oracle")
    driver.run(until_s=1.0)
    assert slots_of(driver) == {"long": 20}


def test_few_slots_are_not_divided() -> None:
    workload = Workload("w", (*SHORT, asked("long", 100, 60.0, 20.0)))
    driver = build(workload, [Node("n", 9)], ROOM, estimates="oracle")
    driver.run(until_s=30.0)
    assert slots_of(driver) == {"long": 9}


def test_a_policy_that_is_chosen_later_counts_the_long_tasks_that_run() -> None:
    workload = Workload("w", (*SHORT, asked("long", 100, 60.0, 20.0)))
    driver = build(workload, NODES, {"order": "fifo"}, estimates="oracle")
    driver.run(until_s=30.0)
    assert slots_of(driver) == {"long": 20}
    driver.post(31.0, 0, PolicyChosen(31.0, ROOM))
    driver.run(until_s=81.0)
    assert slots_of(driver) == {"long": 19}


def test_a_fork_counts_on_by_itself() -> None:
    driver = played(asked("long", 100, 60.0, 20.0), until_s=30.0)
    twin = resume(driver.scheduler.fork())
    twin.run(until_s=81.0)
    assert slots_of(twin) == {"long": 16}
    driver.scheduler.validate()
    assert slots_of(driver) == {"long": 16}


def test_tasks_of_cancelled_queries_hold_nothing_any_more() -> None:
    first, second = asked("first", 100, 60.0, 20.0), asked("second", 100, 60.0, 40.0)
    driver = build(Workload("w", (*SHORT, first, second)), NODES, ROOM, estimates="oracle")
    driver.post(30.0, 0, QueryCancelled(30.0, "first", "no longer wanted"))
    driver.run(until_s=30.0)
    driver.run(until_s=50.0)
    driver.scheduler.validate()
    assert slots_of(driver) == {"second": 16}


def test_beside_leases_nothing_is_kept_as_they_come_back() -> None:
    scan = Job("s", divisible=Divisible(width=4))
    online = Arrival(Query("online", (scan,), submit_s=20.0), {"s": JobTruth(work_s=4000.0)})
    driver = played(online, asked("long", 100, 60.0, 21.0), until_s=30.0)
    assert sum(slots_of(driver).values()) == 20


def test_reduces_that_wait_for_lost_maps_make_way_for_them() -> None:
    """All that long tasks may hold is held by reduces, whose maps were lost and are long."""
    job = Job("j", map=Phase(16), reduce=Phase(9))
    times_s = (50.0, 500.0, *(14 * [50.0]))
    truth = JobTruth(map_s=75.0, reduce_s=50.0, map_times_s=times_s)
    early = Arrival(Query("early", (job,), submit_s=20.0), {"j": truth})
    driver = build(
        Workload("w", (*SHORT, early)),
        NODES,
        ROOM,
        estimates="oracle",
        settings=Settings(slow_start=0.0),
    )
    driver.post(100.0, 0, NodeLost(100.0, "n1"))
    driver.run(until_s=101.0)
    job_state = driver.scheduler.state.jobs["early/j"]
    assert job_state.reduce is not None
    assert job_state.map is not None
    assert (job_state.reduce.running, job_state.map.running) == (7, 1)
    driver.run()
    assert not driver.unfinished


def test_a_share_of_everything_is_refused() -> None:
    for share in (1, 2, 0.5, -0.1, "0.1", True):
        with pytest.raises(InvalidProfile, match=r"share must be .* 0\.333, got"):
            compose({"slots": {"name": "reserve-short", "share": share}})
