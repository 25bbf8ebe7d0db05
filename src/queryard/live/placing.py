"""Where the work of a session runs: in its own process, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from queryard.backends.local import LocalBackend, nodes_of
from queryard.backends.protocol import Backend
from queryard.core.errors import QueryardError
from queryard.core.model import Node
from queryard.engine.native import NativeEngine
from queryard.engine.segments import SegmentStore
from queryard.sql.catalog import Catalog

from .admission.memory import kept_bytes
from .backend_setting import BackendSetting

if TYPE_CHECKING:
    from .work.staged import MakeTasks

# Of the memory for queries, on a cluster: the part of those that run in the driver's own process.
DRIVER_SHARE = 0.25


class Place(NamedTuple):
    """What runs work. `pool_bytes` is what one query can reserve at most.

    `make_tasks` is None where tasks of staged queries run in this process.
    """

    backend: Backend
    engine: NativeEngine
    pool_bytes: int
    slots: int
    make_tasks: MakeTasks | None = None


class Wanted(NamedTuple):
    """What a session asks for; `memory_bytes` are for queries, at each node of a cluster.

    `given_slots` and `given_memory` say whether these were named: else each node of a cluster has
    as many slots as CPUs, and a share of its memory.
    """

    catalog: Catalog
    slots: tuple[int, int]
    memory_bytes: int
    temp: Path
    segments: SegmentStore
    given_slots: bool
    given_memory: bool


def place_here(wanted: Wanted, nodes: Sequence[Node] | None) -> Place:
    """Slots are threads of this process; `nodes` stand for unequal machines."""
    pool_bytes = wanted.memory_bytes
    found = tuple(nodes or nodes_of(wanted.slots, pool_bytes, kept_bytes(pool_bytes)))
    slots = sum(node.slots for node in found)
    engine = NativeEngine(wanted.catalog, slots, pool_bytes, wanted.temp, wanted.segments)
    return Place(LocalBackend(engine, found), engine, pool_bytes, slots)


def place_on_ray(wanted: Wanted, setting: BackendSetting) -> Place:
    """Slots are those of the nodes of a Ray cluster."""
    from queryard.backends.ray.cluster import LOCAL, STORE_BYTES, Cluster
    from queryard.backends.ray.opening import TasksAtNodes, open_backend

    least, most = wanted.slots
    if least != most:
        raise QueryardError(
            f"slots: {wanted.slots} is a range, and the slots of a Ray cluster are those of its "
            "nodes; give one number, of slots per node"
        )
    here_bytes = int(wanted.memory_bytes * DRIVER_SHARE)
    with ExitStack() as undo:
        cluster = Cluster.join(
            setting.address or LOCAL, most, setting.store or STORE_BYTES, setting.namespace
        )
        undo.callback(cluster.close)
        engine = NativeEngine(wanted.catalog, most, here_bytes, wanted.temp, wanted.segments)
        undo.callback(engine.close)
        backend = open_backend(
            cluster,
            engine,
            wanted.catalog,
            slots=most if wanted.given_slots else None,
            memory_bytes=wanted.memory_bytes - here_bytes if wanted.given_memory else None,
            temp=setting.temp,
            nodes=setting.nodes,
            autoscaler=setting.autoscaler,
        )
        undo.pop_all()
    # If all are lost in this moment, queries wait for others, and reserve what those have.
    pool_bytes = int(min((node.memory_bytes for node in backend.nodes), default=here_bytes))
    make_tasks = TasksAtNodes(backend)
    return Place(backend, engine, pool_bytes, backend.slots, make_tasks)
