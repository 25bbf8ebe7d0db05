"""A Ray cluster of several nodes within this machine, on loopback, whose nodes can be killed."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from queryard.backends.ray.cluster import SYSTEM_CONFIG
from queryard.backends.ray.importing import import_on_loopback

from .processes import Process, children, descendants, end

ROOT = Path(__file__).parents[2]
STORE_BYTES = 160 << 20
# Ray says within about three seconds that a node is dead; by its usual settings it takes 15.
FAST_HEALTH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 2000,
    "health_check_failure_threshold": 3,
}
END_S = 20.0
# Ray waits 30 s for a node that it starts, and cannot be told to wait longer.
START_TRIES = 3


class Nodes:
    """A head without CPUs, and nodes that are added and killed."""

    def __init__(self, cluster: Any, folder: Path, store_bytes: int) -> None:
        self._cluster = cluster
        self._store_bytes = store_bytes
        self.address: str = cluster.address
        self.folder = folder
        """All temporary files of Ray."""
        self.alive: list[Any] = []
        self.left: list[str] = []
        """Processes that did not end with the cluster, and were killed."""
        self._killed: set[Process] = set()

    def add(self, cpus: int) -> Any:
        """Start a node; again if Ray gives up waiting for it, as it does on a busy machine."""
        for tries_left in reversed(range(START_TRIES)):
            before = children(os.getpid())
            try:
                node = self._cluster.add_node(num_cpus=cpus, object_store_memory=self._store_bytes)
                break
            except Exception:
                self._end_half_started(children(os.getpid()) - before)
                if not tries_left:
                    raise
        self.alive.append(node)
        return node

    def _end_half_started(self, started: set[Process]) -> None:
        """Ray leaves what it has started of a node: it would be one more node later."""
        for process in started:
            for each in (process, *descendants(process.pid)):
                each.kill()
                self._killed.add(each)

    def kill(self, node: Any) -> None:
        """Kill a node and all its processes, by their ids, as if its machine lost its power."""
        raylet = node.all_processes["raylet"][0].process
        below = descendants(raylet.pid)
        self.alive.remove(node)
        raylet.kill()
        for process in below:
            process.kill()
        raylet.wait()
        self._killed |= below
        # What is left of it: files of its own, and processes of Ray's that watch it.
        self._cluster.remove_node(node, allow_graceful=False)

    def kill_raylet(self, node: Any) -> None:
        """Kill the raylet of a node and nothing else: what it has started ends as Ray lets it."""
        raylet = node.all_processes["raylet"][0].process
        self._killed |= descendants(raylet.pid)
        self.alive.remove(node)
        raylet.kill()
        raylet.wait()

    def left_of_killed(self) -> list[str]:
        """The processes of killed nodes that still live."""
        return [process.command for process in self._killed if process.lives]


def all_joined(session: Any, count: int) -> None:
    """Wait until so many nodes take part: a session opens with those that join soon."""
    until_s = time.monotonic() + 60.0
    while len(session.host.backend.nodes) < count and time.monotonic() < until_s:
        time.sleep(0.1)


@contextlib.contextmanager
def nodes(
    *cpus: int, store_bytes: int = STORE_BYTES, modules: Path | None = None
) -> Iterator[Nodes]:
    """A cluster with a node for each number of CPUs; all its processes end with it.

    `modules` is where processes of nodes find more modules.
    """
    # Paths of sockets are short: the usual place for temporary files may be deep.
    within = "/tmp" if Path("/tmp").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="qyn-", dir=within))
    (folder / "ray").mkdir()
    path = os.pathsep.join(str(found) for found in (ROOT / "src", ROOT, modules) if found)
    # Ray notes the address of the newest cluster in its folder, for all programs to find; those
    # shall go on to find theirs.
    with _environment(PYTHONPATH=path, RAY_TMPDIR=str(folder)):
        ray = import_on_loopback()
        from ray.cluster_utils import Cluster

        logging.getLogger("ray").setLevel(logging.ERROR)
        others = descendants(os.getpid())
        cluster = made = None
        try:
            cluster = Cluster(
                initialize_head=True,
                head_node_args={
                    "num_cpus": 0,
                    "object_store_memory": store_bytes,
                    "include_dashboard": False,
                    "temp_dir": str(folder),
                    "_system_config": {**SYSTEM_CONFIG, **FAST_HEALTH},
                },
            )
            made = Nodes(cluster, folder, store_bytes)
            for number in cpus:
                made.add(number)
            yield made
        finally:
            started = descendants(os.getpid()) - others
            ray.shutdown()
            if cluster is not None:
                cluster.shutdown()
            left = end(started, END_S)
            if made is not None:
                made.left = left
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Variables that processes of nodes inherit: where the package is, and files of Ray."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
