"""What a session on a Ray cluster holds: objects, actors, temporary files, threads, open files."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import queryard

from .nodes import Nodes

# Connections of Ray's own to a node that has died close when it likes; some stay for minutes.
SLACK_FILES = 40
SLACK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Left:
    """What is held at one moment by an idle session."""

    queries: int
    objects: int
    """That nodes say they hold for queries."""
    store_bytes: int
    """In the object stores of all nodes, as Ray says."""
    actors: int
    """That live, as Ray says."""
    folders: int
    """Of temporary files, one per process that lives."""
    files: int
    """In those folders."""
    spilled: int
    """Files of Ray's to which it has moved objects."""
    threads: Counter[str]
    open_files: int

    def more_than(self, before: Left, nodes: int) -> list[str]:
        """What is too much; `before` was held by the same session when it was idle."""
        found = []
        for name, now, most in (
            ("queries", self.queries, 0),
            ("objects at nodes", self.objects, 0),
            ("bytes in object stores", self.store_bytes, before.store_bytes + SLACK_BYTES),
            ("actors", self.actors, nodes),
            ("folders of temporary files", self.folders, nodes + 1),
            ("temporary files", self.files, before.files),
            ("spilled files", self.spilled, before.spilled),
            ("open files", self.open_files, before.open_files + SLACK_FILES),
        ):
            if now > most:
                found.append(f"{name}: {now:,}, expected at most {most:,}")
        if more := self.threads - before.threads:
            found.append(f"threads: {dict(more)}")
        return found


def left_in(session: queryard.Session, cluster: Nodes, temporary: Path) -> Left:
    """What is held now."""
    import ray

    gc.collect()
    backend: Any = session.host.backend
    reports = backend.reports().values()
    return Left(
        queries=len(session.queries()) + sum(report.queries for report in reports),
        objects=sum(report.objects for report in reports),
        store_bytes=_store_bytes(ray),
        actors=_actors(ray),
        folders=sum(1 for each in temporary.iterdir() if each.is_dir()),
        files=sum(1 for each in temporary.rglob("*") if each.is_file() and each.name != ".lock"),
        spilled=sum(1 for each in cluster.folder.rglob("ray_spilled_objects*/*")),
        threads=Counter(_kind(thread.name) for thread in threading.enumerate()),
        open_files=len(os.listdir("/proc/self/fd")),
    )


def _kind(thread: str) -> str:
    """The name of a thread without that of its node, or its number.

    >>> _kind("queryard-orders-1c9a0f3e-1"), _kind("ThreadPoolExecutor-3_17")
    ('queryard-orders', 'ThreadPoolExecutor')
    """
    return (
        thread.rstrip("_0123456789-")
        if "queryard" not in thread
        else "-".join(thread.split("-")[:2])
    )


def _actors(ray: Any) -> int:
    from ray._private.state import actors

    return sum(1 for actor in actors().values() if actor["State"] == "ALIVE")


def _store_bytes(ray: Any) -> int:
    import ray._private.grpc_utils  # without grpc every node would seem to have died
    from ray._private.internal_api import node_stats

    total = 0
    for node in ray.nodes():
        if node["Alive"]:
            with contextlib.suppress(Exception):  # it has died just now
                stats = node_stats(
                    node["NodeManagerAddress"], node["NodeManagerPort"], include_memory_info=False
                ).store_stats
                total += stats.object_store_bytes_used + stats.object_store_bytes_fallback
    return total
