"""Ray clusters of tests: several nodes on this machine, on loopback, ended by their ids."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.ray.nodes import Nodes, nodes
from bench.ray.processes import descendants, off_loopback

ROOT = Path(__file__).parents[2]
STORE_BYTES = 80 << 20
# A cluster that is there for longer has hung, and the run of the tests with it.
LIFE_S = 600.0


def skip_without_ray() -> None:
    """Skip a test where Ray is not installed; it must not be imported to see that."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")


@contextlib.contextmanager
def ray_cluster(*cpus: int) -> Iterator[Nodes]:
    """A cluster with a node for each number of CPUs; asserts that nothing of it is left."""
    with _hard_limit(LIFE_S):
        others = descendants(os.getpid())
        with nodes(*cpus, store_bytes=STORE_BYTES, modules=ROOT / "tests") as made:
            yield made
            started = descendants(os.getpid()) - others
            assert started, "no process was found, so none could be found to be left"
            assert not off_loopback({os.getpid(), *(process.pid for process in started)})
        assert not made.left, "processes are left"
        assert not made.folder.exists()


@contextlib.contextmanager
def _hard_limit(seconds: float) -> Iterator[None]:
    """End the run if this takes longer, and every process that was started meanwhile."""
    others = descendants(os.getpid())

    def end() -> None:
        faulthandler.dump_traceback(file=sys.__stderr__)
        for process in descendants(os.getpid()) - others:
            process.kill()
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
