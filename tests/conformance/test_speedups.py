"""Speed-up curves change how wide queries run, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from queryard.core import share_out
from queryard.core.model import Divisible, Job, Node, Query
from queryard.core.scheduler import Scheduler
from queryard.core.speedup import PERFECT, Speedup
from queryard.policies import compose
from queryard.sim import Conditions
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload

from . import workloads as some
from .drawn import for_each
from .slot_by_slot import SlotBySlot
from .test_every_profile import EVERY, check_end, profile_of, watched_run


class _Some(dict[str, Any]):
    """Looks as if a curve were known."""

    def __bool__(self) -> bool:
        return True


class Fitting(Scheduler):
    """A kernel that always fits widths to curves, also if all of them are perfect."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.state.curved = _Some()


@st.composite
def native(
    draw: st.DrawFn, curves: Sequence[Speedup], widths: Sequence[int] = (1, 4, 4, 8)
) -> Workload:
    """Queries as a session has them: one divisible job each, on one host."""
    arrivals = []
    for number in range(draw(st.integers(2, 9))):
        job = Job("native", divisible=Divisible(draw(st.sampled_from(widths))))
        query = Query(
            f"q{number}",
            (job,),
            tenant=draw(st.sampled_from(("ann", "bob", "eve"))),
            priority=draw(st.integers(0, 3)),
            submit_s=draw(st.sampled_from((0.0, 0.0, 1.0, 2.5, 7.0))),
            deadline_s=draw(st.sampled_from((None, None, 20.0))),
            memory_bytes=draw(st.sampled_from((0.0, 0.0, 40.0, 90.0))),
        )
        work_s = draw(st.sampled_from((0.2, 1.0, 3.0, 20.0)))
        truth = JobTruth(work_s=work_s, speedup=draw(st.sampled_from(curves)))
        arrivals.append(Arrival(query, {"native": truth}))
    return Workload("native", tuple(arrivals))


@st.composite
def hosts(draw: st.DrawFn) -> list[Node]:
    """The nodes of one host."""
    slots = draw(st.lists(st.integers(1, 4), min_size=1, max_size=2))
    return [Node(f"n{i}", count, 100.0, host="one") for i, count in enumerate(slots)]


def stands_still(name: str) -> bool:
    """Whether a slot that is free goes where a deal of all slots would put it."""
    policy = compose(profile_of(name))
    pools = policy.pools
    drifts = any({"time", "leased"} & order.changes_with for order in pools.orders)
    return not (drifts or pools.keeps_time or pools.draws_lots) and name != "shrinks"


STILL = [name for name in EVERY if stands_still(name)]


@for_each(STILL, few=12, many=60, workload=native([PERFECT]), nodes=hosts())
def test_with_perfect_curves_all_is_as_without(
    name: str, workload: Workload, nodes: list[Node]
) -> None:
    steps = []
    for kernel in (Scheduler, Fitting):
        driver = build(workload, nodes, profile_of(name), seed=5, kernel=kernel)
        driver.run(5_000.0)
        assert not driver.unfinished
        assert driver.scheduler.journal is not None
        steps.append(driver.scheduler.journal.steps)
    assert steps[0] == steps[1]


@for_each(EVERY, few=12, many=60, workload=native(some.CURVES), nodes=hosts())
def test_with_any_curves_every_query_ends(name: str, workload: Workload, nodes: list[Node]) -> None:
    check_end(watched_run(profile_of(name), workload, nodes, Conditions(), 1.0, "oracle"))


CLUSTERS = st.one_of(
    hosts(),
    st.sampled_from((16, 64)).map(lambda slots: [Node("large", slots, 200.0)]),
    st.just([Node("a", 3, 100.0), Node("b", 4, 100.0), Node("c", 2, 150.0)]),
)
SOME_CURVES = [Speedup(serial, most) for serial in (0.01, 0.05, 0.2) for most in (6, 40)]


@for_each(EVERY, few=6, many=60, workload=native(SOME_CURVES, (8, 64)), nodes=CLUSTERS)
def test_slots_are_dealt_as_if_one_by_one(name: str, workload: Workload, nodes: list[Node]) -> None:
    steps = []
    for deal in (share_out.FittingDeal, SlotBySlot):
        with patch.object(share_out, "FittingDeal", deal):
            driver = build(workload, nodes, profile_of(name), seed=5)
            driver.run(5_000.0)
        assert driver.scheduler.journal is not None
        steps.append(driver.scheduler.journal.steps)
    assert steps[0] == steps[1]
