"""`Coordinator.handle(now, *inputs) -> effects`: every query from its submission to its end.

It owns the kernel and what is known of each query. It does no I/O, takes no lock and reads no
clock: all that happens is an input with its time, and all that is to be done is an effect. One
thread calls it (`loop`).

    submitted ──▶ in line ──▶ planned ──▶ in the kernel ──▶ handed over ──▶ ended
         │  for its client's    staged      waits, runs       staged only     ▲
         │  own connection      only            │                             │
         └──────────────────────────────────────┴── cancelled, failed ────────┘

A query stands in line only if it needs its client's own connection, or may see side effects of one
that does. A native query may join the run of another that asks the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from queryard.backends import protocol as told
from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.explain import Why, owes
from queryard.core.model import JobId, Query
from queryard.core.scheduler import Scheduler
from queryard.engine.errors import QueryCancelled, QueryFailed, QueryTimedOut

from . import effects as out
from . import inputs
from .admission.gate import Gate
from .admission.limits import Refused
from .admission.memory import Reservations
from .admission.readers import SlowReaders
from .effects import Effect
from .entry import Entry
from .estimates.refinement import WORTH_PLANNING_S, revised_work
from .facts import QueryView
from .inputs import ClientPort, Input
from .line import Line, Turn
from .work.base import Moved, Work
from .work.native import NativeRuns, takes_a_moment

# How many idempotency keys are remembered; the oldest are forgotten first.
KEYS_KEPT = 100_000


class Coordinator:
    """One kernel, and the queries on their way."""

    def __init__(
        self, kernel: Scheduler, gate: Gate, reservations: Reservations, width: int
    ) -> None:
        """`width` is how many slots one native query can use at most."""
        self.kernel = kernel
        self.gate = gate
        self._reservations = reservations
        self._readers = SlowReaders(reservations.pool_bytes)
        self._runs = NativeRuns(width)
        self._entries: dict[str, Entry] = {}
        self._lines: dict[str, Line] = {}
        self._keys: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()
        self._closed: BaseException | None = None
        self._owes = False
        self._now = 0.0
        self._effects: list[Effect] = []
        self._events: list[ev.Event] = []
        self._takes: dict[type, Callable[[Any], None]] = {
            inputs.Submit: self._submit,
            inputs.Cancel: self._cancel,
            inputs.Release: self._release,
            inputs.TimeLimitReached: self._time_limit_reached,
            inputs.Planned: self._planned,
            inputs.PlanFailed: self._plan_failed,
            inputs.Predicted: self._predicted,
            inputs.ReaderState: self._reader_state,
            inputs.HandedOver: self._handed_over,
            inputs.ChoosePolicy: self._choose,
            inputs.TakeTurn: self._take_turn,
            inputs.TurnOver: self._turn_over,
            inputs.Close: self._close,
            told.RunJoined: self._joined,
            told.JoinRefused: self._join_refused,
            told.RunReport: self._reported,
            told.RunEnded: self._run_ended,
            told.QueryUsed: self._used,
            told.LaunchFailed: self._launch_failed,
            told.WorkerFailed: self._worker_failed,
            ev.WidthChanged: self._width_changed,
        }

    # --- the interface -------------------------------------------------------------------------

    def handle(self, now: float, *given: Input) -> list[Effect]:
        """Take note of all that happened by now, let the kernel decide, say what is to be done."""
        # The clock may stand still between two steps; the kernel only minds if it goes back.
        self._now = max(now, self.kernel.state.now)
        self._effects = []
        for each in given:
            take = self._takes.get(type(each))
            if take is not None:
                take(each)
            else:
                self._events.append(each)  # type: ignore[arg-type]  # the kernel's own
        while self._events:
            events = [event._replace(time_s=self._now) for event in self._events]
            self._events = []
            for command in self.kernel.handle(*events):
                self._obey(command)
        if self._owes != (now_owes := owes(self.kernel)):
            self._owes = now_owes
            self._effects.append(out.Owe(now_owes))
        return self._effects

    def views(self) -> list[QueryView]:
        """All queries on their way, the earliest first."""
        queries = self.kernel.state.queries
        found = []
        for entry in self._entries.values():
            known = queries.get(entry.id)
            status = "running" if entry.started_s is not None else "waiting"
            facts = entry.facts()
            found.append(facts.view(status, 0 if known is None else known.slots))  # type: ignore[arg-type]
        return found

    def why(self, query: str) -> Why | None:
        """What the kernel says of a query; None if it does not know it (yet, or any more)."""
        return self.kernel.why(query) if query in self.kernel.state.queries else None

    def twins(self) -> dict[str, str]:
        """Queries that share the run of another."""
        return {entry.id: entry.twin_of for entry in self._entries.values() if entry.twin_of}

    def wait_in_line_s(self, client: ClientPort) -> float:
        """Core-seconds before a client's own connection is free."""
        line = self._lines.get(client.id)
        return 0.0 if line is None else line.due_s

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(self._entries)

    @property
    def idle(self) -> bool:
        """Whether nothing of any query is left."""
        return (
            not self._entries
            and not self._lines
            and not len(self._runs)
            and not self._readers.reserved_bytes
            and self.gate.empty
        )

    # --- queries come --------------------------------------------------------------------------

    def _submit(self, given: inputs.Submit) -> None:
        try:
            earlier = self._asked_before(given)
            if earlier is None:
                self._check_open()
                self.gate.check(given.request, given.wait_s)
        except QueryardError as error:
            if isinstance(error, Refused):
                refused = out.RecordRefused(given.query, given.request, error, self._now)
                self._effects.append(refused)
            self._effects.append(out.Reply(given.token, error=error))
            return
        if earlier is not None:
            self._effects.append(out.Reply(given.token, earlier))
            return
        client, request = given.client, given.request
        entry = Entry(given.query, client, request, given.prediction, given.key, self._now)
        self._entries[entry.id] = entry
        self.gate.enter(entry)
        self._remember_key(given)
        self._publish(entry)
        self._effects.append(out.Reply(given.token, entry.id))
        if request.time_limit_s is not None:
            at_s = self._now + request.time_limit_s
            self._effects.append(out.SetTimer(at_s, inputs.TimeLimitReached(entry.id)))
        line = self._lines.get(client.id)
        if client.needs_own(request) or (line is not None and line.concerns(entry)):
            self._stand_in_line(entry)
        else:
            self._start(entry)

    def _asked_before(self, given: inputs.Submit) -> str | None:
        """The query that came with the same key."""
        key = given.request.idempotency_key
        found = self._keys.get((given.request.tenant, key)) if key else None
        if found is None:
            return None
        query, sql = found
        if sql != given.request.sql:
            raise QueryardError(
                f"idempotency_key {key!r}: came with another statement before; "
                "use a key of its own for each statement"
            )
        return query

    def _remember_key(self, given: inputs.Submit) -> None:
        request = given.request
        if request.idempotency_key:
            self._keys[request.tenant, request.idempotency_key] = given.query, request.sql
            if len(self._keys) > KEYS_KEPT:
                self._keys.popitem(last=False)

    def _check_open(self) -> None:
        if self._closed is not None:
            raise QueryardError("the session is closed; open another with queryard.connect")

    # --- the line before a client's own connection -----------------------------------------------

    def _stand_in_line(self, entry: Entry) -> None:
        """A paused statement would hold up all that follows it there: its rows may spill."""
        self._effects.append(out.Spill(entry.id))
        # Statements before it in line may change files: it joins no run that is under way.
        entry.key = None
        self._lines.setdefault(entry.client.id, Line()).join(Turn(entry))
        self._advance(entry.client)

    def _advance(self, client: ClientPort) -> None:
        """Start queries in line until one of them holds the connection."""
        line = self._lines.get(client.id)
        if line is None:
            return
        while (turn := line.next()) is not None:
            if turn.entry is None:
                line.at_turn = turn
                self._effects.append(out.Reply(turn.token))
            elif turn.entry.id in self._entries and self._start(turn.entry):
                line.at_turn = turn
        if line.empty:
            del self._lines[client.id]

    def _leave_line(self, client: ClientPort, turn: Turn) -> None:
        line = self._lines.get(client.id)
        if line is not None:
            line.leave(turn)
            self._advance(client)

    def _take_turn(self, given: inputs.TakeTurn) -> None:
        try:
            self._check_open()
        except QueryardError as error:
            self._effects.append(out.Reply(given.token, error=error))
            return
        self._lines.setdefault(given.client.id, Line()).join(Turn(None, given.token))
        self._advance(given.client)

    def _turn_over(self, given: inputs.TurnOver) -> None:
        self._leave_line(given.client, Turn(None, given.token))

    # --- from a request to work ------------------------------------------------------------------

    def _start(self, entry: Entry) -> bool:
        """Begin with a query; whether it holds its client's own connection from now on."""
        request = entry.request
        if request.plan == "staged":
            reason = entry.client.not_staged(request)
            if reason is None:
                self._effects.append(out.Spill(entry.id))
                memory_bytes = self._reservations.staged(request, self._most_bytes(entry))
                self._effects.append(out.StartPlanning(entry.id, request, memory_bytes))
                return False
            entry.reasons = (reason,)
        return self._begin_native(entry)

    def _begin_native(self, entry: Entry) -> bool:
        pooled = entry.client.is_pooled(entry.request)
        joined = self._runs.joined(entry.id, entry.key) if pooled else None
        if joined is not None:
            entry.joining = joined
            self._effects.append(out.AddWork(entry.id, joined))
            return False
        self._begin_run(entry)
        return entry.client.needs_own(entry.request)

    def _begin_run(self, entry: Entry) -> None:
        """A run of the query's own; the client's own instance has memory of its own."""
        request, prediction = entry.request, entry.prediction
        pooled = entry.client.is_pooled(request)
        most_bytes = self._most_bytes(entry)
        reserved = self._reservations.native(request, prediction, most_bytes)
        memory_bytes, most_bytes = reserved if pooled else (0, 0)
        sprints = takes_a_moment(request, prediction)
        statement = entry.client.statement(request, memory_bytes, sprints)
        key = entry.key if pooled else None
        work = self._runs.new(entry.id, statement, key, memory_bytes, most_bytes)
        self._effects.append(out.AddWork(entry.id, work))
        entry.run = work.run
        self._enter_kernel(entry, work)

    def _most_bytes(self, entry: Entry) -> int:
        return self.gate.most_bytes(entry.request, self._reservations.usual_bytes)

    def _joined(self, given: told.RunJoined) -> None:
        entry = self._entries.get(given.query)
        if entry is None or entry.joining is None:
            return  # it was cancelled meanwhile
        work, entry.joining = entry.joining, None
        entry.run = run = work.run  # type: ignore[attr-defined]
        entry.twin_of = run.name
        for other in run.queries:
            # No reader may hold up the rest.
            self._effects.append(out.Spill(other))
        self._enter_kernel(entry, work)

    def _join_refused(self, given: told.JoinRefused) -> None:
        entry = self._entries.get(given.query)
        if entry is None or entry.joining is None:
            return
        entry.joining.left()
        entry.joining = None
        self._begin_run(entry)

    def _planned(self, given: inputs.Planned) -> None:
        entry = self._entries.get(given.query)
        if entry is None:
            return  # cancelled; the loop closes what was made
        self._effects.append(out.AddWork(entry.id, given.work))
        self._enter_kernel(entry, given.work)

    def _plan_failed(self, given: inputs.PlanFailed) -> None:
        entry = self._entries.get(given.query)
        if entry is None:
            return
        if given.error is not None:
            # A defect of the planner's: it must not pass for "cannot be split".
            self._drop(entry, given.error)
            return
        entry.reasons = (given.reason,)
        if entry.client.needs_own(entry.request):
            self._stand_in_line(entry)
        else:
            self._begin_native(entry)

    def _enter_kernel(self, entry: Entry, work: Work) -> None:
        request = entry.request
        entry.work = work
        entry.memory_bytes = work.memory_bytes
        for other in self._readers.reserve(entry.memory_bytes):
            self._effects.append(out.Spill(other))
        query = Query(
            entry.id,
            work.jobs(),
            tenant=request.tenant,
            priority=request.priority,
            memory_bytes=float(entry.memory_bytes),
            submit_s=entry.submitted_s,
            deadline_s=request.deadline_s,
        )
        self._events.append(ev.QuerySubmitted(self._now, query))
        self._events.extend(work.estimates(entry.expected_s))
        self._note_moved(work.entered())
        if entry.behind:
            self._tell_width(entry)
        self._publish(entry)
        if not entry.recorded:
            entry.recorded = True
            self._effects.append(out.RecordAsked(entry.facts()))
        if not work.hands_over:
            self._effects.append(out.Refine(entry.id))

    # --- queries are stopped ---------------------------------------------------------------------

    def _cancel(self, given: inputs.Cancel) -> None:
        entry = self._entries.get(given.query)
        if entry is not None:
            self._stop(entry, given.error)

    def _release(self, given: inputs.Release) -> None:
        """A query that only reads is of no use without its rows."""
        self._effects.append(out.CloseOutput(given.output))
        entry = self._entries.get(given.query)
        if given.complete or entry is None or entry.request.has_side_effects:
            return
        self._stop(entry, QueryCancelled("cancelled"))

    def _time_limit_reached(self, given: inputs.TimeLimitReached) -> None:
        entry = self._entries.get(given.query)
        if entry is None:
            return
        where = "" if entry.started_s is not None else ", still waiting for its turn"
        limit = entry.request.time_limit
        self._stop(entry, QueryTimedOut(f"the query ran into its time limit of {limit}{where}"))

    def _stop(self, entry: Entry, error: BaseException) -> None:
        if entry.done or entry.error is not None:
            return
        if entry.work is None:
            if entry.joining is not None:
                entry.joining.left()
                self._effects.append(out.StopWork(entry.id, error))
            self._drop(entry, error)
            return
        entry.error = error
        entry.again_bytes = None
        self._effects.append(out.FailOutput(entry.id, error))
        self._effects.append(out.StopWork(entry.id, error))
        self._move_memory(entry.work.left())
        self._events.append(ev.QueryCancelled(self._now, entry.id, str(error)))
        self._publish(entry)

    def _close(self, given: inputs.Close) -> None:
        self._closed = given.error
        for entry in list(self._entries.values()):
            self._stop(entry, given.error)

    def _worker_failed(self, given: told.WorkerFailed) -> None:
        raise given.error

    # --- what the kernel says --------------------------------------------------------------------

    def _obey(self, command: do.Command) -> None:
        match command:
            case do.WakeAt():
                self._effects.append(out.SetTimer(command.time_s, ev.Woke(command.time_s)))
            case do.Finish():
                self._finished(command.query)
            case do.Fail():
                self._failed(command.query, command.cause)
            case do.Grant():
                self._began(JobId.of(command.job).query)
                self._effects.append(out.Execute(command))
            case do.Launch():
                for task in command.tasks:
                    self._began(JobId.of(task.job).query)
                self._effects.append(out.Execute(command))
            case _:
                self._effects.append(out.Execute(command))

    def _began(self, query: str) -> None:
        """A slot was given to a query; with it, all that share its run begin."""
        entry = self._entries.get(query)
        if entry is not None and entry.work is not None:
            self._note_moved(entry.work.granted())

    def _note_moved(self, moved: Moved) -> None:
        for query in moved.started:
            entry = self._entries.get(query)
            if entry is not None and entry.started_s is None:
                entry.started_s = self._now
                self.gate.started(entry)
                self._publish(entry)
        self._move_memory(moved.events)

    def _move_memory(self, changes: Sequence[ev.MemoryChanged]) -> None:
        """Another query holds the memory of a run from now on."""
        for change in changes:
            entry = self._entries.get(change.query)
            if entry is not None:
                memory_bytes = int(change.memory_bytes)
                self._readers.reserved_bytes += memory_bytes - entry.memory_bytes
                entry.memory_bytes = memory_bytes
        self._events.extend(changes)

    def _finished(self, query: str) -> None:
        entry = self._entries.get(query)
        if entry is None or entry.work is None:
            return
        if entry.error is None and entry.work.hands_over:
            self._effects.append(out.HandOver(query, entry.work))
        else:
            self._settle(entry)

    def _handed_over(self, given: inputs.HandedOver) -> None:
        entry = self._entries.get(given.query)
        if entry is not None:
            entry.error = entry.error or given.error
            self._settle(entry)

    def _failed(self, query: str, cause: str) -> None:
        entry = self._entries.get(query)
        if entry is None:
            return
        if entry.again_bytes is not None:
            self._begin_again(entry, entry.again_bytes)
            return
        if entry.error is None:
            entry.error = QueryFailed(cause)
        self._settle(entry)

    def _begin_again(self, entry: Entry, memory_bytes: int) -> None:
        """It ran out of memory that was too little by guess: run it with what is usual."""
        self._effects.append(out.Forget(entry.id))
        self._free(entry)
        entry.again_bytes = None
        entry.work = None
        entry.twin_of = ""
        entry.usage = told.Usage()
        entry.request = entry.request.with_memory(memory_bytes)
        self._begin_native(entry)

    # --- what the backend says -------------------------------------------------------------------

    def _used(self, given: told.QueryUsed) -> None:
        entry = self._entries.get(given.query)
        if entry is not None:
            entry.usage = given.usage
            if entry.run is not None:
                entry.run.usage[entry.id] = given.usage
            elif (known := self.kernel.state.queries.get(entry.id)) is not None and known.total_s:
                entry.progress = 1.0 - known.left_s / known.total_s
            self._publish(entry)

    def _reported(self, given: told.RunReport) -> None:
        """Tell the kernel how far a run is, and if it turns out to be more than was expected."""
        run = self._runs.get(given.run)
        if run is None:
            return
        run.usage.update(given.usage)
        for query in run.queries:
            entry = self._entries.get(query)
            if entry is None or entry.work is None or entry.run is not run:
                continue
            entry.usage = given.usage.get(query, entry.usage)
            entry.progress = given.progress
            if given.memory_bytes is not None and entry.prediction.memory_bytes is None:
                entry.peak_memory_bytes = max(entry.peak_memory_bytes or 0, given.memory_bytes)
            self._revise(entry, run.work_s, given.progress)
            self._publish(entry)
        first = self._entries.get(run.queries[0]) if run.queries else None
        if first is not None:
            self._effects.append(out.Learn(first.request, run.work_s, None, "running"))

    def _revise(self, entry: Entry, done_s: float, progress: float) -> None:
        assert entry.work is not None
        before_s = entry.expected_s
        total_s = revised_work(entry.prediction, before_s, done_s, progress)
        if total_s != before_s:
            entry.expected_s = total_s
            if before_s < WORTH_PLANNING_S <= total_s and entry.prediction.by in ("bytes", "guess"):
                # It was taken for too short to be planned.
                self._effects.append(out.Refine(entry.id))
            self._events.extend(entry.work.estimates(total_s))
        done = min(1.0, done_s / total_s) if total_s > 0 else 0.0
        self._events.extend(
            ev.Progressed(self._now, str(JobId(entry.id, job.name)), done)
            for job in entry.work.jobs()
        )

    def _predicted(self, given: inputs.Predicted) -> None:
        entry = self._entries.get(given.query)
        if entry is None or entry.work is None or entry.error is not None:
            return
        entry.prediction = given.prediction
        entry.expected_s = given.prediction.work_s
        self._events.extend(entry.work.estimates(entry.expected_s))
        self._publish(entry)

    def _run_ended(self, given: told.RunEnded) -> None:
        run = self._runs.get(given.run)
        if run is None:
            return
        self._runs.over(run)
        again = given.error is not None and run.needs_more(given.error, given.rows_out)
        for query in list(run.queries):
            entry = self._entries.get(query)
            if entry is None or entry.run is not run or entry.error is not None:
                continue
            if given.error is None:
                entry.done = True
            elif again:
                entry.again_bytes = self._most_bytes(entry)
            else:
                entry.error = given.error
                self._effects.append(out.FailOutput(query, given.error))
            self._publish(entry)

    def _launch_failed(self, given: told.LaunchFailed) -> None:
        entry = self._entries.get(given.query)
        retry: ev.Retry = "count"
        if entry is not None and entry.work is not None:
            retry = entry.work.on_failure(given.error)
            if retry == "never" and entry.error is None:
                entry.error = given.error
                self._effects.append(out.FailOutput(entry.id, given.error))
        cause = str(given.error) or type(given.error).__name__
        self._events.append(ev.TaskFailed(self._now, given.launch, cause, retry))

    # --- slots that a query can use --------------------------------------------------------------

    def _width_changed(self, event: ev.WidthChanged) -> None:
        entry = self._entries.get(JobId.of(event.job).query)
        if entry is not None:
            entry.width = event.width
            if not entry.behind:
                self._events.append(event)

    def _reader_state(self, given: inputs.ReaderState) -> None:
        entry = self._entries.get(given.query)
        if entry is None or entry.behind == given.behind:
            return
        if given.behind and self._readers.fell_behind(entry.id):
            self._effects.append(out.Spill(entry.id))
            return
        if not given.behind:
            self._readers.caught_up(entry.id)
        entry.behind = given.behind
        if entry.work is not None:
            self._tell_width(entry)

    def _tell_width(self, entry: Entry) -> None:
        assert entry.work is not None
        for job in entry.work.jobs():
            if job.divisible is not None:
                usable = job.divisible.width if entry.width is None else entry.width
                width = 0 if entry.behind else usable
                self._events.append(
                    ev.WidthChanged(self._now, str(JobId(entry.id, job.name)), width)
                )

    # --- policies --------------------------------------------------------------------------------

    def _choose(self, given: inputs.ChoosePolicy) -> None:
        profile: Mapping[str, Any] = given.profile
        self._events.append(ev.PolicyChosen(self._now, profile))

    # --- the end ---------------------------------------------------------------------------------

    def _settle(self, entry: Entry) -> None:
        """Nothing of a query is left in the kernel and the engine."""
        run = entry.run
        if run is not None and run.holder == entry.id:
            stopped = isinstance(entry.error, QueryCancelled | QueryTimedOut) and run.work_s > 0
            known: out.Known = (
                "exactly" if entry.error is None else "at least" if stopped else "nothing"
            )
            learned = out.Learn(entry.request, run.work_s, entry.peak_memory_bytes, known)
            self._effects.append(learned)
        self._drop(entry, entry.error)

    def _drop(self, entry: Entry, error: BaseException | None) -> None:
        del self._entries[entry.id]
        entry.error = error
        entry.ended_s = self._now
        work = entry.work
        self._free(entry)
        self.gate.left(entry)
        if error is not None:
            self._effects.append(out.FailOutput(entry.id, error))
        self._effects.append(out.Ended(entry.facts(), work))
        self._leave_line(entry.client, Turn(entry))

    def _free(self, entry: Entry) -> None:
        """Its memory is free, and its run may be over."""
        self._readers.free(entry.id, entry.memory_bytes)
        entry.memory_bytes = 0
        run = entry.run
        if run is not None:
            if entry.id in run.queries:
                run.queries.remove(entry.id)
            if not run.queries:
                self._runs.drop(run)

    def _publish(self, entry: Entry) -> None:
        self._effects.append(out.Publish(entry.facts()))
