"""Which leases should be given back: deal all slots out anew and see which jobs have too many.

Divisible work makes every policy preemptive without killing anything. Whenever a job waits
and leases are held, the slots that are free or leased are dealt again in the policy's own
order (`deal`); a job that holds more than it was dealt gives the rest back. Nothing is dealt where
there is no divisible work.

Where speed-up curves are known, the deal also says how wide each query runs (`fitting`): slots are
dealt before any is given, and free ones then go to the jobs that were dealt more than they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager

from .deal import Deal, Shares, may_keep
from .entities import NO_LIMIT, JobState
from .fitting import FittingDeal
from .kernel import Kernel


def excess_leases(
    scheduler: Kernel,
    granted: Mapping[tuple[str, str], int],
    settled: Set[tuple[str, str]],
    shares: Shares | None = None,
) -> list[tuple[JobState, str, int]]:
    """(job, node, slots) to revoke; what was just granted, or is settled for now, stays.

    `shares` are those of a deal that was made in this instant already.
    """
    state = scheduler.state
    holders = list(state.leaseholders.values())
    if not holders:
        return []
    if shares is None and any(scheduler.tree.root.ready):
        shares = _deal(scheduler).shares()
    dealt: Counter[str] = Counter()
    for (job_id, _), slots in (shares or {}).items():
        dealt[job_id] += slots
    drains = any(not may_keep(node) for node in state.nodes.values())
    excess = []
    for job in holders:
        held = sum(lease[0] for lease in job.leases.values())
        surplus = 0 if shares is None else held - dealt[job.id]
        if surplus <= 0 and not drains:
            continue
        spare = {
            node_id: slots - granted.get((job.id, node_id), 0)
            for node_id, (slots, _) in job.leases.items()
            if (job.id, node_id) not in settled
        }
        drained = {node_id for node_id in spare if not may_keep(state.nodes[node_id])}
        # First from where the deal put another job: there the slot will be taken.
        for node_id in sorted(spare, key=lambda n: (_dealt(shares, job.id, n) - spare[n], n)):
            wanted = spare[node_id] if node_id in drained else min(spare[node_id], surplus)
            if wanted > 0:
                excess.append((job, node_id, wanted))
                surplus -= wanted
    return excess


def fitting_shares(scheduler: Kernel) -> Shares | None:
    """What each job is to have where speed-up curves are known; None where nothing is to be said.

    A query that is alone has all slots, whatever its curve.
    """
    state = scheduler.state
    if not state.curved or len(state.queries) < 2:
        return None
    return _deal(scheduler).shares()


@contextmanager
def limited(scheduler: Kernel, shares: Shares) -> Iterator[None]:
    """Within it, no job is given more slots than its shares."""
    state, shift = scheduler.state, scheduler.standing.shift
    jobs = dict(state.leaseholders)
    for job in jobs.values():
        job.fit = 0
    for (job_id, _), slots in shares.items():
        job = jobs.setdefault(job_id, state.jobs[job_id])
        job.fit = slots + (0 if job.fit == NO_LIMIT else job.fit)
    for job in jobs.values():
        shift(job)
    yield
    for job in jobs.values():
        job.fit = NO_LIMIT
        shift(job)


def _deal(scheduler: Kernel) -> Deal:
    return FittingDeal(scheduler) if scheduler.state.curved else Deal(scheduler)


def rotate(scheduler: Kernel) -> bool:
    """Rank jobs anew where the order goes by how long they hold slots; whether others wait."""
    pools = scheduler.tree.pools
    holders: dict[int, set[int]] = {}
    for job in scheduler.state.leaseholders.values():
        if pools[job.query.pool].rotates:
            holders.setdefault(job.query.pool, set()).add(job.query.uid)
            scheduler.standing.refresh(job)
    return any(pools[leaf].queries > len(held) for leaf, held in holders.items())


def _dealt(shares: Shares | None, job_id: str, node_id: str) -> int:
    return shares[job_id, node_id] if shares is not None else 0
