"""The stall of small queries behind a large one: Q14, Q17, Q14 (TLS §2.1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_driver import Yard

from queryard.core.model import Job, Phase
from queryard.policies import resolve_profile
from queryard.sim import alone_times, simulate
from queryard.workload import load_workload

Q14 = [
    (Job("agg", "groupby", map=Phase(4)), 10.0),
    (Job("sort", upstream=("agg",), map=Phase(1)), 10.0),
]
Q17 = [
    (Job("agg", "groupby", map=Phase(16)), 10.0),
    (Job("join", "join", map=Phase(16)), 10.0),
    (Job("both", "join", upstream=("agg", "join"), map=Phase(4)), 10.0),
    (Job("sum", upstream=("both",), map=Phase(1)), 10.0),
]
ALONE_S = 20.0


def responses(profile: str) -> dict[str, float]:
    yard = Yard(profile, "1x4")
    yard.submit("a", Q14, 0.0).submit("b", Q17, 1.0).submit("c", Q14, 2.0).run()
    return {"a": yard.ends["a"], "b": yard.ends["b"] - 1.0, "c": yard.ends["c"] - 2.0}


def test_one_small_query_alone():
    assert Yard("capacity", "1x4").submit("a", Q14).run().ends == {"a": ALONE_S}


def test_by_job_the_large_query_comes_between_the_jobs_of_the_small_ones():
    found = responses("capacity")
    # The two jobs of the large query were ready before the second job of a: 80 s on all slots.
    assert found["a"] == 110.0
    assert min(found["a"], found["c"]) > 3 * ALONE_S


def test_by_query_the_small_ones_are_hardly_delayed():
    found = responses("tls")
    assert found["a"] == ALONE_S
    assert found["c"] < 2 * ALONE_S
    # The large one does not pay for it: work is conserved.
    assert found["b"] <= responses("capacity")["b"] + 10.0


@pytest.mark.parametrize(("profile", "slowed"), [("capacity", True), ("tls", False)])
def test_the_example_file_at_the_published_size(profile: str, slowed: bool):
    workload = load_workload(Path(__file__).parents[2] / "examples" / "stall.toml")
    run = simulate(workload, workload.nodes, resolve_profile(profile))
    alone = alone_times(workload, workload.nodes)
    submitted = {arrival.query.id: arrival.query.submit_s for arrival in workload.arrivals}
    for name in ("q14-a", "q14-b"):
        slowdown = (run.ends[name] - submitted[name]) / alone[name]
        assert (slowdown > 1.5) == slowed
