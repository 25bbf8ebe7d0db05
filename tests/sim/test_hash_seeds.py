"""A run with the same seed is the same run, whatever PYTHONHASHSEED."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from long_forms import some_of

import queryard
from queryard.policies import catalogue

# The profiles are divided, so that the short form has some of every kind.
PARTS = 8
SCRIPT = """
import hashlib, sys
from queryard.policies import resolve_profile
from queryard.sim import Conditions, simulate
from queryard.workload import generate
from queryard.workload.cluster import parse_nodes
from queryard.workload.mix import Mix, SizeBin

nodes = parse_nodes("3x2:4GB,2x3@0.5:4GB")
mix = Mix(
    queries=16, bins=(SizeBin("small", 3, 0.2, 1.0), SizeBin("big", 1, 2.0, 4.0)), load=2.0,
    deadlines=0.3, online=0.2, divisible=0.2, shared=0.5, memory=0.3,
    tenants={"ann": 1.0, "bob": 2.0, "eve": 1.0},
)
rough = Conditions(
    noise=0.3, straggler_share=0.02, task_failure=0.03, node_mtbf_s=200.0, node_repair_s=9.0,
    contention=0.1, remote_penalty=0.2, memory_gain=0.3, memory_cache_bytes=1e9,
    rider_cost=0.03, revoke_delay_s=0.1, job_start_s=0.5,
)
workload = generate(mix, seed=11, nodes=nodes)
for name in sys.argv[2:]:
    run = simulate(
        workload, nodes, resolve_profile(name), conditions=rough, estimates="oracle:0.3",
        seed=int(sys.argv[1]), slow_start=0.4,
    )
    assert not run.unfinished, name
    lines = "\\n".join(run.journal.to_lines())
    print(name, len(run.journal.steps), hashlib.sha256(lines.encode()).hexdigest())
"""


def digests(profiles: list[str], hash_seed: str, seed: int = 1) -> list[str]:
    source = str(Path(queryard.__file__).parents[1])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(seed), *profiles],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("first", some_of(range(PARTS), 1))
def test_every_profile_runs_alike_under_any_hash_seed_and_otherwise_with_another_seed(first):
    profiles = [info.name for info in catalogue()][first::PARTS]
    found = digests(profiles, "0")
    assert len(found) == len(profiles) > 3
    assert digests(profiles, "4711") == found
    assert not set(digests(profiles, "0", seed=2)) & set(found)
