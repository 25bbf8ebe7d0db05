"""What lies in the object stores of a Ray cluster."""

from __future__ import annotations

from typing import Any, NamedTuple


class Stored(NamedTuple):
    """Bytes in the store of one node; `beyond` are those that did not fit, and lie in files."""

    used: int
    beyond: int
    size: int


def stored(ray: Any) -> list[Stored]:
    """The object store of each node that lives."""
    from ray._private.internal_api import node_stats

    found = []
    for node in ray.nodes():
        if node["Alive"]:
            where = node["NodeManagerAddress"], node["NodeManagerPort"]
            stats = node_stats(*where, include_memory_info=False).store_stats
            found.append(
                Stored(
                    stats.object_store_bytes_used,
                    stats.object_store_bytes_fallback,
                    stats.object_store_bytes_avail,
                )
            )
    return found
