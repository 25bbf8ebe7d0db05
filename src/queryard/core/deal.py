"""One deal of all slots that are free or leased, on trial: which job would have which slots.

The deal only moves counters, and every move is undone at the end. Cost: O(slots) steps, each with
a change of rank only where the order goes by the slots held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from .entities import Candidate, JobState, QueryState
from .kernel import Kernel
from .lifecycle import PENDING, RUNNING
from .model import MAP
from .nodes import NodeState
from .phases import PhaseState

# (job, node) -> slots
Shares = Counter[tuple[str, str]]


def may_keep(node: NodeState) -> bool:
    """Whether leases of the node need not move elsewhere, or cannot."""
    return not node.draining or node.serves_bound


class Homes:
    """The slots a job holds, node by node: it is dealt these before any other."""

    __slots__ = ("_at", "_left", "_nodes")

    def __init__(self, kernel: Kernel, job: JobState) -> None:
        nodes = kernel.state.nodes
        kept = [node_id for node_id in job.leases if may_keep(nodes[node_id])]
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


class Deal:
    """Slot after slot goes to the candidate that is next in the pool tree."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._state = kernel.state
        self._filling = kernel.filling
        self._standing = kernel.standing
        self._tree = kernel.tree
        self._nodes = [node for node in self._state.nodes.values() if may_keep(node)]
        holders = self._state.leaseholders.values()
        self._held = [(job, job.slots) for job in holders]
        # With one node there is no choice of homes.
        self._has_one_node = len(self._nodes) == 1 and not self._state.apart
        homes: Iterable[JobState] = () if self._has_one_node else holders
        self._homes = {job.uid: Homes(kernel, job) for job in homes}
        self._admitted: dict[int, QueryState] = {}
        # Jobs that would start: on trial they are bound to where they are dealt their first slot.
        self._bound: list[JobState] = []
        # What was dealt, slot by slot, to be undone: the job, and of leases the node; and tasks by
        # phase.
        self._dealt: list[tuple[JobState, NodeState | None]] = []
        self._phases: dict[int, tuple[PhaseState, int]] = {}
        # Divisible work that stays first while nothing in this ranking changes.
        front = self._tree.root.lanes[0]
        self._front = front if self._filling.keeps_front and not self._state.apart else None
        self._head: JobState | None = None
        self._changes = 0

    def shares(self) -> Shares:
        """Deal, and put everything back as it was."""
        state = self._state
        self._tree.hold(True)
        for job, slots in self._held:
            self._hold(job, -slots)
        # What the deal touches beside the jobs, to be put back.
        reserved_bytes, waiter = state.reserved_bytes, self._kernel.admission.waiter
        nodes = self._nodes
        counts = [(node, node.free, node.maps, node.reduces, node.leased) for node in nodes]
        for node in nodes:
            node.free, node.leased = node.free + node.leased, 0
        self._deal()
        self._tree.hold(False)
        for phase, tasks in self._phases.values():
            phase.counts[PENDING] += tasks
            phase.counts[RUNNING] -= tasks
        for job in self._bound:
            job.host = ""
        # The job that was dealt a slot last is the first to give its slots back.
        for job, slots in Counter(job for job, _ in reversed(self._dealt)).items():
            self._hold(job, -slots)
        for job, slots in self._held:
            self._hold(job, slots)
        for node, free, maps, reduces, leased in counts:
            node.free, node.maps, node.reduces, node.leased = free, maps, reduces, leased
        state.reserved_bytes, self._kernel.admission.waiter = reserved_bytes, waiter
        if state.apart:
            for query in self._admitted.values():
                del state.reservations[query.id]
        return Counter((job.id, node.id) for job, node in self._dealt if node is not None)

    def _deal(self) -> None:
        self._offer_all()

    def _offer_all(self) -> None:
        """Offer all free slots, one per node in turn."""
        takers = [node for node in self._nodes if node.free]
        while takers:
            takers = [node for node in takers if node.free and self._offer(node)]

    def _hold(self, job: JobState, slots: int) -> None:
        job.slots += slots
        job.query.slots += slots
        if self._filling.charges.meters:
            self._tree.charge(job.query.pool, slots)
        self._standing.shift(job)

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
            if not self._kernel.admission.admits(query, lane, node):
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
        front, gate = self._front, self._tree.root.gates[0]
        if front is None or gate.keys or not front.keys:
            return
        _, first = next(iter(self._tree.root.turns(front, self._state)))
        if first == candidate.uid and candidate.query.runnable[0] == [job]:
            self._head, self._changes = job, front.changes

    def _give(self, job: JobState, phase: PhaseState | None, node: NodeState) -> None:
        """One slot to a job: of the node, or where it holds one already."""
        if phase is None:
            node = self._home(job, node)
            node.leased += 1
            self._dealt.append((job, node))
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
            self._dealt.append((job, None))
            more = phase.counts[PENDING] > 0
        node.free -= 1
        job.slots += 1
        job.query.slots += 1
        if self._filling.charges.meters:
            self._tree.charge(job.query.pool, 1)
        if phase is None and self._is_enough(job):
            more = False
        if not more:
            self._standing.shift(job)
        elif self._standing.every_launch:
            self._standing.launched(job)

    def _home(self, job: JobState, node: NodeState) -> NodeState:
        """The node of which a job is given a slot when one of this node is offered to it."""
        if self._has_one_node:
            return node
        homes = self._homes.get(job.uid)
        return (homes.take() if homes is not None else None) or self._filling.home(job, node)

    def _is_enough(self, job: JobState) -> bool:
        """Whether a job is not to be given more of the leases, for now."""
        return False
