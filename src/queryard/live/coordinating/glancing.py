"""What a page shows of all active queries: cheap enough to be asked for twice per second.

`Kernel.why` tells one query in full, and walks the rankings for it. Here every ranking is walked
once for all its queries, up to a number of them.
"""

from __future__ import annotations

from heapq import merge

from queryard.core.entities import QueryState
from queryard.core.kernel import Kernel
from queryard.core.model import JobId
from queryard.core.pools import Pool
from queryard.core.state import State

from ..choosing.state import PolicyState
from ..overview import NO_TURN, ClusterView, Hold, Load, NodeGlance, Overview, Standing
from .entry import Entry
from .ledger import Ledger

# Queries in rankings that are looked at; those behind them have no position.
MOST_RANKED = 2_000


def overview(ledger: Ledger, policy: PolicyState, now_s: float) -> Overview:
    """How all active queries stand; the host adds the facts that were published of them."""
    kernel = ledger.kernel
    state = kernel.state
    turns = _turns(kernel)
    return Overview(
        now_s=now_s,
        facts=(),
        turns=turns,
        # Behind others a query waits for them, whatever else it will wait for.
        standings={
            name: _standing(entry, state.queries.get(name), kernel)
            for name, entry in ledger.entries.items()
            if not turns.get(name, NO_TURN)[0]
        },
        slots=state.total_slots,
        busy_slots=state.busy_slots,
        memory_bytes=state.memory_bytes,
        reserved_bytes=state.reserved_bytes,
        policy=policy,
        paused_by=state.paused_by,
    )


def load(ledger: Ledger) -> Load:
    """How much there is to do."""
    state = ledger.kernel.state
    running = sum(entry.started_s is not None for entry in ledger.entries.values())
    waiting = len(ledger.entries) - running
    return Load(state.total_slots, state.busy_slots, waiting, running, state.reserved_bytes)


def _standing(entry: Entry, known: QueryState | None, kernel: Kernel) -> Standing:
    slots = 0 if known is None else known.slots
    return Standing(slots, _hold(entry, known, kernel), entry.memory_bytes)


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
    reserved = _reserved_by_host(state)
    whole = {name: host.memory_bytes for name, host in state.hosts.items()}
    cached = ledger.places.cached()
    return ClusterView(
        now_s=now_s,
        nodes=tuple(
            NodeGlance(
                name=node.id,
                host=node.host,
                draining=node.leaving,
                slots=node.spec.slots,
                busy=node.spec.slots - node.free,
                speed=node.spec.map_speed,
                memory_bytes=node.spec.memory_bytes,
                # Nodes of a host share its memory.
                reserved_bytes=reserved[node.host]
                * (node.spec.memory_bytes / whole[node.host] if whole.get(node.host) else 1.0),
                since_s=node.since_s,
                running=tuple(running[node.id]),
                cached=cached.get(node.id, {}),
                silent=node.silent and (ledger.health.is_silent(node.id) or not ledger.spreads),
                resting=ledger.health.resting(node.id, ledger.now),
            )
            for node in state.nodes.values()
        ),
        kept_tables=dict(state.kept),
    )


def _reserved_by_host(state: State) -> dict[str, float]:
    """What queries have reserved; of a query that is bound to no host, each host has its part."""
    hosts = {node.host for node in state.nodes.values()}
    found = dict.fromkeys(hosts, 0.0)
    for name, held in state.reservations.items():
        bound = {job.host for job in state.queries[name].jobs} & hosts
        for host in bound or hosts:
            found[host] += held / len(bound) if bound else held * state.part_of(host)
    return found
