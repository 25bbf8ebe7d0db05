"""`Scheduler.handle(*events) -> commands`: the one place where decisions are made.

Each call takes all events of an instant, settles them (state, then rankings), and fills the
free slots: down the pool tree to a query, to one of its jobs, to a task, and to those that
ride along. The simulator and the live driver call nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .admission import Admission
from .changes import leases, queries
from .changes import tasks as task_changes
from .commands import Command, Fail, Finish, Grant, Kill, Launch, Revoke, WakeAt
from .entities import Candidate, JobState, NodeState, PhaseState, QueryState
from .errors import QueryardError
from .events import Event, PolicyChosen
from .explain import Why, story, why
from .journal import Journal, Step
from .lifecycle import PENDING
from .model import MAP, TaskId
from .parts import Part, Policy, Provisioning
from .ranks import Attempt, PoolTree
from .relief import reduces_to_kill
from .share_out import excess_leases
from .sizing import Sizing
from .standing import Standing
from .state import Settings, State
from .validate import validate

_new = tuple.__new__
Compose = Callable[[Mapping[str, Any]], Policy]


class Scheduler:
    """The kernel: a state, a policy, and the rankings that join them."""

    def __init__(
        self,
        compose: Compose,
        profile: Mapping[str, Any],
        settings: Settings | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.state = State(settings)
        self.journal = journal
        self._compose = compose
        # Wake-ups asked for and not yet come.
        self.wakes: set[float] = set()
        # Launch -> leaf that pays for it, where there are several.
        self.charged: dict[int, int] = {}
        self._out: list[Command] = []
        self._adopt(compose(profile))

    # --- the interface ---------------------------------------------------------------------

    def handle(self, *events: Event) -> list[Command]:
        """Take note of all events of one instant and decide."""
        state = self.state
        out: list[Command] = []
        self._out = out
        for event in events:
            if type(event) is PolicyChosen:
                self._chosen = self._compose(event.profile)
            state.apply(event)
        if self._keeps_head and not state.notes.rare:
            self._settle_ends()
        else:
            self._settle()
        self._decide()
        if self.journal is not None:
            self.journal.steps.append(Step(state.now, events, tuple(out)))
        return out

    def fork(self) -> Scheduler:
        """An independent copy to simulate forward from; it keeps no journal."""
        copy = Scheduler.__new__(Scheduler)
        copy.state = self.state.fork()
        copy.journal = None
        copy._compose = self._compose
        copy.wakes = self.wakes.copy()
        copy.charged = self.charged.copy()
        copy._out = []
        copy._job_order = self._job_order.fork()
        copy._split = self._split.fork()
        copy._placement = self._placement.fork()
        copy._sharing = self._sharing.fork()
        copy._sizing = self._sizing.fork(copy.state)
        copy._bind(self.policy, self.tree.fork(copy.state))
        copy.admission.waiter = self.admission.waiter
        copy._granted = self._granted.copy()
        copy._granted_s = self._granted_s
        return copy

    def validate(self) -> None:
        """Check every invariant; for tests, it looks at everything."""
        validate(self)

    def why(self, query: str) -> Why:
        """What is ahead of a query and which rule, cap or reservation holds it."""
        return why(self, query)

    def story(self, entity: str) -> list[tuple[float, str]]:
        """The history of a query, job, task, node or table, from the journal."""
        if self.journal is None:
            raise QueryardError("no story is kept: this kernel was started without a journal")
        return story(self.journal.steps, entity)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts at work, the orders of all leaves among them."""
        orders = [pool.order for pool in self.tree.pools if pool.order is not None]
        return (
            *orders,
            self._job_order,
            self._split,
            self._placement,
            self._sharing,
            self._sizing.provisioning,
        )

    # --- policy ----------------------------------------------------------------------------

    def _bind(self, policy: Policy, tree: PoolTree) -> None:
        """Join the state, the parts (already made) and the tree."""
        self.policy = policy
        self.tree = tree
        self.standing = Standing(self.state, policy, self._split, tree)
        self.admission = Admission(self.state, tree)
        self._shares_scans = self._sharing.name != "none"
        self._places = self._placement.name != "any"
        self._one_lane = tree.lanes == 1
        self._one_leaf = policy.pools.order is not None
        self._timed = policy.timed
        self._timed_parts = [part for part in self.parts if part.is_timed]
        self._resizes = type(policy.provisioning).nodes is not Provisioning.nodes
        self._extras = self._timed or self._resizes or self.state.settings.slow_start < 1
        # With an order that stands still, whoever is first stays first for many slots.
        self._keeps_head = self._one_leaf and not self.standing.every_task
        self._head: tuple[JobState, PhaseState, int] | None = None
        self._grants: dict[tuple[str, str], int] = {}
        # All grants of this instant, however many calls it takes: they are not revoked in it,
        # so that a deal and its opposite cannot chase one another while time stands still.
        self._granted: Counter[tuple[str, str]] = Counter()
        self._granted_s = -1.0

    def _adopt(self, policy: Policy) -> None:
        """Follow a policy from now on; running work is not disturbed."""
        state = self.state
        self._job_order = policy.job_order
        self._split = policy.split
        self._placement = policy.placement
        self._sharing = policy.sharing
        self._sizing = Sizing(state, policy.provisioning)
        self._bind(policy, PoolTree(policy.pools, policy.split.lanes, state.total_slots))
        for part in self.parts:
            part.attach(state)
        for query in state.queries.values():
            self._enter(query)
            for job in query.jobs:
                job.lanes = 0
                job.held_back = False
        self.charged = {}
        for number, run in state.running.items():
            self._charge(number, state.jobs[run.tasks[0].job].query.pool)
        for job in state.leaseholders.values():
            self.tree.charge(job.query.pool, sum(sum(lease) for lease in job.leases.values()))
        for job in state.jobs.values():
            self._ready(job)
        self._recheck(state.jobs.values())

    def _enter(self, query: QueryState) -> None:
        query.runnable = tuple([] for _ in range(self.tree.lanes))
        known = len(self.tree.pools)
        self.tree.enter(query)
        for pool in self.tree.pools[known:]:
            if pool.order is not None:
                pool.order.attach(self.state)
                if pool.order.is_timed:
                    self._timed_parts.append(pool.order)

    def _ready(self, job: JobState) -> None:
        if self._shares_scans and can_share(job) and job.ready and job.query.stage != "ending":
            self._recheck(self._sharing.ready(job, self.state))

    def _recheck(self, jobs: Iterable[JobState]) -> None:
        for job in jobs:
            self.standing.refresh(job)

    # --- settling the events -------------------------------------------------------------------

    def _settle(self) -> None:
        """Bring the rankings up to date with what the events changed."""
        state = self.state
        notes = state.notes
        self.standing.news = False
        ended = notes.ended_runs
        if self._one_leaf:
            self.tree.root.used -= len(ended)
        else:
            for run in ended:
                self.tree.charge(self.charged.pop(run.number), -1)
        if self._shares_scans:
            for run in ended:
                if run.round:
                    self._recheck(self._sharing.ended(run, state))
        ended.clear()
        if notes.rare:
            self._settle_rare()
        if notes.touched:
            self._recheck(notes.touched)
            notes.touched.clear()
        if notes.ended:
            self._settle_ended()

    def _settle_ends(self) -> None:
        """Settle the ends of tasks under an order that does not look at each of them."""
        notes = self.state.notes
        self.standing.news = False
        ended = notes.ended_runs
        self.tree.root.used -= len(ended)
        if self._shares_scans:
            for run in ended:
                if run.round:
                    self._recheck(self._sharing.ended(run, self.state))
        ended.clear()
        if notes.touched:
            self._recheck(notes.touched)
            notes.touched.clear()
        if notes.ended:
            self._settle_ended()

    def _settle_rare(self) -> None:
        """Everything but the end of a task."""
        state = self.state
        notes = state.notes
        notes.rare = False
        for leaf, slots in notes.ended_leases:
            self.tree.charge(leaf, -slots)
        notes.ended_leases.clear()
        if notes.policy is not None:
            self._adopt_event()
        for query in notes.submitted:
            self._enter(query)
        notes.submitted.clear()
        for job in notes.readied:
            self._ready(job)
        notes.readied.clear()
        for job, index in notes.returned:
            if self._shares_scans and can_share(job):
                self._recheck(self._sharing.returned(job, index, state))
        notes.returned.clear()
        self._out.extend(Kill(number) for number in notes.kills)
        notes.kills.clear()
        for job in notes.lease_stops:
            for node_id, (held, _) in job.leases.items():
                if held:
                    self._revoke(job, node_id, held)
        notes.lease_stops.clear()
        if notes.capacity:
            notes.capacity = False
            self.standing.news = True
            self._head = None
            if self.tree.slots != state.total_slots:
                self.tree.resize(state.total_slots)
        if notes.woke:
            self._settle_wake()

    def _adopt_event(self) -> None:
        """Change the policy; what this instant brought finds its place in the new tree."""
        notes = self.state.notes
        notes.policy = None
        self._out.extend(_verdict(query) for query in notes.ended)
        for settled in (notes.ended, notes.submitted, notes.readied, notes.touched):
            settled.clear()
        notes.returned.clear()
        self._adopt(self._chosen)

    def _settle_wake(self) -> None:
        state = self.state
        state.notes.woke = False
        self.wakes = {time_s for time_s in self.wakes if time_s > state.now}
        self.standing.news = True
        for part in self.parts:
            part.woke(state)
        if self._shares_scans:
            self._recheck(self._sharing.released(state))
        for pool in self.tree.pools:
            if pool.drifts:
                self.tree.refresh(pool, state)

    def _settle_ended(self) -> None:
        notes = self.state.notes
        for query in notes.ended:
            self.tree.leave(query)
            self._recheck(query.jobs)
            for job in query.jobs:
                if self._shares_scans and can_share(job):
                    self._recheck(self._sharing.left(job, self.state))
            self._out.append(_verdict(query))
        notes.ended.clear()

    # --- deciding --------------------------------------------------------------------------

    def _decide(self) -> None:
        state = self.state
        freed = state.notes.freed
        if self.standing.news:
            self._fill_all()
        else:
            serve_node = self._serve_node
            for node in freed:
                while node.free > 0 and not node.draining and serve_node(node):
                    pass
        freed.clear()
        if self._extras or state.leaseholders:
            self._decide_extras()

    def _decide_extras(self) -> None:
        """What only some policies and settings need."""
        if self.state.leaseholders:
            self._settle_leases()
        if self.state.settings.slow_start < 1 and any(self.tree.root.ready):
            self._relieve()
        if self._resizes:
            self._out.extend(self._sizing.decide())
        if self._timed:
            self._ask_to_wake()

    def _fill_all(self) -> None:
        """Offer all free slots, one a node in turn so that work spreads."""
        ready = self.tree.root.ready
        nodes = [n for n in self.state.nodes.values() if n.free > 0 and not n.draining]
        nodes.sort(key=_most_free)
        while nodes and any(ready):
            nodes = [node for node in nodes if self._serve_node(node) and node.free > 0]

    def _serve_node(self, node: NodeState) -> bool:
        head = self._head
        if head is not None:
            # Nobody else has come to the front since: no need to ask down the tree again.
            job, phase, changes = head
            if changes == self.tree.root.lanes[0].changes and phase.counts[PENDING]:
                self._launch(job, phase, phase.take(), node)
                return True
            self._head = None
        return self.offer(node, self._attempt)

    def offer(self, node: NodeState, attempt: Attempt) -> bool:
        """Offer a free slot of the node to whoever is next."""
        state = self.state
        tree = self.tree
        root = tree.root
        if self._one_lane:
            return root.ready[0] > 0 and tree.serve(root, 0, node, attempt, state)
        for lane in self._split.serve(node, state):
            if root.ready[lane] and tree.serve(root, lane, node, attempt, state):
                return True
        return False

    def next_phase(self, job: JobState, lane: int, node: NodeState) -> PhaseState | None:
        """The phase a task for this node would come from; changes nothing."""
        bit = 1 << lane
        maps = job.map
        if maps is None:
            return None
        pending = maps.counts[PENDING] and bit & self.standing.map_bits and not job.held_back
        if pending and (not job.spec.scans or self._placement.accepts(job, node, self.state)):
            return maps
        return (
            job.reduce
            if bit & self.standing.reduce_bits and self.standing.can_reduce(job)
            else None
        )

    def _attempt(self, candidate: Candidate, lane: int, node: NodeState) -> bool:
        """Let a candidate use a slot of the node, if it can."""
        query = candidate.query
        if query.stage == "waiting" and not self.admission.admits(query, lane):
            return False
        if isinstance(candidate, JobState):
            return self._start(candidate, lane, node)
        jobs = query.runnable[lane]
        if len(jobs) == 1:
            started = self._start(jobs[0], lane, node)
            if started and self._keeps_head:
                self._remember(jobs)
            return started
        first = self.pick_job(jobs)
        if self._start(first, lane, node):
            return True
        return any(self._start(job, lane, node) for job in list(jobs) if job is not first)

    def _remember(self, jobs: Sequence[JobState]) -> None:
        """The only runnable job of the first query serves the next slots, too."""
        maps = jobs[0].map if jobs else None
        if maps is not None and maps.counts[PENDING] and not jobs[0].spec.scans:
            self._head = (jobs[0], maps, self.tree.root.lanes[0].changes)

    def pick_job(self, jobs: Sequence[JobState]) -> JobState:
        return self._job_order.pick(jobs, self.state)

    def _start(self, job: JobState, lane: int, node: NodeState) -> bool:
        """Run something of a job in a slot of the node, if there is something."""
        maps = job.map
        bit = 1 << lane
        if maps is None:
            self._grant(job, node)
            return True
        if maps.counts[PENDING] and bit & self.standing.map_bits and not job.held_back:
            if self._shares_scans and can_share(job) and self._ride(job, node):
                return True
            if self._places and job.spec.scans:
                index = self._placement.pick(job, node, self.state)
            else:
                index = maps.take()
            if index is not None:
                self._launch(job, maps, index, node)
                return True
        reduces = job.reduce
        if (
            reduces is not None
            and bit & self.standing.reduce_bits
            and self.standing.can_reduce(job)
        ):
            self._launch(job, reduces, reduces.take(), node)
            return True
        return False

    def _begin(self, query: QueryState) -> None:
        queries.start(self.state, query)
        if query.spec.memory_bytes:
            self.tree.open_gate(query)

    def _launch(self, job: JobState, phase: PhaseState, index: int, node: NodeState) -> None:
        state = self.state
        query = job.query
        if query.stage == "waiting":
            self._begin(query)
        number = state.next_launch
        # Named tuples made this way cost half; this runs once a task.
        task = _new(TaskId, (job.id, phase.kind, index))
        launch = _new(Launch, (number, node.id, (task,), "", state.now))
        task_changes.launch_one(state, node, launch, job, phase)
        if self._one_leaf:
            root = self.tree.root
            root.used += 1
            root.served += 1
        else:
            self._charge(number, query.pool)
        if self.standing.every_task or not phase.counts[PENDING]:
            self.standing.refresh(job)
        self._out.append(launch)

    def _ride(self, job: JobState, node: NodeState) -> bool:
        """Read a split for a job and all who can ride along."""
        state = self.state
        ride = self._sharing.ride(job, node, state)
        if ride is None:
            return False
        riders = []
        left_out = []
        for rider in ride.riders:
            query = rider.query
            if query.stage == "waiting":
                if rider is not job and not self.admission.admits(query, 0):
                    left_out.append(rider)
                    continue
                self._begin(query)
            riders.append(rider)
        for rider in riders:
            rider.map.take_at(ride.index)  # type: ignore[union-attr]
        number = state.next_launch
        tasks = tuple(TaskId(rider.id, MAP, ride.index) for rider in riders)
        launch = Launch(number, node.id, tasks, ride.round, state.now)
        task_changes.launch_ride(state, node, launch)
        self._charge(number, job.query.pool)
        self._recheck(riders)
        self._out.append(launch)
        self._recheck(self._sharing.launched(job, state))
        for rider in left_out:
            # No memory for it yet: it reads this split later, alone.
            self._recheck(self._sharing.returned(rider, ride.index, state))
        return True

    def _charge(self, number: int, leaf: int) -> None:
        pool = self.tree.pools[leaf]
        pool.served += 1
        pool.used += 1
        if not self._one_leaf:
            self.charged[number] = leaf
            self.tree.climb(pool, 1)

    def payer(self, number: int) -> int:
        """The leaf that pays for a launch."""
        return 0 if self._one_leaf else self.charged[number]

    def _grant(self, job: JobState, node: NodeState) -> None:
        query = job.query
        if query.stage == "waiting":
            self._begin(query)
        leases.grant(self.state, job, node)
        self.tree.charge(query.pool, 1)
        self.tree.pools[query.pool].served += 1
        self.standing.refresh(job)
        key = (job.id, node.id)
        self._grants[key] = self._grants.get(key, 0) + 1

    # --- taking back -----------------------------------------------------------------------

    def _settle_leases(self) -> None:
        """Revoke what the policy, dealing all slots out anew, would give to others."""
        grants = self._grants
        if self.state.now != self._granted_s:
            self._granted.clear()
            self._granted_s = self.state.now
        self._granted.update(grants)
        for job, node_id, slots in excess_leases(self, self._granted):
            self._revoke(job, node_id, slots)
        self._out.extend(Grant(job, node, slots) for (job, node), slots in grants.items())
        grants.clear()

    def _revoke(self, job: JobState, node_id: str, slots: int) -> None:
        leases.revoke(job, node_id, slots)
        self._out.append(Revoke(job.id, node_id, slots))

    def _relieve(self) -> None:
        for number, job in list(reduces_to_kill(self.state, self.tree, self.payer)):
            job.barred = True
            self.standing.refresh(job)
            self.state.killed.add(number)
            self._out.append(Kill(number))

    # --- time and size ---------------------------------------------------------------------

    def _ask_to_wake(self) -> None:
        """The last thing of every instant, so that parts may take stock here."""
        state = self.state
        for part in self._timed_parts:
            time_s = part.wake_s(state)
            if time_s is not None and time_s > state.now and time_s not in self.wakes:
                self.wakes.add(time_s)
                self._out.append(WakeAt(time_s))


def _verdict(query: QueryState) -> Command:
    return Finish(query.id) if query.stage == "finished" else Fail(query.id, query.cause)


def can_share(job: JobState) -> bool:
    """A job that scans one table, a task a split, can ride with others."""
    return len(job.spec.scans) == 1


def _most_free(node: NodeState) -> tuple[int, str]:
    return (-node.free, node.id)
