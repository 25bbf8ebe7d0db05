"""The nodes of the cluster, and the policy that shares them out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from queryard.backends.protocol import Backend, NodeNote
from queryard.live.choosing.state import PolicyChange
from queryard.live.overview import ClusterView, NodeGlance

from .clock import WallClock

NO_NOTES: Mapping[str, NodeNote] = {}


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
    notes: Mapping[str, NodeNote] = NO_NOTES,
    refused: Sequence[str] = (),
) -> dict[str, Any]:
    """All nodes, with what the backend says of them; `sees` says which queries are named.

    Admins see which tables are kept, where nodes are, and which do not take part (`refused`).
    """
    kept = view.kept_tables
    caches = {"parsed_tables": len(kept)} if kept else {}
    return {
        "backend": backend,
        "nodes": [
            _node(node, sees, is_admin, caches, notes.get(node.name, NodeNote()))
            for node in view.nodes
        ],
        "kept_tables": dict(kept) if is_admin else {},
        "refused": list(refused) if is_admin else [],
    }


def _node(
    node: NodeGlance,
    sees: Callable[[str], bool],
    is_admin: bool,
    caches: Mapping[str, Any],
    note: NodeNote,
) -> dict[str, Any]:
    held: dict[str, Any] = {"task_outputs": note.objects} if note.objects else {}
    if is_admin and node.cached:
        held["splits_read"] = ", ".join(
            f"{table} {some} of {all_}" for table, (some, all_) in node.cached.items()
        )
    is_bounded = math.isfinite(node.memory_bytes)
    shown = [query for query in node.running if sees(query)]
    return {
        "name": node.name,
        "host": node.host,
        "where": note.where if is_admin and note.where else None,
        "state": _state(node),
        "resting": node.resting if is_admin and node.resting else None,
        "slots": node.slots,
        "busy": node.busy,
        "speed": node.speed,
        "memory_bytes": int(node.memory_bytes) if is_bounded else None,
        "free_bytes": int(node.memory_bytes - node.reserved_bytes) if is_bounded else None,
        "caches": {**caches, **held},
        "running": shown,
        "running_others": len(node.running) - len(shown),
    }


def _state(node: NodeGlance) -> str:
    if node.silent:
        return "suspect"
    if node.resting:
        return "resting"
    return "draining" if node.draining else "up"


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
