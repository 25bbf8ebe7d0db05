"""A run with the same seed is the same run, whatever PYTHONHASHSEED."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import queryard

SCRIPT = """
import hashlib, sys
from queryard.policies import catalogue, resolve_profile
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
for info in catalogue():
    run = simulate(
        workload, nodes, resolve_profile(info.name), conditions=rough, estimates="oracle:0.3",
        seed=int(sys.argv[1]), slow_start=0.4,
    )
    assert not run.unfinished, info.name
    lines = "\\n".join(run.journal.to_lines())
    print(info.name, len(run.journal.steps), hashlib.sha256(lines.encode()).hexdigest())
"""


def digests(hash_seed: str, seed: int = 1) -> list[str]:
    source = str(Path(queryard.__file__).parents[1])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(seed)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_profile_runs_alike_under_any_hash_seed_and_otherwise_with_another_seed():
    first = digests("0")
    assert len(first) > 30
    assert digests("4711") == first
    assert not set(digests("0", seed=2)) & set(first)
