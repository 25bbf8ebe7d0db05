"""What every registered profile must hold to, on random workloads with failures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from queryard.core.model import Node
from queryard.core.state import Settings
from queryard.policies import catalogue, resolve_profile
from queryard.sim import Conditions, forecast, replay
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload.model import Workload

from . import workloads as some
from .watched import WatchedScheduler

NAMES = [info.name for info in catalogue()]
RELAXED = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    # Shrinking takes minutes here; the failing example is printed as it was found.
    phases=(Phase.explicit, Phase.generate),
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def watched_run(
    profile: Any,
    workload: Workload,
    nodes: list[Node],
    conditions: Conditions,
    slow_start: float,
    estimates: str,
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
    driver.run(until_s=5_000.0)
    return driver


@pytest.mark.parametrize("name", NAMES)
@RELAXED
@given(
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
    profile = resolve_profile(name)
    driver = watched_run(profile, workload, nodes, conditions, slow_start, estimates)
    assert not driver.unfinished, "every query ends"
    state = driver.scheduler.state
    assert not state.running
    assert not state.leaseholders
    assert not state.reserved_bytes
    journal = driver.scheduler.journal
    assert journal is not None
    difference = replay(journal)
    assert difference is None, str(difference)


@pytest.mark.parametrize("name", NAMES)
@settings(RELAXED, max_examples=8)
@given(workload=some.workloads(4), nodes=some.clusters(), conditions=some.conditions())
def test_simulating_a_fork_changes_nothing(
    name: str, workload: Workload, nodes: list[Node], conditions: Conditions
) -> None:
    profile = resolve_profile(name)
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
