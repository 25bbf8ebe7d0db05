"""Ray clusters of tests: several nodes on this machine, on loopback, ended by their ids."""

from __future__ import annotations

import contextlib
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.ray.nodes import Nodes, nodes
from bench.ray.processes import descendants, off_loopback

from .limits import Memory, hard_limit

ROOT = Path(__file__).parents[2]
STORE_BYTES = 80 << 20
MOST_BYTES = 2 << 30
LIFE_S = 600.0


def skip_without_ray() -> None:
    """Skip a test where Ray is not installed; it must not be imported to see that."""
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")


@contextlib.contextmanager
def ray_cluster(*cpus: int) -> Iterator[Nodes]:
    """A cluster with a node for each number of CPUs; asserts that nothing of it is left.

    It lives for `LIFE_S` at most, within `MOST_BYTES` of memory.
    """
    others = descendants(os.getpid())
    memory = Memory({process.pid for process in others})
    with (
        hard_limit(LIFE_S),
        nodes(*cpus, store_bytes=STORE_BYTES, modules=ROOT / "tests") as made,
    ):
        yield made
        started = descendants(os.getpid()) - others
        assert started, "no process was found, so none could be found to be left"
        assert not off_loopback({os.getpid(), *(process.pid for process in started)})
    memory.close()
    assert not made.left, "processes are left"
    assert not made.folder.exists()
    assert memory.most_bytes <= MOST_BYTES
