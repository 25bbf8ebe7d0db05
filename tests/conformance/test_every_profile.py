"""What every registered profile must hold to, on random workloads with failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from queryard.core import events as ev
from queryard.core.model import Node
from queryard.core.policy import Policy
from queryard.core.ranks import PoolTree
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings
from queryard.policies import catalogue, resolve_profile
from queryard.sim import Conditions, forecast, replay
from queryard.sim.driver import SimDriver
from queryard.sim.ordering import CLUSTER
from queryard.sim.run import build
from queryard.workload.model import Workload

from . import workloads as some
from .drawn import for_each
from .watched import WatchedScheduler

NAMES = [info.name for info in catalogue()]
# Tasks run a second time at every occasion.
EAGER = {"name": "late", "factor": 1.0, "done": 0.0, "share": 1.0, "least_s": 0.0}
# What no registered profile has: clusters that resize, guarantees beside caps, a lottery, second
# runs.
MADE: dict[str, Any] = {
    "grows": {"base": "fair", "provisioning": {"name": "+x", "maximum": 6, "period_s": 5.0}},
    "shrinks": {"base": "tls", "provisioning": {"name": "-x", "minimum": 1, "period_s": 5.0}},
    "by-deadlines": {"base": "edf", "provisioning": {"name": "dlx", "maximum": 5}},
    "by-slowdown": {"base": "relaqs", "provisioning": {"name": "maxbsd", "maximum": 5}},
    "guaranteed": {
        "pools": {
            "by": "tenant",
            "children": {
                "ann": {"order": "qef", "guarantee": 0.4, "weight": 2},
                "bob": {"by": "kind", "cap": 0.6, "default": {"order": "progress"}},
            },
            "default": {"order": "fair-jobs", "guarantee": 0.2, "cap": 0.7},
        },
        "jobs": "lodfa",
    },
    "by-turns": {
        "pools": {
            "by": "tenant",
            "choice": "turns",
            "children": {
                "ann": {"order": "srpt-fair", "guarantee": 0.4, "cap": 0.6},
                "bob": {
                    "by": "deadline",
                    "choice": "turns",
                    "weight": 2,
                    "default": {"order": "fair"},
                },
            },
            "default": {"order": "fair-jobs", "weight": "queries"},
        },
    },
    "folding": {
        "base": "s3-pays",
        "order": "srtf",
        "sharing": {"name": "circular", "when": "pays", "reduces": "early", "waves": 2},
    },
    "always-folding": {
        "pools": {"by": "tenant", "default": {"order": "fair", "cap": 0.7}},
        "slots": "static",
        "sharing": {"name": "circular", "reduces": "early"},
    },
    "twice": {"base": "fair", "speculation": EAGER},
    "twice-capped": {
        "pools": {
            "by": "tenant",
            "children": {"ann": {"order": "srtf", "cap": 0.5}},
            "default": {"order": "fair-jobs", "cap": 0.7},
        },
        "slots": "tumm",
        "sharing": "circular",
        "speculation": EAGER,
    },
    "drawn": {
        "pools": {"by": "tenant", "choice": "lottery", "default": {"order": "srtf"}},
        "slots": "tumm",
        "sharing": "circular",
    },
}
EVERY = [*NAMES, *MADE]


def profile_of(name: str) -> Any:
    return resolve_profile(MADE.get(name, name))


def watched_run(
    profile: Any,
    workload: Workload,
    nodes: list[Node],
    conditions: Conditions,
    slow_start: float,
    estimates: str,
    surprises: Sequence[ev.Event] = (),
) -> SimDriver:
    driver = build(
        workload,
        nodes,
        profile,
        conditions=conditions,
        estimates=estimates,
        seed=7,
        settings=Settings(slow_start=slow_start, seed=7),
        kernel=WatchedScheduler,
    )
    for event in surprises:
        driver.post(event.time_s, CLUSTER, event)
    driver.run(until_s=5_000.0)
    return driver


@for_each(
    EVERY,
    few=12,
    many=40,
    workload=some.workloads(),
    nodes=some.clusters(),
    conditions=some.conditions(),
    slow_start=st.sampled_from((1.0, 0.0, 0.3)),
    estimates=st.sampled_from(("oracle", "oracle:0.5", "observed")),
)
def test_a_profile_conforms(
    name: str,
    workload: Workload,
    nodes: list[Node],
    conditions: Conditions,
    slow_start: float,
    estimates: str,
) -> None:
    driver = watched_run(profile_of(name), workload, nodes, conditions, slow_start, estimates)
    check_end(driver)


@for_each(
    EVERY,
    few=5,
    many=15,
    eventful=some.workloads().flatmap(
        lambda workload: st.tuples(st.just(workload), some.surprises(workload, NAMES))
    ),
    nodes=some.clusters(),
    conditions=some.conditions(),
    slow_start=st.sampled_from((1.0, 0.3)),
)
def test_a_profile_conforms_whatever_else_happens(
    name: str,
    eventful: tuple[Workload, list[ev.Event]],
    nodes: list[Node],
    conditions: Conditions,
    slow_start: float,
) -> None:
    """Widths, tables and the policy change on the way."""
    workload, surprises = eventful
    profile = profile_of(name)
    check_end(watched_run(profile, workload, nodes, conditions, slow_start, "oracle", surprises))


class Unhurried(Scheduler):
    """A kernel that walks down the whole tree for every slot: it caches no first candidate."""

    def _bind(self, policy: Policy, tree: PoolTree) -> None:
        super()._bind(policy, tree)
        self.filling.keeps_head = self.filling.keeps_front = False


@for_each(
    EVERY,
    few=4,
    many=10,
    workload=some.workloads(),
    nodes=some.clusters(),
    conditions=some.conditions(),
)
def test_short_cuts_decide_the_same(
    name: str, workload: Workload, nodes: list[Node], conditions: Conditions
) -> None:
    profile = profile_of(name)
    steps = []
    for kernel in (Scheduler, Unhurried):
        driver = build(workload, nodes, profile, conditions=conditions, seed=5, kernel=kernel)
        driver.run(5_000.0)
        assert driver.scheduler.journal is not None
        steps.append(driver.scheduler.journal.steps)
    assert steps[0] == steps[1]


def check_end(driver: SimDriver) -> None:
    assert not driver.unfinished, "every query ends"
    state = driver.scheduler.state
    assert not state.running
    assert not state.leaseholders
    assert not state.reserved_bytes
    journal = driver.scheduler.journal
    assert journal is not None
    difference = replay(journal)
    assert difference is None, str(difference)


@for_each(
    EVERY,
    few=3,
    many=8,
    workload=some.workloads(4),
    nodes=some.clusters(),
    conditions=some.conditions(),
)
def test_simulating_a_fork_changes_nothing(
    name: str, workload: Workload, nodes: list[Node], conditions: Conditions
) -> None:
    profile = profile_of(name)
    plain = build(workload, nodes, profile, conditions=conditions, seed=3)
    plain.run(5_000.0)
    forked = build(workload, nodes, profile, conditions=conditions, seed=3)
    handle = forked.scheduler.handle
    calls = 0

    def handle_and_fork(*events: Any) -> Any:
        nonlocal calls
        commands = handle(*events)
        calls += 1
        if calls % 5 == 0:
            fork = forked.scheduler.fork()
            fork.validate()
            forecast(forked.scheduler, horizon_s=200.0)
        return commands

    forked.scheduler.handle = handle_and_fork  # type: ignore[method-assign]
    forked.run(5_000.0)
    assert plain.scheduler.journal is not None
    assert forked.scheduler.journal is not None
    assert plain.scheduler.journal.steps == forked.scheduler.journal.steps
