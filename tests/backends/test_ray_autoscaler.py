"""Policies that change the number of nodes, with Ray's autoscaler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from .autoscaling import ENVIRONMENT, autoscaling_cluster
from .ray_cluster import skip_without_ray

PROGRAM = """
import json, sys, time
import queryard

folder, address = sys.argv[1:]
began_s = time.monotonic()


def until(true, what):
    while not true():
        told = f"{what}: Ray has {in_ray()} nodes; {qy.cluster()}"
        assert time.monotonic() < began_s + 200, told
        time.sleep(0.1)


def in_ray():
    import ray

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    return len(nodes)


grows = {"order": "fair", "provisioning": {"name": "+x", "period_s": 0.5}}
shrinks = {"order": "fair", "provisioning": {"name": "-x", "period_s": 0.5}}
backend = {"kind": "ray", "address": address, "nodes": (1, 2), "autoscaler": True}
with queryard.connect(
    folder, backend=backend, memory="600 MB", history=False, statistics="off", profile=grows
) as qy:
    first = len(qy.cluster().nodes)
    total = "SELECT sum(n) FROM numbers"
    answers = [qy.sql(total).fetchall()]
    slow = qy.submit("SELECT count(*) FROM range(100000000) a, range(10000) b WHERE a.range > -1")
    until(lambda: len(qy.cluster().nodes) == 2, "it does not grow")
    grown = in_ray()
    answers.append(qy.sql(total, plan="staged").fetchall())
    slow.cancel()
    qy.use_profile(shrinks)
    answers.append(qy.sql(total).fetchall())
    until(lambda: len(qy.cluster().nodes) == 1, "it does not shrink")
    until(lambda: in_ray() == 1, "the autoscaler does not take the node back")
    answers.append(qy.sql(total, plan="staged").fetchall())
print(json.dumps({"first": first, "grown": grown, "answers": answers}))
"""


@pytest.mark.long
@pytest.mark.limit(420.0)  # a head, two nodes and a driver are started one after another
def test_the_cluster_grows_and_shrinks(tmp_path: Path):
    skip_without_ray()
    duckdb.sql(f"COPY (SELECT range AS n FROM range(1000)) TO '{tmp_path}/numbers.parquet'")
    with autoscaling_cluster(1, 2) as address:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), address],
            env={**os.environ, **ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=230,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told == {"first": 1, "grown": 2, "answers": [[[499500]]] * 4}
