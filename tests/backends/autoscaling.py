"""A Ray cluster with an autoscaler that starts nodes on this machine, ended by its ids.

Ray's own `AutoscalingCluster` ends every cluster of the machine when it starts, so that the same
is started here by hand.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.ray.processes import descendants, end, off_loopback, stopped

from .ray_cluster import ROOT, STORE_BYTES

START_S, END_S = 120.0, 20.0
# Ray refuses drivers without its token otherwise; all listeners are on loopback.
ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
}


def _config(cpus: int, most: int, address: str) -> dict[str, object]:
    worker = {"CPU": cpus, "object_store_memory": STORE_BYTES}
    empty_lists = (
        *("initialization_commands", "setup_commands", "head_setup_commands"),
        *("worker_setup_commands", "head_start_ray_commands", "worker_start_ray_commands"),
        *("cluster_synced_files", "rsync_exclude", "rsync_filter"),
    )
    return {
        "cluster_name": "fake",
        "max_workers": most,
        "idle_timeout_minutes": 0.03,
        "upscaling_speed": 100.0,
        "provider": {
            "type": "fake_multinode",
            "gcs_address": address,
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
        },
        "available_node_types": {
            "worker": {
                "resources": worker,
                "node_config": {},
                "min_workers": 0,
                "max_workers": most,
            },
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
        },
        "head_node_type": "ray.head.default",
        "file_mounts": {},
        "file_mounts_sync_continuously": False,
        "auth": {},
        "docker": {},
        **{name: [] for name in empty_lists},
    }


@contextlib.contextmanager
def autoscaling_cluster(cpus: int, most: int) -> Iterator[str]:
    """The address of a cluster that has no node at first and starts up to so many."""
    folder = tempfile.mkdtemp(prefix="qyt-", dir="/tmp")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"127.0.0.1:{port}"
    config = Path(folder, "config.json")
    config.write_text(json.dumps(_config(cpus, most, address)))
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_FAKE_CLUSTER": "1",
    }
    with Path(folder, "out.txt").open("w") as out:
        head = subprocess.Popen(
            [
                *(str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"),
                *(f"--port={port}", f"--temp-dir={folder}", "--node-ip-address=127.0.0.1"),
                *("--include-dashboard=false", "--num-cpus=0", "--disable-usage-stats"),
                *(f"--object-store-memory={STORE_BYTES}", f"--autoscaling-config={config}"),
            ],
            env=environment,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        until_s = time.monotonic() + START_S
        while "block forever" not in Path(folder, "out.txt").read_text():
            assert head.poll() is None, Path(folder, "out.txt").read_text()
            assert time.monotonic() < until_s, Path(folder, "out.txt").read_text()
            time.sleep(0.1)
        yield address
        assert not off_loopback(process.pid for process in descendants(head.pid))
    finally:
        # By their ids. A process that is stopped starts no other between the look and the kill.
        ours = stopped(head.pid)
        for process in ours:
            process.kill()
        head.wait(END_S)
        left = end(ours, END_S)
        shutil.rmtree(folder, ignore_errors=True)
        assert not left, "processes are left"
