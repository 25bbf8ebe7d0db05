"""From what a session is asked for to a backend on a Ray cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from queryard.engine.native import NativeEngine, NativeStatement, SentStatement
from queryard.engine.plain_parameters import plain
from queryard.engine.sealing.access import Reach
from queryard.sql.catalog.catalog import Catalog

from .backend import RayBackend
from .cluster import Cluster
from .members import MemberSetting

if TYPE_CHECKING:
    from queryard.engine.staged.reads import SegmentReads
    from queryard.sql.planner.plan import StagedPlan

    from .spread import SpreadTasks

# So many files are compared when a node joins.
MOST_COMPARED = 1000


def open_backend(
    cluster: Cluster,
    engine: NativeEngine,
    catalog: Catalog,
    slots: int | None = None,
    memory_bytes: int | None = None,
    temp: str | None = None,
    nodes: tuple[int, int] | None = None,
    autoscaler: bool = False,
) -> RayBackend:
    """A backend on a cluster, which it closes; `slots` and `memory_bytes` are those of a node."""
    setting = MemberSetting(slots, memory_bytes, temp, lambda: _files(catalog), nodes, autoscaler)
    return RayBackend(cluster, setting, engine, catalog, sent, ends=cluster.close)


def sent(statement: object) -> SentStatement | None:
    """A statement as a node can run it; None if it must run in this process."""
    if not isinstance(statement, NativeStatement):
        return None
    found = SentStatement.of(statement)
    if found is None:
        return None
    try:
        return replace(found, parameters=plain(found.parameters))
    except Exception:
        return None  # it fails in this process, where what is wrong with its parameters is told


class TasksAtNodes:
    """Makes the tasks of staged queries for a backend."""

    def __init__(self, backend: RayBackend) -> None:
        self._backend = backend

    def __call__(
        self,
        plan: StagedPlan,
        query: str,
        memory_bytes: int,
        reads: SegmentReads | None,
        reach: Reach,
    ) -> SpreadTasks:
        from queryard.sql.planner import NotStageable

        from .spread import SpreadTasks

        if reads is not None:
            raise NotStageable("large tables of text are not cut into segments on a Ray cluster")
        nodes = self._backend.nodes
        again = self._backend.make_again
        exchange = self._backend.exchange(query)
        return SpreadTasks(exchange, plan, query, memory_bytes, nodes, reach, again)


def _files(catalog: Catalog) -> Mapping[str, tuple[int, int]]:
    """The files of a catalog on this machine, with size and time of change."""
    found: dict[str, tuple[int, int]] = {}
    for table in catalog.tables.values():
        for file in table.files:
            if len(found) >= MOST_COMPARED:
                return found
            if "://" not in file.uri:
                with contextlib.suppress(OSError):
                    seen = os.stat(file.uri)
                    found[file.uri] = seen.st_size, seen.st_mtime_ns
    return found
