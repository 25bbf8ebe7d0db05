"""Ray clusters of tests: several nodes on this machine, on loopback, ended by their ids."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from queryard.backends.ray.cluster import SYSTEM_CONFIG, Cluster
from queryard.backends.ray.importing import import_on_loopback

ROOT = Path(__file__).parents[2]
STORE_BYTES = 80 << 20
# Ray says within about two seconds that a node is dead.
FAST_HEALTH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
END_S = 20.0
# A cluster that is there for longer has hung, and the run of the tests with it.
LIFE_S = 600.0


def skip_without_ray() -> None:
    """Skip a test where Ray is not installed; it must not be imported to see that."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")


class TestCluster:
    """A head without CPUs, and nodes that can be added and killed."""

    __test__ = False

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.address = cluster.address
        self.nodes: list[Any] = []

    def add(self, cpus: int) -> Any:
        node = self._cluster.add_node(num_cpus=cpus, object_store_memory=STORE_BYTES)
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """Kill the raylet of a node, as if its machine had lost its power."""
        process = node.all_processes["raylet"][0].process
        self.nodes.remove(node)
        children = descendants(process.pid)
        os.kill(process.pid, signal.SIGKILL)
        for child in children:  # its workers, by their ids
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        process.wait()

    def join(self) -> Cluster:
        return Cluster.join(self.address)


@contextlib.contextmanager
def ray_cluster(*cpus: int) -> Iterator[TestCluster]:
    """A cluster with a node for each number of CPUs; asserts that nothing of it is left."""
    with _python_path(), _hard_limit(LIFE_S):
        ray = import_on_loopback()
        assert not ray.is_initialized(), "another test has left its cluster"
        from ray.cluster_utils import Cluster as RayCluster

        folder = tempfile.mkdtemp(prefix="qyt-", dir="/tmp")
        others = descendants(os.getpid())
        cluster = RayCluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "object_store_memory": STORE_BYTES,
                "include_dashboard": False,
                "temp_dir": folder,
                "_system_config": {**SYSTEM_CONFIG, **FAST_HEALTH},
            },
        )
        started: set[int] = set()
        try:
            made = TestCluster(cluster)
            for number in cpus:
                made.add(number)
            yield made
            started = descendants(os.getpid()) - others
            assert started, "no process was found, so none could be found to be left"
            assert not off_loopback(started | {os.getpid()})
        finally:
            ray.shutdown()
            cluster.shutdown()
        until = time.monotonic() + END_S
        while (left := {pid for pid in started if _lives(pid)}) and time.monotonic() < until:
            time.sleep(0.05)
        # Not before: processes that end still write there.
        shutil.rmtree(folder, ignore_errors=True)
        assert not left, f"processes are left: {[_command(pid) for pid in left]}"
        assert not os.path.exists(folder)


@contextlib.contextmanager
def _hard_limit(seconds: float) -> Iterator[None]:
    """End the run if this takes longer, and every process that was started meanwhile."""
    others = descendants(os.getpid())

    def end() -> None:
        faulthandler.dump_traceback(file=sys.__stderr__)
        for pid in descendants(os.getpid()) - others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def _python_path() -> Iterator[None]:
    """Processes of nodes find the package and the modules of tests."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


# --- processes ---------------------------------------------------------------------------------


def descendants(pid: int) -> set[int]:
    """All processes below one."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                parents.setdefault(parent, []).append(int(entry.name))
    found: set[int] = set()
    left = [pid]
    while left:
        for child in parents.get(left.pop(), []):
            found.add(child)
            left.append(child)
    return found


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:80]
    except OSError:
        return str(pid)


def off_loopback(pids: set[int]) -> list[str]:
    """The addresses other than 127.0.0.1 on which some of these processes listen."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    name = os.readlink(handle)
                    if name.startswith("socket:["):
                        sockets.add(name[8:-1])
    found = []
    for table, loopback in (("tcp", ("0100007F",)), ("tcp6", _LOOPBACK6)):
        lines = Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        for line in lines:
            fields = line.split()
            address = fields[1].partition(":")[0]
            if fields[3] == "0A" and fields[9] in sockets and address not in loopback:
                found.append(fields[1])
    return found


_LOOPBACK6 = ("00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
