"""Clusters of several nodes on this machine, on loopback, which end with the bench."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from queryard.backends.ray.importing import import_on_loopback

ROOT = Path(__file__).parents[2]
STORE_BYTES = 150 << 20


@contextlib.contextmanager
def cluster(nodes: int, slots: int) -> Iterator[str]:
    """The address of a cluster on loopback, which ends with the bench."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), before])
    ray = import_on_loopback()
    from ray.cluster_utils import Cluster

    with tempfile.TemporaryDirectory(prefix="qyb-", dir="/tmp") as folder:
        made = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "object_store_memory": STORE_BYTES,
                "include_dashboard": False,
                "temp_dir": folder,
            },
        )
        try:
            for _ in range(nodes):
                made.add_node(num_cpus=slots, object_store_memory=STORE_BYTES)
            yield made.address
        finally:
            ray.shutdown()
            made.shutdown()
            os.environ["PYTHONPATH"] = before
