"""The nodes of the cluster, and the policy that shares them out."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from queryard.backends.protocol import Backend
from queryard.live.choosing.state import PolicyChange
from queryard.live.overview import ClusterView, NodeGlance

from .clock import WallClock

# A node that has not answered for longer may be lost.
SUSPECT_S = 3.0


@runtime_checkable
class TellsSilence(Protocol):
    """A backend with nodes on other machines."""

    def silent_s(self) -> Mapping[str, float]:
        """For how long each node has not answered."""


def suspects(backend: Backend) -> frozenset[str]:
    """Nodes that may be lost."""
    if not isinstance(backend, TellsSilence):
        return frozenset()
    return frozenset(name for name, silent in backend.silent_s().items() if silent > SUSPECT_S)


def backend_name(backend: Backend) -> str:
    """What a backend is called: the package that it is of.

    >>> from queryard.backends.fake import FakeBackend
    >>> backend_name(FakeBackend.__new__(FakeBackend))
    'fake'
    """
    return type(backend).__module__.removeprefix("queryard.backends.").partition(".")[0]


def cluster_document(
    view: ClusterView,
    backend: str,
    sees: Callable[[str], bool],
    is_admin: bool,
    suspected: Container[str] = (),
) -> dict[str, Any]:
    """All nodes; `sees` says which queries are named, and admins see which tables are kept."""
    kept = view.kept_tables
    caches = {"parsed_tables": len(kept)} if kept else {}
    return {
        "backend": backend,
        "nodes": [_node(node, sees, caches, node.name in suspected) for node in view.nodes],
        "kept_tables": dict(kept) if is_admin else {},
    }


def _node(
    node: NodeGlance, sees: Callable[[str], bool], caches: Mapping[str, Any], is_suspect: bool
) -> dict[str, Any]:
    is_bounded = math.isfinite(node.memory_bytes)
    shown = [query for query in node.running if sees(query)]
    return {
        "name": node.name,
        "host": node.host,
        "state": "suspect" if is_suspect else "draining" if node.draining else "up",
        "slots": node.slots,
        "busy": node.busy,
        "speed": node.speed,
        "memory_bytes": int(node.memory_bytes) if is_bounded else None,
        "free_bytes": int(node.memory_bytes - node.reserved_bytes) if is_bounded else None,
        "caches": dict(caches),
        "running": shown,
        "running_others": len(node.running) - len(shown),
    }


def changes_document(
    changes: Iterable[PolicyChange], before: Iterable[Mapping[str, Any]], clock: WallClock
) -> list[dict[str, Any]]:
    """Changes of the policy, the latest first: of this session, and of the history `before` it."""
    found = [
        {
            "at": clock.at(change.time_s),
            "from": change.before,
            "to": change.after,
            "by": change.by or None,
            "reason": change.reason or None,
        }
        for change in changes
    ]
    rows = list(before)
    for place, row in enumerate(rows):
        earlier = rows[place + 1]["profile"].get("name") if place + 1 < len(rows) else None
        found.append(
            {
                "at": round(row["at"], 3),
                "from": earlier,
                "to": row["profile"].get("name", ""),
                "by": None,
                "reason": None,
            }
        )
    return found
