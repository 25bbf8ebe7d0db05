"""`Coordinator.handle(now, *inputs) -> effects`: every query from its submission to its end.

It owns the kernel and what is known of each query. It does no I/O, takes no lock and reads no
clock: all that happens is an input with its time, and all that is to be done is an effect. One
thread calls it (`loop`).

    submitted ──▶ queued ───▶ planned ──▶ in the kernel ──▶ handed over ──▶ ended
         │  for its client's    staged      waits, runs       staged only     ▲
         │  own connection      only            │                             │
         └──────────────────────────────────────┴── cancelled, failed ────────┘

A query is queued only if it needs its client's own connection, or may see side effects of one that
does. Clients of a server also wait for their turn at databases that others write (`turns`). A
native query may join the execution of an identical query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from queryard.backends import protocol as told
from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.explain import Why, owes
from queryard.core.lifecycle import REVOKING
from queryard.core.model import JobId, Query
from queryard.core.scheduler import Scheduler
from queryard.core.speedup import Speedup
from queryard.estimate.tasks.planned import PlannedQuery
from queryard.estimate.work import Prediction

from .. import effects as out
from .. import inputs
from ..admission.gate import Gate
from ..admission.memory import Reservations
from ..choosing.state import PolicyLog, is_resizing
from ..effects import Effect
from ..facts import QueryView
from ..inputs import ClientPort, Input
from ..overview import ClusterView, Load, Overview
from ..request import QueryRequest
from ..sharing import Choice
from ..work.base import Outlined
from . import glancing
from .attempts import Attempts
from .ending import Ending
from .intake import Intake
from .ledger import Ledger
from .running import RunningQueries


class Coordinator:
    """One kernel, and the active queries."""

    def __init__(
        self,
        kernel: Scheduler,
        gate: Gate,
        reservations: Reservations,
        width: int,
        profile: Mapping[str, Any] | None = None,
        spreads: bool = False,
    ) -> None:
        """`width` is how many slots one native query can use at most; `profile` is the kernel's.

        `spreads` says whether work runs at the nodes of a cluster, each with memory and caches of
        its own: then the plan of a query depends on them, and splits have places.
        """
        self.kernel = kernel
        self.gate = gate
        self.policies = PolicyLog({} if profile is None else profile)
        self._ledger = Ledger(kernel, gate, reservations, width, spreads)
        self._guarantee_unmet = False
        self._most_nodes = 0
        self._resizes = 0
        self._attempts = attempts = Attempts(self._ledger)
        self._running = running = RunningQueries(self._ledger, attempts)
        self._ending = ending = Ending(self._ledger)
        self._intake = intake = Intake(self._ledger, running, ending)
        self._takes: dict[type, Callable[[Any], None]] = {
            inputs.Submit: intake.submit,
            inputs.Planned: intake.planned,
            inputs.PlanFailed: intake.plan_failed,
            inputs.FoundKept: intake.found_kept,
            inputs.ChoosePlan: intake.choose_plan,
            inputs.AcquireConnection: intake.acquire_connection,
            inputs.ReleaseConnection: intake.release_connection,
            inputs.AcquireTurn: intake.turns.acquire,
            inputs.ReleaseTurn: intake.turns.release,
            inputs.TurnOverdue: intake.turns.overdue,
            inputs.ClientLeft: intake.turns.client_left,
            told.RunJoined: intake.joined,
            told.JoinRefused: intake.join_refused,
            inputs.Predicted: running.predicted,
            inputs.ReaderState: running.reader_state,
            told.RunReport: running.reported,
            told.RunEnded: running.run_ended,
            told.QueryUsed: running.used,
            told.LaunchFailed: running.launch_failed,
            ev.TaskFinished: running.task_finished,
            ev.WidthChanged: running.width_changed,
            ev.LeaseEnded: attempts.lease_ended,
            ev.NodeJoined: self._joined,
            ev.NodeLost: self._lost,
            ev.NodeSilent: attempts.silent,
            inputs.Rested: lambda _: attempts.call_back(),
            inputs.Cancel: ending.cancel,
            inputs.Release: ending.release,
            inputs.TimeLimitReached: ending.time_limit_reached,
            inputs.WithinReached: ending.within_reached,
            inputs.HandedOver: ending.handed_over,
            inputs.Close: ending.close,
            inputs.ChoosePolicy: self._choose,
            inputs.Pause: self._pause,
            inputs.Resume: self._resume,
            inputs.Recalled: lambda given: self._ledger.recall(given.learnt),
            told.WorkerFailed: self._worker_failed,
        }

    def handle(self, now: float, *given: Input) -> list[Effect]:
        """Handle all inputs so far and let the kernel decide; the effects to carry out."""
        return [*self.take(now, *given), *self.decide()]

    def take(self, now: float, *given: Input) -> list[Effect]:
        """The first half: what follows at once, such as replies to callers that wait."""
        ledger = self._ledger
        # Two steps may have the same time; the kernel refuses a time before the last one.
        ledger.now = max(now, self.kernel.state.now)
        for each in given:
            take = self._takes.get(type(each))
            if take is not None:
                take(each)
            else:
                ledger.tell(each)  # type: ignore[arg-type]  # the kernel's own
        self._intake.resume()
        return ledger.taken()

    def decide(self) -> list[Effect]:
        """The second half: what the kernel decides."""
        ledger = self._ledger
        while ledger.events:
            events = [event._replace(time_s=ledger.now) for event in ledger.events]
            ledger.events = []
            for command in self.kernel.handle(*events):
                self._execute(command)
            if ledger.spreads and not self.kernel.state.total_slots:
                self._attempts.call_back()
            self._intake.resume()
        if ledger.spreads:
            self._follow_cluster()
        self._note_unmet_guarantees()
        self._most_nodes = max(self._most_nodes, len(self.kernel.state.nodes))
        return ledger.taken()

    def _follow_cluster(self) -> None:
        """Nodes came or went: what one query can use and reserve, and what is waited for, follow.

        While there are none, what was known of them stays.
        """
        state, ledger = self.kernel.state, self._ledger
        if state.resizes == self._resizes or not state.total_slots:
            return
        self._resizes = state.resizes
        self.gate.slots = state.total_slots
        ledger.runs.width = max(1, state.host_slots)
        pool_bytes = int(min(host.memory_bytes for host in state.hosts.values()))
        ledger.reservations.follow(pool_bytes)
        ledger.readers.pool_bytes = pool_bytes

    def _note_unmet_guarantees(self) -> None:
        """Tell the backend when a waiting tenant falls below its guarantee, and when none is.

        The backend then replaces overstaying slots sooner.
        """
        holders = self.kernel.state.leaseholders.values()
        is_calling = any(lease[REVOKING] for job in holders for lease in job.leases.values())
        if self._guarantee_unmet != (now_unmet := is_calling and owes(self.kernel)):
            self._guarantee_unmet = now_unmet
            self._ledger.do(out.GuaranteeUnmet(now_unmet))

    def _execute(self, command: do.Command) -> None:
        match command:
            case do.WakeAt():
                self._ledger.do(out.SetTimer(command.time_s, ev.Woke(command.time_s)))
            case do.Finish():
                self._ending.finished(command.query)
            case do.Fail():
                self._ending.failed(command.query, command.cause)
            case do.Grant():
                self._running.began(JobId.of(command.job).query, command.node)
                self._ledger.note_reads(command)
                self._ledger.do(out.Execute(command))
            case do.Launch():
                self._ledger.note_reads(command)
                for task in command.tasks:
                    self._running.began(JobId.of(task.job).query)
                self._ledger.do(out.Execute(command))
            case _:
                self._ledger.do(out.Execute(command))

    def _joined(self, given: ev.NodeJoined) -> None:
        self._ledger.places.joined(given.node)
        self._ledger.health.joined(given.node.id)
        self._ledger.tell(given)

    def _lost(self, given: ev.NodeLost) -> None:
        self._ledger.places.lost(given.node)
        self._ledger.health.lost(given.node)
        self._ledger.tell(given)

    def _choose(self, given: inputs.ChoosePolicy) -> None:
        now = self._ledger.now
        self._ledger.tell(ev.PolicyChosen(now, given.profile, given.reason, given.by))
        if is_resizing(self.policies.profile) and not is_resizing(given.profile):
            # The nodes that the former policy has given back: this one would never ask for them.
            self._ledger.do(out.Execute(do.Scale(self._most_nodes)))
        self.policies.chosen(given.profile, now, given.by, given.reason)

    def _pause(self, given: inputs.Pause) -> None:
        """Queries are let in as before, and wait."""
        self.gate.paused = True
        self._ledger.tell(ev.Paused(self._ledger.now, given.by))

    def _resume(self, given: inputs.Resume) -> None:
        self.gate.paused = False
        self._ledger.tell(ev.Resumed(self._ledger.now))

    def _worker_failed(self, given: told.WorkerFailed) -> None:
        raise given.error

    # --- questions -------------------------------------------------------------------------------

    def views(self) -> list[QueryView]:
        """All active queries, the earliest first."""
        known = self.kernel.state.queries
        return [
            entry.view(known[entry.id].slots if entry.id in known else 0)
            for entry in self._ledger.entries.values()
        ]

    def overview(self, now_s: float) -> Overview:
        """All active queries and what holds each, at a time of the clock."""
        return glancing.overview(self._ledger, self.policies.state, now_s)

    def load(self) -> Load:
        """How much there is to do."""
        return glancing.load(self._ledger)

    def cluster(self, now_s: float) -> ClusterView:
        """All nodes and the queries that run there."""
        return glancing.cluster(self._ledger, now_s)

    def why(self, query: str) -> Why | None:
        """What the kernel says of a query; None if it does not know it (yet, or any more)."""
        return self.kernel.why(query) if query in self.kernel.state.queries else None

    def sharers(self) -> dict[str, str]:
        """Queries that share the execution of another, by query: that other query."""
        return {
            entry.id: entry.shares_with
            for entry in self._ledger.entries.values()
            if entry.shares_with
        }

    def speedup(self, template: str, prediction: Prediction) -> Speedup:
        """The curve of a query that has not begun."""
        return self._ledger.widths.curve(template, prediction, prediction.work_s)

    def learnt(self) -> dict[str, dict[str, Any]]:
        """What ended queries have taught, as plain data by the name of the model."""
        return self._ledger.learnt()

    def task_estimates(self, query: Query, plan: PlannedQuery) -> list[ev.EstimateChanged]:
        """What the tasks of a staged query of some class would be expected to take."""
        return self._ledger.tasks.fork().submitted(self._ledger.now, query, plan)

    def task_doubts(self, query: Query, plan: PlannedQuery) -> dict[str, float]:
        """How doubtful that is, by job: squared errors of the logarithms of its work."""
        return self._ledger.tasks.doubts(query, plan)

    def choice(self, request: QueryRequest) -> Choice:
        """The plan that would be chosen now for a query that leaves it open."""
        ledger = self._ledger
        return ledger.choices.choose(request.scans, ledger.riding(), ledger.now)

    def spread_choice(
        self, request: QueryRequest, prediction: Prediction, work: Outlined | None = None
    ) -> Choice | None:
        """The plan that would be chosen now on a cluster; None where a staged plan is needed to
        tell, and `work` is not given.
        """
        return self._intake.spreading.choice(request, prediction, work)

    def knows_key(self, request: QueryRequest) -> bool:
        """Whether a query came with the same idempotency key."""
        return self._ledger.keys.knows(request)

    def awaits(self, given: Input) -> bool:
        """Whether what a timer will post still concerns a query, or no query at all."""
        if isinstance(given, inputs.TimeLimitReached | inputs.WithinReached | inputs.ChoosePlan):
            return given.query in self._ledger.entries
        return not isinstance(given, inputs.TurnOverdue) or self._intake.turns.waits(given.token)

    def wait_for_turns(self, most_s: float) -> None:
        """How long queries wait for their turns at databases from now on."""
        self._intake.turns.wait_s = most_s

    def learn_anew(self) -> Callable[[], None]:
        """Forget what ended queries have taught of widths and tasks; what it returns undoes it."""
        return self._ledger.learn_anew()

    def connection_work_s(self, client: ClientPort) -> float:
        """Core-seconds before a client's own connection is free."""
        return self._intake.queued_work_s(client)

    @property
    def idle(self) -> bool:
        """Whether nothing of any query is left."""
        ledger = self._ledger
        return (
            not ledger.entries
            and not len(ledger.runs)
            and not ledger.readers.reserved_bytes
            and ledger.gate.empty
            and self._intake.empty
        )
