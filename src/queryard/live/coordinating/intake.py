"""From a submission to the kernel: admission, connection queue, planning, shared executions."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from queryard.backends import protocol as told
from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.model import Query

from .. import effects as out
from .. import inputs
from ..admission.limits import Refused
from ..inputs import ClientPort
from ..sharing import GRACE_S, Choice
from ..work.base import Work
from ..work.native import needs_one_slot, takes_a_moment
from ..work.online import OnlineWork
from .connection_queue import ConnectionQueue, Waiter
from .ending import Ending
from .entry import Entry
from .ledger import Ledger
from .running import RunningQueries
from .spreading import Spreading
from .turn_taking import DatabaseTurns


class Intake:
    """Queries until the kernel knows them."""

    def __init__(self, ledger: Ledger, running: RunningQueries, ending: Ending) -> None:
        self._ledger = ledger
        self._running = running
        self._ending = ending
        self._queues: dict[str, ConnectionQueue] = {}
        self.turns = DatabaseTurns(ledger, ending)
        self.spreading = Spreading(ledger)

    def resume(self) -> None:
        """Start what waited for other queries to end in this instant."""
        ledger = self._ledger
        while True:
            again, ledger.again = ledger.again, []
            for entry in again:
                self._begin_native(entry)
            left, ledger.left = ledger.left, []
            for entry in left:
                self._leave_turn(entry)
                self._leave_queue(entry.client, Waiter(entry))
            self._give_turns()
            if not ledger.again and not ledger.left:
                return

    @property
    def empty(self) -> bool:
        return not self._queues and self.turns.empty

    def queued_work_s(self, client: ClientPort) -> float:
        """Core-seconds before a client's own connection is free."""
        queue = self._queues.get(client.id)
        return 0.0 if queue is None else queue.work_s

    # --- they are let in -------------------------------------------------------------------------

    def submit(self, given: inputs.Submit) -> None:
        try:
            earlier = self._ledger.keys.query(given.request)
            if earlier is None:
                self._ledger.check_open()
                self._ledger.gate.check(given.request, given.wait_s)
        except QueryardError as error:
            if isinstance(error, Refused):
                refused = out.RecordRefused(given.query, given.request, error, self._ledger.now)
                self._ledger.do(refused)
            self._ledger.do(out.Reply(given.token, error=error))
            return
        if earlier is not None:
            self._ledger.do(out.Reply(given.token, earlier))
            return
        client, request = given.client, given.request
        entry = Entry(given.query, client, request, given.prediction, given.key, self._ledger.now)
        self._ledger.entries[entry.id] = entry
        self._ledger.gate.enter(entry)
        self._ledger.keys.remember(given.query, request)
        self._ledger.publish(entry)
        self._ledger.do(out.Reply(given.token, entry.id))
        if request.time_limit_s is not None:
            at_s = self._ledger.now + request.time_limit_s
            self._ledger.do(out.SetTimer(at_s, inputs.TimeLimitReached(entry.id)))
        if request.online is not None and request.online.wish.within_s is not None:
            at_s = self._ledger.now + request.online.wish.within_s
            self._ledger.do(out.SetTimer(at_s, inputs.WithinReached(entry.id)))
        queue = self._queues.get(client.id)
        if client.needs_own(request) or (queue is not None and queue.concerns(entry)):
            self._enqueue(entry)
        else:
            self._start(entry)

    # --- the queue for a client's own connection -------------------------------------------------

    def _enqueue(self, entry: Entry) -> None:
        """Queue a query. Its rows may spill: a paused statement would block the queue."""
        self._ledger.do(out.Spill(entry.id))
        # Queued statements before it may change files: it joins no execution that has begun.
        entry.key = None
        self._queues.setdefault(entry.client.id, ConnectionQueue()).join(Waiter(entry))
        self._advance(entry.client)

    def _advance(self, client: ClientPort) -> None:
        """Start queued queries until one of them holds the connection."""
        queue = self._queues.get(client.id)
        if queue is None:
            return
        while (waiter := queue.next()) is not None:
            if waiter.entry is None:
                queue.holder = waiter
                self._ledger.do(out.Reply(waiter.token))
            elif waiter.entry.id in self._ledger.entries and self._start(waiter.entry):
                queue.holder = waiter
        if queue.empty:
            del self._queues[client.id]

    def _leave_queue(self, client: ClientPort, waiter: Waiter) -> None:
        queue = self._queues.get(client.id)
        if queue is not None:
            queue.leave(waiter)
            self._advance(client)

    def acquire_connection(self, given: inputs.AcquireConnection) -> None:
        try:
            self._ledger.check_open()
        except QueryardError as error:
            self._ledger.do(out.Reply(given.token, error=error))
            return
        self._queues.setdefault(given.client.id, ConnectionQueue()).join(Waiter(None, given.token))
        self._advance(given.client)

    def release_connection(self, given: inputs.ReleaseConnection) -> None:
        self._leave_queue(given.client, Waiter(None, given.token))

    def _give_turns(self) -> None:
        """Begin with queries that have their turn by now."""
        for entry in self.turns.granted():
            if not self._go(entry):
                self._leave_queue(entry.client, Waiter(entry))

    def _leave_turn(self, entry: Entry) -> None:
        queue = self._queues.get(entry.client.id)
        held_own = queue is not None and queue.holder == Waiter(entry)
        self.turns.leave(entry, held_own=held_own)

    # --- from a request to work ------------------------------------------------------------------

    def _start(self, entry: Entry) -> bool:
        """Begin with a query; whether it holds its client's own connection from now on."""
        if self.turns.has(entry):
            return self._go(entry)
        # Its client's later statements wait behind it.
        return entry.id in self._ledger.entries and entry.client.needs_own(entry.request)

    def _go(self, entry: Entry) -> bool:
        """The same, for a query that may use the databases it names."""
        if entry.request.plan == "auto" and self._ledger.spreads:
            return self._go_on_cluster(entry)
        if entry.request.plan == "auto":
            choice = self._choose(entry)
            self._ledger.choices.arrived(entry.request.scans, self._ledger.now)
            if choice.plan == "native" and self._ledger.choices.may_wait(entry.request.scans):
                at_s = self._ledger.now + GRACE_S
                self._ledger.do(out.SetTimer(at_s, inputs.ChoosePlan(entry.id)))
                return False
            entry.request = entry.request.chosen(choice)
        return self._begin(entry)

    def _go_on_cluster(self, entry: Entry) -> bool:
        """Run a query natively at one node, or plan it to see whether that is worth it."""
        choice = self.spreading.choice(entry.request, entry.prediction)
        if choice is not None:
            entry.request = entry.request.chosen(choice)
            return self._begin(entry)
        memory_bytes = self._ledger.staged_bytes(entry)
        self._ledger.do(out.StartPlanning(entry.id, entry.request, memory_bytes))
        return False

    def choose_plan(self, given: inputs.ChoosePlan) -> None:
        """A query has waited a moment for others over its table."""
        entry = self._ledger.entries.get(given.query)
        if entry is not None and entry.request.plan == "auto":
            entry.request = entry.request.chosen(self._choose(entry, came_before=1))
            self._begin(entry)

    def _begin(self, entry: Entry) -> bool:
        request = entry.request
        if request.program is not None:
            work = OnlineWork(entry.id, request.program, 1, request.program.steps)
            self._ledger.do(out.AddWork(entry.id, work))
            self._enter_kernel(entry, work)
            return False
        if entry.reasons:
            # It was planned in vain, and had to wait for its client's own connection.
            return self._begin_native(entry)
        if request.online is not None:
            reason = entry.client.not_staged(request)
            if reason is None:
                most_bytes = self._ledger.most_bytes(entry)
                reservations = self._ledger.reservations
                memory_bytes, _ = reservations.native(request, entry.prediction, most_bytes)
                settings = entry.client.settings
                self._ledger.do(out.StartOnline(entry.id, request, memory_bytes, settings))
                return False
            entry.reasons = (reason,)
            if self._ending.end_if_late(entry):
                return False
        elif request.plan == "staged":
            reason = entry.client.not_staged(request)
            if reason is None:
                self._ledger.do(out.Spill(entry.id))
                memory_bytes = self._ledger.staged_bytes(entry)
                self._ledger.do(out.StartPlanning(entry.id, request, memory_bytes))
                return False
            entry.reasons = (reason,)
        return self._begin_native(entry)

    def _choose(self, entry: Entry, came_before: int = 0) -> Choice:
        """Whether a query rides on a shared scan; one that an identical query answers does not.

        `came_before` is how many of the arrivals so far are its own.
        """
        scans, now = entry.request.scans, self._ledger.now
        if entry.key is not None and self._ledger.runs.is_active(
            (entry.key, entry.client.settings)
        ):
            return Choice("native", "an identical query is being answered")
        return self._ledger.choices.choose(scans, self._ledger.riding(), now, came_before)

    def _begin_native(self, entry: Entry) -> bool:
        pooled = entry.client.is_pooled(entry.request)
        # Settings change the answer; they are read once, for the key and for the execution.
        entry.settings = entry.client.settings
        joined = self._ledger.runs.joined(entry.id, _key(entry)) if pooled else None
        if joined is not None:
            entry.joining = joined
            self._ledger.do(out.AddWork(entry.id, joined))
            return False
        self._begin_run(entry, pooled=pooled)
        return not pooled and entry.client.needs_own(entry.request)

    def _begin_run(self, entry: Entry, *, pooled: bool) -> None:
        """Begin an execution for one query; the client's own instance has its own memory."""
        request, prediction = entry.request, entry.prediction
        most_bytes = self._ledger.most_bytes(entry)
        reserved = self._ledger.reservations.native(request, prediction, most_bytes)
        memory_bytes, most_bytes = reserved if pooled else (0, 0)
        sprints = takes_a_moment(request, prediction)
        statement = entry.client.statement(request, memory_bytes, sprints, entry.settings)
        key = _key(entry) if pooled else None
        reads = None
        if self._ledger.spreads and request.largest is not None:
            reads = self._ledger.places.read_as_whole(*request.largest)
        narrow = sprints and not self._ledger.spreads and needs_one_slot(self._ledger.curve(entry))
        work = self._ledger.runs.new(
            entry.id, statement, key, memory_bytes, most_bytes, reads, narrow
        )
        self._ledger.do(out.AddWork(entry.id, work))
        entry.run = work.run
        self._enter_kernel(entry, work)

    def joined(self, given: told.RunJoined) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None or entry.joining is None:
            return  # it was cancelled meanwhile
        work, entry.joining = entry.joining, None
        entry.run = run = work.run  # type: ignore[attr-defined]
        entry.shares_with = run.name
        for other in run.queries:
            # A slow reader must not block the others: its rows spill.
            self._ledger.do(out.Spill(other))
        self._enter_kernel(entry, work)

    def join_refused(self, given: told.JoinRefused) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None or entry.joining is None:
            return
        entry.joining.left()
        entry.joining = None
        self._begin_run(entry, pooled=entry.client.is_pooled(entry.request))

    def planned(self, given: inputs.Planned) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None:
            return  # cancelled; nothing was opened for it yet
        if entry.request.plan == "auto" and not self._is_to_spread(entry, given):
            self._ledger.do(out.CloseWork(given.work))
            self._begin_native(entry)
            return
        self._ledger.do(out.AddWork(entry.id, given.work))
        self._enter_kernel(entry, given.work)

    def _is_to_spread(self, entry: Entry, given: inputs.Planned) -> bool:
        """Choose the plan of a query of which both are known."""
        if given.prediction is not None:
            entry.prediction = given.prediction
            entry.expected_s = given.prediction.work_s
        choice = self.spreading.choice(entry.request, entry.prediction, given.work)
        assert choice is not None, "all is known"
        entry.request = entry.request.chosen(choice)
        if choice.plan == "staged":
            self._ledger.do(out.Spill(entry.id))
        return choice.plan == "staged"

    def found_kept(self, given: inputs.FoundKept) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is not None:
            entry.request = entry.request.over_kept(given.kept)
            self._begin_native(entry)

    def plan_failed(self, given: inputs.PlanFailed) -> None:
        entry = self._ledger.entries.get(given.query)
        if entry is None:
            return
        if given.error is not None:
            # A defect of the planner must not look like "cannot be split".
            self._ending.drop(entry, given.error)
            return
        if entry.request.plan == "auto":
            why = f"it cannot be split: {given.reason}"
            entry.request = entry.request.chosen(Choice("native", why))
        else:
            entry.reasons = (given.reason,)
            if self._ending.end_if_late(entry):
                return
        if entry.client.needs_own(entry.request):
            self._enqueue(entry)
        else:
            self._begin_native(entry)

    def _enter_kernel(self, entry: Entry, work: Work) -> None:
        request = entry.request
        entry.work = work
        entry.memory_bytes = work.memory_bytes
        for other in self._ledger.readers.reserve(entry.memory_bytes):
            self._ledger.do(out.Spill(other))
        query = Query(
            entry.id,
            work.jobs(),
            tenant=request.tenant,
            priority=request.priority,
            memory_bytes=float(entry.memory_bytes),
            submit_s=entry.submitted_s,
            deadline_s=request.deadline_s,
        )
        self._ledger.tell_tables(work)
        self._ledger.tell(ev.QuerySubmitted(self._ledger.now, query))
        self._ledger.tell_estimates(entry)
        if work.hands_over:
            # For the predictor, staged queries of one template are of one class.
            of_class = replace(query, class_name=request.template)
            now = self._ledger.now
            self._ledger.tell(*self._ledger.tasks.submitted(now, of_class, work.planned()))
        self._ledger.note_moved(work.entered())
        if entry.behind:
            self._running.tell_width(entry)
        self._ledger.publish(entry)
        if not entry.recorded:
            entry.recorded = True
            self._ledger.do(out.RecordAsked(entry.facts()))
        if not work.hands_over and request.program is None:
            self._ledger.do(out.Refine(entry.id))


def _key(entry: Entry) -> Hashable | None:
    """Equal for queries that have the same answer."""
    return None if entry.key is None else (entry.key, entry.settings)
