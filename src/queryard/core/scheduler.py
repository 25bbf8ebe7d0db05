"""`Scheduler.handle(*events) -> commands`: the one place where decisions are made.

Each call takes all events of an instant, settles them (state, then rankings), and fills the
free slots: down the pool tree to a query, to one of its jobs, to a task, and to those that
ride along. The simulator and the live driver call nothing else.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .admission import Admission
from .changes import apply, estimates, leases
from .commands import Command, Fail, Finish, Kill
from .dealing import Dealing
from .entities import JobState, QueryState
from .errors import QueryardError
from .events import Event, PolicyChosen, TaskFinished
from .explain import Why, story, why
from .failed_at import AVOIDED_S
from .filling import Crew, Filling
from .journal import Journal, Step
from .kernel import Kernel
from .parts import Provisioning, Speculation
from .policy import Policy
from .ranks import PoolTree
from .relief import reduces_may_wait, reduces_to_kill
from .sizing import Sizing
from .speculation import repeat
from .standing import Standing
from .state import Settings, State
from .validate import validate
from .waking import EARLY_S, Waking

Compose = Callable[[Mapping[str, Any]], Policy]


class Before(NamedTuple):
    """What was in force until a policy was chosen."""

    crew: Crew
    sizing: Sizing
    tree: PoolTree


class Scheduler(Kernel):
    """Takes note of events, keeps the rankings up to date, and decides."""

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
        self.waking = Waking()
        self._out: list[Command] = []
        # Events applied by a call that then refused another.
        self._unrecorded: tuple[Event, ...] = ()
        self._adopt(compose(profile))

    # --- the interface ---------------------------------------------------------------------

    def handle(self, *events: Event) -> list[Command]:
        """Take note of all events of one instant and decide."""
        state = self.state
        notes = state.notes
        out: list[Command] = []
        self._out = self.filling.out = out
        try:
            for event in events:
                kind = type(event)
                if kind is not TaskFinished:
                    notes.rare = True
                    if kind is PolicyChosen:
                        self._chosen = self._compose(event.profile)  # type: ignore[union-attr]
                apply(state, event)
        except QueryardError:
            # What came before the refused one has happened, and belongs to the next step.
            self._unrecorded += events[: [other is event for other in events].index(True)]
            raise
        self._settle()
        if self.tree.keeps_time:
            self.tree.take_turns(self.admission.is_open_to, state)
        if self.tree.draws_lots and (state.leaseholders or self.tree.has_lots):
            self.tree.draw_lots(state)
        self._dealing.fill()
        if self._extras or state.leaseholders or state.remaking:
            self._decide_extras()
        if self.tree.keeps_time and self.tree.root.order is not None:
            self.tree.busy_slots = state.busy_slots
        if self.journal is not None:
            self._record(events, out)
        return out

    def _record(self, events: tuple[Event, ...], out: list[Command]) -> None:
        assert self.journal is not None
        self.journal.steps.append(Step(self.state.now, self._unrecorded + events, tuple(out)))
        self._unrecorded = ()

    def fork(self) -> Scheduler:
        """An independent copy to simulate forward from; it keeps no journal."""
        # Thousands of new objects would set off the garbage collector, which finds nothing.
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._copy()
        finally:
            if collects:
                gc.enable()

    def _copy(self) -> Scheduler:
        copy = Scheduler.__new__(Scheduler)
        copy.state = self.state.fork()
        copy.journal = None
        copy._compose = self._compose
        copy.waking = self.waking.fork()
        copy._out = []
        copy._crew = self._crew.fork()
        copy._sizing = self._sizing.fork(copy.state)
        copy._bind(self.policy, self.tree.fork(copy.state))
        copy.admission.waiter = self.admission.waiter
        copy.filling.charges.take_over(self.filling.charges)
        copy._dealing = self._dealing.fork(copy)
        copy._unrecorded = self._unrecorded
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

    # --- policy ----------------------------------------------------------------------------

    def _bind(self, policy: Policy, tree: PoolTree) -> None:
        """Join the state, the parts (already made) and the tree."""
        self.policy = policy
        self.tree = tree
        self.standing = Standing(self.state, policy, self._crew.split, tree)
        self.admission = Admission(self.state, tree)
        self.filling = Filling(self.state, policy, self._crew, tree, self.standing, self.admission)
        self.filling.out = self._out
        self._timed_parts = [part for part in self.parts if part.is_timed]
        self._keeps_slots = self._crew.split.restricts_lanes
        self._resizes = type(policy.provisioning).nodes is not Provisioning.nodes
        self._speculates = type(policy.speculation).behind is not Speculation.behind
        self._extras = policy.timed or self._resizes or self.state.settings.slow_start < 1
        self._dealing = Dealing(self)

    def _adopt(self, policy: Policy, before: Before | None = None) -> None:
        """Follow a policy from now on, with what those `before` have seen; running work is not
        disturbed.
        """
        state = self.state
        self._crew = Crew(
            policy.job_order, policy.split, policy.placement, policy.sharing, policy.speculation
        )
        self._sizing = Sizing(state, policy.provisioning)
        lanes = policy.split.lanes
        self._bind(policy, PoolTree(policy.pools, lanes, state.total_slots, state.now))
        for part in self.parts:
            part.attach(state)
        if before is not None:
            self._crew.take_over(before.crew, state)
            self._sizing.take_over(before.sizing)
        for query in state.queries.values():
            self._enter(query)
            for job in query.jobs:
                job.lanes = 0
                job.held_back = False
                job.folds_early = False
                job.folds = 0
        if before is not None:
            self.tree.take_over(before.tree, state)
        if self.filling.charges.meters:
            for number, run in state.running.items():
                riders = [state.jobs[task.job] for task in run.tasks]
                self.filling.charges.rode(number, riders[0], riders)
        for job in state.leaseholders.values():
            self.tree.charge(job.query.pool, sum(sum(lease) for lease in job.leases.values()))
        for job in state.jobs.values():
            self._ready(job)
        self.standing.refresh_all(state.jobs.values())

    def _enter(self, query: QueryState) -> None:
        query.runnable = tuple([] for _ in range(self.tree.lanes))
        known = len(self.tree.pools)
        leaf = self.tree.enter(query)
        if len(self.tree.pools) > known:
            assert leaf.order is not None
            leaf.order.attach(self.state)
            self._timed_parts = [part for part in self.parts if part.is_timed]

    def _ready(self, job: JobState) -> None:
        if self.filling.shares(job) and job.ready and job.query.stage in ("waiting", "running"):
            self.standing.refresh_all(self._crew.sharing.ready(job, self.state))

    # --- settling the events -------------------------------------------------------------------

    def _settle(self) -> None:
        """Bring the rankings up to date with what the events changed."""
        notes = self.state.notes
        self.standing.has_new_candidates = False
        if self.tree.keeps_time:
            self.tree.elapse(self.state)
        if notes.ended_runs:
            self._settle_runs()
        if notes.rare:
            self._settle_rare()
        if notes.served:
            self.standing.touch_all(notes.served)
            notes.served.clear()
        if notes.touched:
            self.standing.refresh_all(notes.touched)
            notes.touched.clear()
        if notes.ended:
            self._settle_ended()
        if self._keeps_slots and self._crew.split.opened(self.state):
            self.standing.has_new_candidates = True

    def _settle_runs(self) -> None:
        """Launches ended: their pools use less, and a round of a shared scan may be over."""
        filling = self.filling
        ended = self.state.notes.ended_runs
        if filling.charges.meters:
            for run in ended:
                filling.charges.ended(run.number)
        if filling.shares_scans:
            for run in ended:
                if run.round:
                    self.standing.refresh_all(self._crew.sharing.ended(run, self.state))
        ended.clear()

    def _settle_rare(self) -> None:
        """Everything but the end of a task."""
        state = self.state
        notes = state.notes
        notes.rare = False
        for query in notes.submitted:
            estimates.expect(state, query)
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
            if self.filling.shares(job):
                self.standing.refresh_all(self._crew.sharing.returned(job, index, state))
        notes.returned.clear()
        for job in notes.left_over:
            if self.filling.shares(job):
                self.standing.refresh_all(self._crew.sharing.left(job, state))
        notes.left_over.clear()
        self._out.extend(
            Kill(number)
            for number in notes.kills
            if number in state.running or number in state.beaten
        )
        notes.kills.clear()
        for job in notes.lease_cuts:
            for node_id, slots in leases.beyond(job):
                self._dealing.revoke(job, node_id, slots)
        notes.lease_cuts.clear()
        for query in notes.regated:
            if query.pool >= 0:
                self.tree.regate(query)
        notes.regated.clear()
        if notes.capacity:
            self._settle_capacity()
        if notes.avoided:
            self._settle_avoided()
        if notes.woke:
            self._settle_wake()

    def _settle_capacity(self) -> None:
        """Slots or memory came or went: shares change, and any query may be able to start."""
        self.state.notes.capacity = False
        self.standing.has_new_candidates = True
        self.filling.head = None
        if self.standing.apart != self.state.apart:
            self.standing.apart = self.state.apart
            for job in self.state.jobs.values():
                self.standing.place(job)
        if self.tree.slots != self.state.total_slots:
            self.tree.resize(self.state.total_slots, self.state)

    def _settle_avoided(self) -> None:
        """Work is to run elsewhere: any node may have a slot for it, and later every node."""
        self.state.notes.avoided = False
        self.standing.has_new_candidates = True
        self.filling.head = None
        self.waking.ask(self.state.now + AVOIDED_S, self._out)

    def _adopt_event(self) -> None:
        """Change the policy; what this instant brought finds its place in the new tree."""
        notes = self.state.notes
        notes.policy = None
        self._out.extend(_verdict(query) for query in notes.ended)
        for settled in (notes.ended, notes.submitted, notes.readied, notes.touched, notes.served):
            settled.clear()
        notes.returned.clear()
        notes.left_over.clear()
        self._adopt(self._chosen, Before(self._crew, self._sizing, self.tree))

    def _settle_wake(self) -> None:
        state = self.state
        state.notes.woke = False
        # A part that still needs the time asks again.
        self.waking.came(state.now)
        self.standing.has_new_candidates = True
        for part in self.parts:
            part.woke(state)
        if self.filling.shares_scans:
            self.standing.refresh_all(self._crew.sharing.released(state))
        for pool in self.tree.pools.values():
            # A turn may end between two ticks.
            early = state.now - pool.refreshed_s < state.settings.tick_s - EARLY_S
            if pool.drifts and not (early and self.tree.keeps_time):
                self.tree.refresh(pool, state)

    def _settle_ended(self) -> None:
        notes = self.state.notes
        for query in notes.ended:
            self.tree.leave(query)
            self.standing.refresh_all(query.jobs)
            for job in query.jobs:
                if self.filling.shares(job):
                    self.standing.refresh_all(self._crew.sharing.left(job, self.state))
            self._out.append(_verdict(query))
        notes.ended.clear()
        if self._crew.split.ended(self.state):
            self.standing.refresh_all(self.state.jobs.values())
        if self.filling.charges.meters and self.tree.forget():
            self._timed_parts = [part for part in self.parts if part.is_timed]

    # --- deciding --------------------------------------------------------------------------

    def _decide_extras(self) -> None:
        """What only some policies and settings need."""
        if self.state.leaseholders:
            self.waking.ask_within(self._dealing.settle(), self.state.now, self._out)
        if reduces_may_wait(self.state) and any(self.tree.root.ready):
            self._relieve()
        if self._resizes:
            self._out.extend(self._sizing.decide())
            if self.state.notes.capacity:
                self._settle_capacity()
                self.filling.fill()
        if self._speculates:
            repeat(
                self._crew.speculation,
                self.state,
                self.tree,
                self.filling,
                self.standing,
                self._out,
            )
        if self._timed_parts:
            # The last thing of every instant, so that parts may take stock there.
            self.waking.ask_for(self._timed_parts, self.state, self._out)

    def _relieve(self) -> None:
        stuck = reduces_to_kill(
            self.state, self.tree, self.filling.charges.payers, self._keeps_slots
        )
        for number, job in list(stuck):
            job.barred = True
            self.standing.refresh(job)
            self.state.killed.add(number)
            self._out.append(Kill(number))


def _verdict(query: QueryState) -> Command:
    return Finish(query.id) if query.stage == "finished" else Fail(query.id, query.cause)
