"""A fork with longer intervals between refreshes, so that hours are simulated within a moment.

Time-dependent orders are refreshed on a tick, pools change turns every quantum, and running work
reports its progress, each about once per second. Over a queue of hours that is a hundred thousand
refreshes, and nearly none of them changes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from queryard.core.policy import PoolSpec
from queryard.core.scheduler import Scheduler
from queryard.core.state import State

# The largest number of refreshes from now to the end of all work, and of refreshes per query: a
# refresh costs more with more queries.
LOOKS = 300
LOOKS_AT_QUERIES = 3000


def look_every_s(state: State) -> float:
    """The interval between refreshes, given the work left of all queries."""
    left_s = sum(query.left_s for query in state.queries.values()) / max(1, state.total_slots)
    return left_s / min(LOOKS, max(1, LOOKS_AT_QUERIES // max(1, len(state.queries))))


def coarsen(fork: Scheduler, every_s: float) -> None:
    """Refresh a fork no more often than this; never call it on the kernel itself."""
    state = fork.state
    state.settings = replace(state.settings, tick_s=max(state.settings.tick_s, every_s))
    for part in fork.parts:
        part.look_every(every_s)
    for pool in fork.tree.pools.values():
        if pool.spec.choice != "share" and every_s > pool.spec.quantum_s:
            pool.spec = replace(pool.spec, quantum_s=every_s)


def longer_turns(profile: Mapping[str, Any], quantum_s: float) -> Mapping[str, Any]:
    """The profile with quanta of at least this length, where pools take turns or draw lots.

    >>> longer_turns({"pools": {"choice": "turns", "default": "fifo"}}, 60.0)
    {'pools': {'choice': 'turns', 'default': 'fifo', 'quantum_s': 60.0}}
    >>> longer_turns({"order": "fifo"}, 60.0)
    {'order': 'fifo'}
    """
    pools = profile.get("pools")
    return {**profile, "pools": _longer(pools, quantum_s)} if pools is not None else profile


def _longer(pool: Any, quantum_s: float) -> Any:
    if not isinstance(pool, Mapping):
        return pool
    found = dict(pool)
    if "default" in pool:
        found["default"] = _longer(pool["default"], quantum_s)
    if "children" in pool:
        found["children"] = {
            name: _longer(child, quantum_s) for name, child in pool["children"].items()
        }
    if pool.get("choice", "share") != "share":
        shortest_s = pool.get("quantum_s", PoolSpec.quantum_s)
        if quantum_s > shortest_s:
            found["quantum_s"] = quantum_s
    return found
