"""What a page shows of all active queries: cheap enough to be asked for twice per second.

`Kernel.why` tells one query in full, and walks the rankings for it. Here every ranking is walked
once for all its queries, up to a number of them.
"""

from __future__ import annotations

import math
from heapq import merge

from queryard.core.entities import QueryState
from queryard.core.kernel import Kernel
from queryard.core.model import JobId
from queryard.core.pools import Pool

from ..overview import ClusterView, Glance, Hold, NodeGlance, Overview
from .entry import Entry
from .ledger import Ledger

# Queries in rankings that are looked at; those behind them have no position.
MOST_RANKED = 2_000


def overview(ledger: Ledger, now_s: float) -> Overview:
    """All active queries, the earliest first."""
    kernel = ledger.kernel
    state = kernel.state
    turns = _turns(kernel)
    return Overview(
        now_s=now_s,
        queries=tuple(_glance(entry, kernel, turns) for entry in ledger.entries.values()),
        slots=state.total_slots,
        busy_slots=state.busy_slots,
        memory_bytes=state.memory_bytes,
        reserved_bytes=state.reserved_bytes,
    )


def _glance(entry: Entry, kernel: Kernel, turns: dict[str, tuple[int, float]]) -> Glance:
    known = kernel.state.queries.get(entry.id)
    position, turn = turns.get(entry.id, (None, math.inf))
    return Glance(
        entry.id,
        entry.request,
        entry.submitted_s,
        entry.started_s,
        0 if known is None else known.slots,
        entry.progress,
        entry.prediction.work_s,
        entry.work_s,
        entry.memory_bytes,
        # Behind others it waits for them, whatever else it will wait for.
        "order" if position else _hold(entry, known, kernel),
        position,
        turn,
    )


def _hold(entry: Entry, known: QueryState | None, kernel: Kernel) -> Hold:
    """What a query waits for, of all reasons the first one."""
    if entry.shares_with:
        return "shared"
    if known is None:
        return "planning" if entry.work is None else "entering"
    if known.slots:
        return ""
    if entry.behind:
        return "reader"
    if known.stage == "waiting" and known.memory_bytes and not kernel.state.fits(known):
        return "memory"
    if _is_at_cap(kernel.tree.pools[known.pool]):
        return "cap"
    return "order" if known.stage == "waiting" else "slots"


def _is_at_cap(pool: Pool | None) -> bool:
    while pool is not None:
        if pool.used + 1 > pool.cap:
            return True
        pool = pool.parent
    return False


def _turns(kernel: Kernel) -> dict[str, tuple[int, float]]:
    """How many waiting queries stand before each waiting one in its pool, and when its turn is."""
    found: dict[str, tuple[int, float]] = {}
    left = MOST_RANKED
    for pool in kernel.tree.pools.values():
        if pool.order is None or not pool.members or left <= 0:
            continue
        weight = _weight(pool)
        position = 0
        state = kernel.state
        rankings = [pool.turns(ranking, state) for ranking in pool.all_rankings if ranking.keys]
        for _, uid in rankings[0] if len(rankings) == 1 else merge(*rankings):
            left -= 1
            query = pool.members[uid].query
            if query.stage == "waiting" and query.id not in found:
                found[query.id] = position, position / weight
                position += 1
            if left <= 0:
                break
    return found


def _weight(pool: Pool) -> float:
    """The share of a pool among all, by the weights of the pools above it."""
    weight = 1.0
    while pool.parent is not None:
        rivals = (other.weight for other in pool.parent.names.values() if other.queries)
        weight *= pool.weight / max(pool.weight, sum(rivals))
        pool = pool.parent
    return weight


def cluster(ledger: Ledger, now_s: float) -> ClusterView:
    """All nodes, with the queries that hold their slots."""
    state = ledger.kernel.state
    running: dict[str, dict[str, None]] = {name: {} for name in state.nodes}
    for launch in state.running.values():
        if launch.node in running:
            running[launch.node].update({JobId.of(task.job).query: None for task in launch.tasks})
    for job in state.leaseholders.values():
        for node, held in job.leases.items():
            if node in running and any(held):
                running[node][job.query.id] = None
    return ClusterView(
        now_s=now_s,
        nodes=tuple(
            NodeGlance(
                name=node.id,
                host=node.host,
                draining=node.draining,
                slots=node.spec.slots,
                busy=node.spec.slots - node.free,
                speed=node.spec.map_speed,
                memory_bytes=node.spec.memory_bytes,
                since_s=node.since_s,
                running=tuple(running[node.id]),
            )
            for node in state.nodes.values()
        ),
        reserved_bytes=state.reserved_bytes,
        kept_tables=dict(state.kept),
    )
