"""Which leases should be given back: deal all slots out anew and see which jobs have too many.

Divisible work makes every policy preemptive without killing anything. Whenever a job waits
and leases are held, the slots that are free or leased are dealt again in the policy's own
order; a job that holds more than it was dealt gives the rest back. The deal only moves
counters, and every move is undone at the end. Cost: O(slots) steps, each with a change of
rank only where the order goes by the slots held; nothing where there is no divisible work.

Where speed-up curves are known, the deal also says how wide each query runs (`claims`): slots are
dealt before any is given, and free ones then go to the jobs that were dealt more than they hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from heapq import merge
from itertools import islice

from .claims import Claims
from .entities import NO_LIMIT, Candidate, JobState, NodeState, QueryState
from .filling import most_free
from .kernel import Kernel
from .lifecycle import PENDING, RUNNING
from .model import MAP
from .phases import PhaseState
from .pools import Pool
from .serving import PASSING

# (job, node) -> slots
Shares = Counter[tuple[str, str]]
# A slot that speeds a job up by less than this part of a slot is offered to all others first.
WORTH = 0.1


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
        shares = _Deal(scheduler, holders).shares()
    excess = []
    for job in holders:
        spare = {
            node_id: held - granted.get((job.id, node_id), 0)
            for node_id, (held, _) in job.leases.items()
            if (job.id, node_id) not in settled
        }
        drained = {node_id for node_id in spare if not _may_keep(state.nodes[node_id])}
        surplus = 0
        if shares is not None:
            held = sum(lease[0] for lease in job.leases.values())
            surplus = held - sum(shares[job.id, node_id] for node_id in state.nodes)
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
    return _Deal(scheduler, list(state.leaseholders.values())).shares()


@contextmanager
def limited(scheduler: Kernel, shares: Shares) -> Iterator[None]:
    """Within it, no job is given more slots than its shares."""
    state, refresh = scheduler.state, scheduler.standing.refresh
    jobs = dict(state.leaseholders)
    for job in jobs.values():
        job.fit = 0
    for (job_id, _), slots in shares.items():
        job = jobs.setdefault(job_id, state.jobs[job_id])
        job.fit = slots + (0 if job.fit == NO_LIMIT else job.fit)
    for job in jobs.values():
        refresh(job)
    yield
    for job in jobs.values():
        job.fit = NO_LIMIT
        refresh(job)


def _may_keep(node: NodeState) -> bool:
    """Whether leases of the node need not move elsewhere, or cannot."""
    return not node.draining or node.serves_bound


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


class _Homes:
    """The slots a job holds, node by node: it is dealt these before any other."""

    __slots__ = ("_at", "_left", "_nodes")

    def __init__(self, scheduler: Kernel, job: JobState) -> None:
        nodes = scheduler.state.nodes
        kept = [node_id for node_id in job.leases if _may_keep(nodes[node_id])]
        self._nodes = [nodes[node_id] for node_id in kept]
        self._left = [sum(job.leases[node_id]) for node_id in kept]
        self._at = 0

    def take(self) -> NodeState | None:
        """The next such slot; a node without one left, or without a free one, has none again."""
        while self._at < len(self._nodes):
            node = self._nodes[self._at]
            if self._left[self._at] > 0 and node.free:
                self._left[self._at] -= 1
                return node
            self._at += 1
        return None


class _Deal:
    """One deal of everything leasable: which job would have which slots."""

    def __init__(self, scheduler: Kernel, holders: list[JobState]) -> None:
        self._scheduler = scheduler
        self._state = scheduler.state
        self._filling = scheduler.filling
        self._held = [(job, job.slots) for job in holders]
        self._homes = {job.uid: _Homes(scheduler, job) for job in holders}
        self._admitted: dict[int, QueryState] = {}
        # Jobs that would start: on trial they are bound to where they are dealt their first slot.
        self._bound: list[JobState] = []
        self._shares: Shares = Counter()
        # What was dealt, to be undone: slots by job, the one that was dealt a slot last at the end,
        # and tasks by phase.
        self._jobs: dict[int, tuple[JobState, int]] = {}
        self._phases: dict[int, tuple[PhaseState, int]] = {}
        # Divisible work that stays first while nothing in this ranking changes.
        front = scheduler.tree.root.lanes[0]
        keeps_front = self._filling.keeps_front and not (self._state.apart or self._state.curved)
        self._front = front if keeps_front else None
        self._head: JobState | None = None
        self._changes = 0
        # With speed-up curves: what candidates claim, by leaf, lane and host; the job that was
        # given the last slot; and jobs to which another slot is not worth much, with their claims.
        self._claims: dict[tuple[int, int, str, bool], Claims] = {}
        self._served: JobState | None = None
        self._sated: dict[int, JobState] = {}
        self._waived: list[tuple[Claims, int, Candidate, JobState]] = []
        self._worth = WORTH if self._state.curved else 0.0

    def shares(self) -> Shares:
        """Deal, and put everything back as it was."""
        state, tree = self._state, self._scheduler.tree
        tree.hold(True)
        for job, slots in self._held:
            self._hold(job, -slots)
        # What the deal touches beside the jobs, to be put back.
        reserved_bytes, waiter = state.reserved_bytes, self._scheduler.admission.waiter
        nodes = [node for node in state.nodes.values() if _may_keep(node)]
        counts = [(node, node.free, node.maps, node.reduces, node.leased) for node in nodes]
        for node in nodes:
            node.free, node.leased = node.free + node.leased, 0
        self._deal(nodes)
        tree.hold(False)
        for phase, tasks in self._phases.values():
            phase.counts[PENDING] += tasks
            phase.counts[RUNNING] -= tasks
        for job in self._bound:
            job.host = ""
        for job, slots in reversed(self._jobs.values()):
            self._hold(job, -slots)
        for job, slots in self._held:
            self._hold(job, slots)
        for node, free, maps, reduces, leased in counts:
            node.free, node.maps, node.reduces, node.leased = free, maps, reduces, leased
        state.reserved_bytes, self._scheduler.admission.waiter = reserved_bytes, waiter
        if state.apart:
            for query in self._admitted.values():
                del state.reservations[query.id]
        return self._shares

    def _deal(self, nodes: list[NodeState]) -> None:
        tree = self._scheduler.tree
        if self._state.curved:
            tree.fits = self._serve_fitting
            if self._state.apart:
                nodes.sort(key=most_free)  # as free slots will be filled
        self._offer_all(nodes)
        if self._sated:
            # Slots that are of little use to these are of none to others.
            self._worth = 0.0
            self._release()
            self._offer_all(nodes)
        tree.fits = None

    def _offer_all(self, nodes: list[NodeState]) -> None:
        takers = [node for node in nodes if node.free]
        while takers:
            takers = [node for node in takers if node.free and self._offer(node)]

    def _release(self) -> None:
        for job in self._sated.values():
            job.fit = NO_LIMIT
            self._scheduler.standing.refresh(job)
        self._sated.clear()
        for claims, place, candidate, job in self._waived:
            claims.again(place, candidate, job)

    # --- with speed-up curves --------------------------------------------------------------------

    def _serve_fitting(self, leaf: Pool, lane: int, node: NodeState) -> bool:
        """Give a slot to the candidate of a leaf to which it is worth most."""
        host = node.host if self._state.apart else ""
        key = (leaf.index, lane, host, node.draining)
        claims = self._claims.get(key)
        if claims is None:
            line = self._line(leaf, lane, node)
            claims = self._claims[key] = Claims(max(leaf.queries, len(line)), line)
        while (best := claims.best()) is not None:
            place, candidate = best
            if self._attempt(candidate, lane, node):
                job = self._served
                assert job is not None
                if job.uid in self._sated:
                    self._waived.append((claims, place, candidate, job))
                else:
                    claims.again(place, candidate, job)
                return True
        return False

    def _line(self, leaf: Pool, lane: int, node: NodeState) -> list[Candidate]:
        """The candidates of a leaf in its order, as many as can matter."""
        turns = leaf.free_for(node, lane, self._state)
        if leaf.gates[lane].keys and not node.draining:
            turns = merge(leaf.turns(leaf.gates[lane], self._state), turns)
        most = self._state.total_slots + PASSING
        return [leaf.members[uid] for _, uid in islice(turns, most)]

    # --- one slot after another ------------------------------------------------------------------

    def _hold(self, job: JobState, slots: int) -> None:
        job.slots += slots
        job.query.slots += slots
        if self._filling.meters:
            self._scheduler.tree.charge(job.query.pool, slots)
        self._scheduler.standing.refresh(job)

    def _offer(self, node: NodeState) -> bool:
        head, front = self._head, self._front
        if head is not None and front is not None and front.changes == self._changes:
            self._give(head, None, node)
            return True
        self._head = None
        return self._filling.offer(node, self._attempt)

    def _attempt(self, candidate: Candidate, lane: int, node: NodeState) -> bool:
        query = candidate.query
        jobs = self._filling.jobs_for(candidate, lane, node)
        if not jobs:
            return False  # what it has to do is to be done elsewhere
        if query.stage == "waiting" and query.uid not in self._admitted:
            if not self._scheduler.admission.admits(query, lane, node):
                return False
            self._admitted[query.uid] = query
            self._state.reserved_bytes += query.memory_bytes
            if self._state.apart:
                self._state.reservations[query.id] = query.memory_bytes
        job = jobs[0] if len(jobs) == 1 else self._filling.pick_job(jobs)
        if not job.lanes >> lane & 1:
            return False
        phase = self._filling.next_phase(job, lane, node)
        if phase is None and job.map is not None:
            return False
        self._give(job, phase, node)
        if phase is None:
            self._remember(candidate, job)
        return True

    def _remember(self, candidate: Candidate, job: JobState) -> None:
        """If no other job can be meant by the first candidate, the next slots are its, too."""
        front, gate = self._front, self._scheduler.tree.root.gates[0]
        if front is None or gate.keys or not front.keys:
            return
        _, first = next(iter(self._scheduler.tree.root.turns(front, self._state)))
        if first == candidate.uid and candidate.query.runnable[0] == [job]:
            self._head, self._changes = job, front.changes

    def _give(self, job: JobState, phase: PhaseState | None, node: NodeState) -> None:
        """One slot to a job: of the node, or where it holds one already."""
        if phase is None:
            homes = self._homes.get(job.uid)
            node = (homes.take() if homes is not None else None) or self._filling.home(job, node)
            node.leased += 1
            self._shares[job.id, node.id] += 1
            more = job.slots + 1 < job.width
            if self._state.apart and job.stays and not job.host:
                job.host = node.host
                self._bound.append(job)
                more = False  # its rankings are others now
        else:
            phase.counts[PENDING] -= 1
            phase.counts[RUNNING] += 1
            node.maps += phase.kind == MAP
            node.reduces += phase.kind != MAP
            self._phases[id(phase)] = (phase, self._phases.get(id(phase), (phase, 0))[1] + 1)
            more = phase.counts[PENDING] > 0
        node.free -= 1
        self._jobs[job.uid] = (job, self._jobs.pop(job.uid, (job, 0))[1] + 1)
        job.slots += 1
        job.query.slots += 1
        if self._filling.meters:
            self._scheduler.tree.charge(job.query.pool, 1)
        self._served = job
        if self._worth and phase is None and job.speedup.gain(job.slots) < self._worth:
            job.fit = job.slots
            self._sated[job.uid] = job
            more = False
        if not more:
            self._scheduler.standing.refresh(job)
        elif self._scheduler.standing.every_launch:
            self._scheduler.standing.launched(job)
