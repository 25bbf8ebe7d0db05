"""Orders that drift with time take slots back from leases although nothing happens."""

from __future__ import annotations

import pytest

from queryard.core.model import Divisible, Job, Node, Query
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.workload.model import Arrival, JobTruth, Workload


@pytest.mark.parametrize("profile", ["srtf", "largest-slowdown", "tls", "swrd", "query-fair"])
def test_a_small_query_does_not_wait_for_a_large_one_to_end(profile: str):
    job = Job("j", divisible=Divisible(4))
    large = Arrival(Query("large", (job,)), {"j": JobTruth(work_s=1000.0)})
    small = Arrival(Query("small", (job,), submit_s=10.0), {"j": JobTruth(work_s=1.0)})
    run = simulate(Workload("w", (large, small)), [Node("n", 4)], resolve_profile(profile))
    assert run.ends["small"] < 20.0
    assert run.ends["large"] == pytest.approx(250.25)
