"""`queryard cluster`: the nodes of open sessions, and what runs where."""

from __future__ import annotations

from typing import Any

import typer

from queryard.core.readable import several

from .open_sessions import Data, ask_all

# Of so many tables it is said what a node has in its caches.
MOST_TABLES = 4


def cluster(data: Data = None) -> None:
    """Show the nodes of the sessions that are open on some data: slots, memory, what runs there.

    A session on one machine has one node. On a Ray cluster every process that Queryard has there
    is a node, under a name of its own; nodes that do not take part are listed with the reason.

    Example:

    - `queryard cluster --data data/`
    """
    for remote, found in ask_all(data, "cluster"):
        nodes = found["nodes"]
        slots = sum(node["slots"] for node in nodes)
        typer.echo(f"{remote}: {several(len(nodes), 'node')}, {several(slots, 'slot')}")
        for node in nodes:
            typer.echo(f"  {_line(node)}")
        for reason in found["refused"]:
            typer.echo(f"  does not take part: {reason}")


def _line(node: dict[str, Any]) -> str:
    """One node."""
    parts = [f"{node['busy']} of {several(node['slots'], 'slot')} in use"]
    if node["memory_bytes"] != float("inf"):
        parts.append(f"{node['memory_bytes'] / 1e9:.1f} GB for queries")
    if node["objects"]:
        parts.append(f"holds {several(node['objects'], 'object')}")
    if node["cached"]:
        tables = sorted(node["cached"].items(), key=lambda item: -item[1][0])
        read = [f"{table} ({some} of {several(all_, 'split')})" for table, (some, all_) in tables]
        more = f" and {len(read) - MOST_TABLES} more tables" if len(read) > MOST_TABLES else ""
        parts.append(f"has read {', '.join(read[:MOST_TABLES])}{more}")
    if node["draining"]:
        parts.append("takes no new work")
    if node["silent"]:
        parts.append(f"has not answered for {node['silent_s']:.0f} s")
    if node.get("resting"):  # a session of an earlier version does not say
        parts.append(f"gets no work {node['resting']}")
    if node["running"]:
        parts.append(f"runs {', '.join(node['running'])}")
    where = f" at {node['where']}" if node["where"] else ""
    return f"{node['name']}{where}: {', '.join(parts)}"
