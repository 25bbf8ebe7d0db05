"""Which leases should be given back: deal all slots out anew and see who has too many.

Divisible work makes every policy preemptive without killing anything. Whenever somebody waits
and leases are held, the slots that are free or leased are dealt again, one by one, in the
policy's own order; a job that holds more than it was dealt gives the rest back. The deal only
moves counters, and every move is undone at the end. Cost: O(slots · log candidates), and
nothing where there is no divisible work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from .entities import Candidate, JobState, NodeState, PhaseState
from .lifecycle import PENDING, RUNNING
from .model import MAP

if TYPE_CHECKING:
    from .scheduler import Scheduler


def excess_leases(
    scheduler: Scheduler, granted: Mapping[tuple[str, str], int], settled: Set[tuple[str, str]]
) -> list[tuple[JobState, str, int]]:
    """(job, node, slots) to revoke; what was just granted, or is settled for now, stays."""
    state = scheduler.state
    holders = list(state.leaseholders.values())
    if not holders:
        return []
    shares: Counter[tuple[str, str]] | None = None
    if any(scheduler.tree.root.ready):
        shares = _deal(scheduler, holders)
    excess = []
    for job in holders:
        spare = {
            node_id: held - granted.get((job.id, node_id), 0)
            for node_id, (held, _) in job.leases.items()
            if (job.id, node_id) not in settled
        }
        drained = {node_id for node_id in spare if state.nodes[node_id].draining}
        surplus = 0
        if shares is not None:
            held = sum(lease[0] for lease in job.leases.values())
            surplus = held - sum(shares[job.id, node_id] for node_id in state.nodes)
        # First from where the deal put somebody else: there the slot will be taken.
        for node_id in sorted(spare, key=lambda n: (_dealt(shares, job.id, n) - spare[n], n)):
            wanted = spare[node_id] if node_id in drained else min(spare[node_id], surplus)
            if wanted > 0:
                excess.append((job, node_id, wanted))
                surplus -= wanted
    return excess


def _dealt(shares: Counter[tuple[str, str]] | None, job_id: str, node_id: str) -> int:
    return shares[job_id, node_id] if shares is not None else 0


def _deal(scheduler: Scheduler, holders: list[JobState]) -> Counter[tuple[str, str]]:
    """Slots by (job, node) when everything leasable is dealt anew."""
    state, tree = scheduler.state, scheduler.tree
    held = [(job, job.slots) for job in holders]
    for job, slots in held:
        _hold(scheduler, job, -slots)
    # What the deal touches beside the jobs, to be put back.
    reserved_bytes, waiter = state.reserved_bytes, scheduler.admission.waiter
    nodes = [node for node in state.nodes.values() if not node.draining]
    counts = [(node, node.free, node.maps, node.reduces, node.leased) for node in nodes]
    for node in nodes:
        node.free, node.leased = node.free + node.leased, 0
    dealt: list[tuple[JobState, PhaseState | None, str]] = []
    admitted: set[int] = set()

    homes = Counter({(job.id, n): sum(lease) for job, _ in held for n, lease in job.leases.items()})

    def home(job: JobState) -> NodeState | None:
        for node_id in job.leases:
            node = state.nodes[node_id]
            if homes[job.id, node_id] > 0 and node.free and not node.draining:
                return node
        return None

    def attempt(candidate: Candidate, lane: int, node: NodeState) -> bool:
        query = candidate.query
        if query.stage == "waiting" and query.uid not in admitted:
            if not scheduler.admission.admits(query, lane):
                return False
            admitted.add(query.uid)
            state.reserved_bytes += query.spec.memory_bytes
        if isinstance(candidate, JobState):
            job = candidate
        else:
            jobs = query.runnable[lane]
            job = jobs[0] if len(jobs) == 1 else scheduler.filling.pick_job(jobs)
        phase = scheduler.filling.next_phase(job, lane, node)
        if phase is not None:
            phase.counts[PENDING] -= 1
            phase.counts[RUNNING] += 1
            node.maps += phase.kind == MAP
            node.reduces += phase.kind != MAP
        elif job.map is None:
            # Work stays where it is: it is dealt a slot it holds before any other.
            node = home(job) or node
            node.leased += 1
            homes[job.id, node.id] -= 1
        else:
            return False
        node.free -= 1
        dealt.append((job, phase, node.id))
        _hold(scheduler, job, 1)
        return True

    tree.dealing = True
    takers = [node for node in nodes if node.free]
    while takers:
        takers = [n for n in takers if n.free and scheduler.filling.offer(n, attempt)]
    tree.dealing = False

    shares: Counter[tuple[str, str]] = Counter()
    for job, phase, node_id in reversed(dealt):
        if phase is None:
            shares[job.id, node_id] += 1
        else:
            phase.counts[PENDING] += 1
            phase.counts[RUNNING] -= 1
        _hold(scheduler, job, -1)
    for job, slots in held:
        _hold(scheduler, job, slots)
    for node, free, maps, reduces, leased in counts:
        node.free, node.maps, node.reduces, node.leased = free, maps, reduces, leased
    state.reserved_bytes, scheduler.admission.waiter = reserved_bytes, waiter
    return shares


def _hold(scheduler: Scheduler, job: JobState, slots: int) -> None:
    job.slots += slots
    job.query.slots += slots
    scheduler.tree.charge(job.query.pool, slots)
    scheduler.standing.refresh(job)
