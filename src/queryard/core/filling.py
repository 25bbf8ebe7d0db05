"""Filling free slots: from the candidate that is next in the pool tree to a task that runs.

The last steps of every decision: a query, one of its jobs, a task of it or a lease, and those
that ride along on the same read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .admission import Admission
from .changes import leases, queries
from .changes.tasks import launch_one, launch_ride
from .charges import Charges
from .commands import Command, Launch
from .elsewhere import find_aside, has_task_for, job_suits
from .entities import Candidate, JobState, QueryState
from .lifecycle import PENDING
from .model import MAP, TaskId
from .nodes import NodeState
from .parts import JobOrder, Part, Placement, ScanSharing, SlotSplit, Speculation
from .phases import PhaseState
from .policy import Policy
from .ranks import PoolTree
from .serving import Attempt, serve
from .standing import Standing
from .state import State


@dataclass(slots=True)
class Crew:
    """The parts of a policy that take part in filling a slot, with what they remember."""

    job_order: JobOrder
    split: SlotSplit
    placement: Placement
    sharing: ScanSharing
    speculation: Speculation

    def fork(self) -> Crew:
        return Crew(
            self.job_order.fork(),
            self.split.fork(),
            self.placement.fork(),
            self.sharing.fork(),
            self.speculation.fork(),
        )

    def take_over(self, before: Crew, state: State) -> None:
        """Go on with what those of the crew before have seen."""
        for now, then in zip(self.parts, before.parts, strict=True):
            if type(now) is type(then):
                now.take_over(then, state)

    @property
    def parts(self) -> tuple[Part, ...]:
        return self.job_order, self.split, self.placement, self.sharing, self.speculation


class Filling:
    """Gives free slots to the candidates that are next, and enters what it gave."""

    def __init__(
        self,
        state: State,
        policy: Policy,
        crew: Crew,
        tree: PoolTree,
        standing: Standing,
        admission: Admission,
    ) -> None:
        self._state = state
        self._crew = crew
        self._tree = tree
        self._standing = standing
        self._admission = admission
        # Where commands go; another list for every instant.
        self.out: list[Command] = []
        # Slots granted by (job, node) and not yet told.
        self.grants: dict[tuple[str, str], int] = {}
        self.charges = Charges(policy, tree)
        self.shares_scans = crew.sharing.name != "none"
        self._one_lane = tree.lanes == 1
        # The lanes that hold maps, and reduces (see `SlotSplit`).
        self._map_lanes = _lanes(crew.split.map_bits)
        self._reduce_lanes = _lanes(crew.split.reduce_bits)
        self._restricts_lanes = crew.split.restricts_lanes
        self._front = tree.root.lanes[0]
        order = policy.pools.order
        state.notes.every_run = self.charges.meters or self.shares_scans
        # With an order that stands still, the first query stays first for many slots.
        still = order is not None and not order.changes_with and not state.notes.every_task
        self.keeps_head = still and not self.charges.meters
        # A trial deal moves slots, not the clock: keys that do not depend on slots stay the same.
        lone = order is not None and not self.charges.meters and self._one_lane
        self.keeps_front = lone and not standing.every_launch
        self.head: tuple[JobState, PhaseState, int] | None = None

    def shares(self, job: JobState) -> bool:
        """Whether a job, scanning one table with one task per split, can ride with others."""
        spec = job.spec
        return self.shares_scans and len(spec.scans) == 1 and not spec.scans_alone

    def fill(self) -> None:
        """Fill the slots that came free; all that are, if a job can use one that could not."""
        freed = self._state.notes.freed
        if self._standing.has_new_candidates:
            self._fill_all()
        else:
            if self._state.uneven and len(freed) > 1:
                freed.sort(key=most_free)
            for node in freed:
                if not node.draining or node.serves_bound:
                    self._serve(node, node.free)
        freed.clear()

    def _fill_all(self) -> None:
        """Offer all free slots, one per node in turn so that work spreads."""
        ready = self._tree.root.ready
        if not any(ready):
            return
        nodes = [
            node
            for node in self._state.nodes.values()
            if node.free > 0 and (not node.draining or node.serves_bound)
        ]
        nodes.sort(key=most_free)
        while nodes and any(ready):
            takers = []
            for node in nodes:
                if self._one_lane and not ready[0]:
                    return
                if node.free > 0 and self._serve(node, 1) and node.free > 0:
                    takers.append(node)
            nodes = takers

    def _serve(self, node: NodeState, slots: int) -> bool:
        """Give so many free slots of a node away; False once no candidate can use one."""
        while slots > 0:
            slots -= 1
            head = self.head
            if head is not None:
                # No other has come to the front since: no need to ask down the tree again.
                job, phase, changes = head
                if changes == self._front.changes and not phase.aside:
                    self._launch(job, phase, phase.take(), node)
                    continue
                self.head = None
            free = node.free
            if not self.offer(node, self._attempt):
                return False
            if node.free == free:
                slots += 1  # the candidate has started nearer to its data
        return True

    def offer(self, node: NodeState, attempt: Attempt) -> bool:
        """Offer a free slot of the node to the candidate that is next."""
        state = self._state
        tree = self._tree
        root = tree.root
        if self._one_lane:
            return root.ready[0] > 0 and serve(tree, root, 0, node, attempt, state)
        for lane in self._crew.split.serve(node, state):
            if root.ready[lane] and serve(tree, root, lane, node, attempt, state):
                return True
        return False

    def next_phase(self, job: JobState, lane: int, node: NodeState) -> PhaseState | None:
        """The phase a task for this node would come from; changes nothing."""
        maps = job.map
        if maps is None:
            return None
        if self._may_map(job, maps, lane, node) and (
            not job.spec.scans
            or self._crew.placement.accepts(job, node, self._state)
            or find_aside(maps, node, self._state) is not None
        ):
            return maps
        return job.reduce if self._may_reduce(job, lane, node) else None

    def _may_map(self, job: JobState, maps: PhaseState, lane: int, node: NodeState) -> bool:
        if not maps.counts[PENDING] or job.held_back or lane not in self._map_lanes:
            return False
        if maps.aside and not has_task_for(maps, node, self._state):
            return False
        return not self._restricts_lanes or self._crew.split.suits(job, maps, lane)

    def _may_reduce(self, job: JobState, lane: int, node: NodeState) -> bool:
        reduces = job.reduce
        if reduces is None or lane not in self._reduce_lanes or not self._standing.can_reduce(job):
            return False
        if reduces.aside and not has_task_for(reduces, node, self._state):
            return False
        return not self._restricts_lanes or self._crew.split.suits(job, reduces, lane)

    def _attempt(self, candidate: Candidate, lane: int, node: NodeState) -> bool:
        """Let a candidate use a slot of the node, if it can."""
        query = candidate.query
        jobs = self.jobs_for(candidate, lane, node)
        if not jobs:
            return False  # what it has to do is to be done elsewhere
        if query.stage == "waiting" and not self._admission.admits(query, lane, node):
            return False
        if len(jobs) == 1:
            started = self._start(jobs[0], lane, node)
            if started and self.keeps_head:
                self._remember(jobs)
            return started
        first = self.pick_job(jobs)
        if self._start(first, lane, node):
            return True
        return any(self._start(job, lane, node) for job in list(jobs) if job is not first)

    def jobs_for(self, candidate: Candidate, lane: int, node: NodeState) -> Sequence[JobState]:
        """The runnable jobs of a candidate that could use a slot of the node."""
        jobs = (candidate,) if isinstance(candidate, JobState) else candidate.runnable[lane]
        if not self._state.apart:
            return jobs
        return [job for job in jobs if job.host == node.host or self._may_begin(job, node)]

    def _may_begin(self, job: JobState, node: NodeState) -> bool:
        return not job.host and (job.failed_at is None or job_suits(job, node, self._state))

    def _remember(self, jobs: Sequence[JobState]) -> None:
        """The only runnable job of the first query serves the next slots, too."""
        maps = jobs[0].map if jobs else None
        if maps is None or not maps.counts[PENDING] or jobs[0].spec.scans or self._state.apart:
            return
        ranking, gate = self._front, self._tree.root.gates[0]
        # Not if it was served only because a candidate before it declined.
        if ranking.entries[0][1] == jobs[0].query.uid and not gate.keys:
            self.head = (jobs[0], maps, ranking.changes)

    def pick_job(self, jobs: Sequence[JobState]) -> JobState:
        return self._crew.job_order.pick(jobs, self._state)

    def _start(self, job: JobState, lane: int, node: NodeState) -> bool:
        """Run something of a job in a slot of the node, if there is something."""
        maps = job.map
        if maps is None:
            self._grant(job, self.home(job, node))
            return True
        if self._may_map(job, maps, lane, node):
            index = self._take_aside(maps, node)
            if index is not None or not job.spec.scans:
                index = maps.take() if index is None else index
            else:
                if self.shares(job) and self._ride(job, node):
                    return True
                index = self._crew.placement.pick(job, node, self._state)
            if index is not None:
                self._launch(job, maps, index, node)
                return True
        reduces = job.reduce
        if reduces is not None and self._may_reduce(job, lane, node):
            round = job.fold_round if job.folds else ""
            index = self._take_aside(reduces, node)
            self._launch(job, reduces, reduces.take() if index is None else index, node, round)
            return True
        return False

    def _take_aside(self, phase: PhaseState, node: NodeState) -> int | None:
        """Take a task that failed before, if one may run at the node."""
        if not phase.aside:
            return None
        index = find_aside(phase, node, self._state)
        return None if index is None else phase.take_aside(index)

    def home(self, job: JobState, node: NodeState) -> NodeState:
        """Where divisible work starts that was offered a slot of a node: there, or nearer to what
        it reads, if a slot is free and there is memory for it.
        """
        state = self._state
        if job.host or not job.scanned or not (state.apart and job.stays):
            return node
        query = job.query
        waits = query.stage == "waiting" and query.id not in state.reservations
        free = [
            other
            for other in state.nodes.values()
            if other.free > 0
            and not other.draining
            and self._may_begin(job, other)
            and (not waits or self._admission.is_open_to(query, other.host))
        ]
        return self._crew.placement.home(job, free, state) or node

    def _begin(self, query: QueryState) -> None:
        queries.start(self._state, query)
        if query.memory_bytes:
            self._tree.regate(query)

    def _launch(
        self, job: JobState, phase: PhaseState, index: int, node: NodeState, round: str = ""
    ) -> None:
        query = job.query
        if query.stage == "waiting":
            self._begin(query)
        launch = launch_one(self._state, node, job, phase, index, round)
        if round:
            job.folds -= 1
            job.folding += 1
        self.out.append(launch)
        if self.charges.counts:
            self.charges.launched(launch[0], query.pool)
        if not phase.counts[PENDING] or round:
            self._standing.refresh(job)
        elif self._standing.every_launch:
            self._standing.launched(job)

    def _ride(self, job: JobState, node: NodeState) -> bool:
        """Read a split for a job and all that can ride along."""
        state = self._state
        ride = self._crew.sharing.ride(job, node, state)
        if ride is None:
            return False
        riders = []
        left_out = []
        for rider in ride.riders:
            query = rider.query
            if query.stage == "waiting":
                if rider is not job and not self._admission.admits(query, 0, node):
                    left_out.append(rider)
                    continue
                self._begin(query)
            riders.append(rider)
        for rider in riders:
            rider.map.take_at(ride.index)  # type: ignore[union-attr]
        number = state.next_launch
        tasks = tuple(TaskId(rider.id, MAP, ride.index) for rider in riders)
        launch = Launch(number, node.id, tasks, ride.round, state.now)
        launch_ride(state, node, launch)
        self.charges.rode(number, job, riders)
        self._standing.refresh_all(riders)
        self.out.append(launch)
        self._standing.refresh_all(self._crew.sharing.launched(job, state))
        for rider in left_out:
            # No memory for it yet: it reads this split later, alone.
            self._standing.refresh_all(self._crew.sharing.returned(rider, ride.index, state))
        return True

    def _grant(self, job: JobState, node: NodeState) -> None:
        query = job.query
        if query.stage == "waiting":
            self._begin(query)
        leases.grant(self._state, job, node)
        self._tree.charge(query.pool, 1)
        self._tree.pools[query.pool].served += 1
        self._standing.refresh(job)
        key = (job.id, node.id)
        self.grants[key] = self.grants.get(key, 0) + 1


def _lanes(bits: int) -> tuple[int, ...]:
    """The numbers of the lanes that are set."""
    return tuple(lane for lane in range(bits.bit_length()) if bits >> lane & 1)


def most_free(node: NodeState) -> tuple[int, float, str]:
    """Nodes in the order in which free slots are offered."""
    return (-node.free, -node.spec.map_speed, node.id)
