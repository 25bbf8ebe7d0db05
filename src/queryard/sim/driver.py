"""The simulated cluster: turns commands into future events and feeds them to the kernel.

Events are totally ordered by (time, priority, sequence). All events of an instant go into one
call of `Scheduler.handle`, and there is no other way into the kernel.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.errors import QueryardError
from queryard.core.events import TaskFailed, TaskFinished
from queryard.core.model import MAP, Node
from queryard.core.scheduler import Scheduler
from queryard.estimate.tasks.estimating import Report
from queryard.workload.model import Arrival

from .conditions import Conditions
from .estimates import EstimateSource, oracle
from .leasing import BatchEnds, Leasing, Outgrows, Returns
from .machines import Machines
from .ordering import TIMERS, USERS, WORK
from .predicting import Predicting
from .shuffling import Shuffling
from .truth import BY_CHANCE, Truth, is_local

_new = tuple.__new__


# More decisions than this within one instant are an endless loop of the policy.
MOST_ROUNDS = 10_000


class Arrives:
    """A note in the queue: a query is submitted, with what is estimated of it."""

    __slots__ = ("arrival",)

    def __init__(self, arrival: Arrival) -> None:
        self.arrival = arrival


class Calls:
    """A note in the queue: a function is called and may return events for the kernel."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[float], Sequence[ev.Event]]) -> None:
        self.call = call


class SimDriver:
    """Drives one kernel through simulated time."""

    def __init__(
        self,
        scheduler: Scheduler,
        truth: Truth,
        *,
        estimates: EstimateSource = oracle,
        seed: int = 0,
        on_end: Callable[[str], None] | None = None,
    ) -> None:
        self.scheduler = scheduler
        self._state = scheduler.state
        self.truth = truth
        self.conditions: Conditions = truth.conditions
        self.ends: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.now = scheduler.state.now
        self.estimates = estimates
        self._learner = estimates if isinstance(estimates, Predicting) else None
        self._on_end = on_end
        self._heap: list[tuple[float, int, int, Any]] = []
        self._sequence = 0
        # Launch -> when it will end, where that has changed since it was posted.
        self._moved: dict[int, float] = {}
        self._failing = truth.conditions.task_failure > 0
        self._early_reduces = (
            scheduler.state.settings.slow_start < 1 or truth.conditions.node_mtbf_s > 0
        )
        self._shuffling = Shuffling(scheduler.state, self.post, self._moved)
        self._machines = Machines(scheduler.state, self.conditions, self.post, seed)
        self._leasing = Leasing(scheduler.state, truth, self.post, seed)
        self._rounds = 0
        self._rounds_s = -math.inf
        self._open = 0
        # Idempotency keys seen, also those of this very instant.
        self._keys: set[str] = set()
        self._executors: dict[type, Callable[[Any], None]] = {
            do.Launch: self._launch,
            do.Kill: self._kill,
            do.Grant: self._leasing.grant,
            do.Revoke: self._leasing.revoke,
            do.WakeAt: self._wake_at,
            do.Scale: self._machines.scale,
            do.Release: self._machines.release,
            do.Finish: self._finish,
            do.Fail: self._fail,
        }

    # --- what will happen ------------------------------------------------------------------

    def post(self, time_s: float, priority: int, what: Any) -> None:
        self._sequence += 1
        heappush(self._heap, (time_s, priority, self._sequence, what))

    def call_at(
        self, time_s: float, priority: int, call: Callable[[float], Sequence[ev.Event]]
    ) -> None:
        """Call a function at a time; the events it returns happen then."""
        self.post(time_s, priority, Calls(call))

    def add_nodes(self, nodes: Iterable[Node], time_s: float = 0.0) -> None:
        self._machines.add(nodes, time_s)

    def add_arrival(self, arrival: Arrival) -> None:
        query = arrival.query
        self._open += 1
        self.post(query.submit_s, USERS, Arrives(arrival))
        if arrival.cancel_s is not None:
            at = max(arrival.cancel_s, query.submit_s)
            self.post(at, USERS, ev.QueryCancelled(at, query.id))

    def resume(self) -> None:
        """Continue the kernel's running work: it ends after its expected remaining time."""
        state = self.scheduler.state
        now = state.now
        # A query that can use no slot now may stay so for ever: do not wait for its end.
        held = {job.query.id for job in state.jobs.values() if job.is_stalled}
        self._open += len(state.queries) - len(held)
        for number, run in state.running.items():
            task = run.tasks[0]
            if number in state.killed:
                self._kill(do.Kill(number))
                continue
            if task.kind == MAP:
                seconds = self.truth.map_seconds(run, state)
            else:
                seconds = sum(self.truth.reduce_seconds(run, state))
                waits = self._early_reduces and not run.round
                if waits and self._shuffling.waits(run, 0.0, seconds):
                    continue
            end = max(now, run.time_s + seconds)
            self.post(end, WORK, ev.TaskFinished(end, number, run.node))
        for number in state.beaten:
            self._kill(do.Kill(number))
        self._leasing.resume()
        for time_s in self.scheduler.waking.times_s:
            # A timer of the live clock may be due and not have fired yet.
            self._wake_at(do.WakeAt(max(now, time_s)))

    # --- the loop --------------------------------------------------------------------------

    @property
    def unfinished(self) -> int:
        """Queries that have not ended; above 0 after a complete `run` means a deadlock."""
        return self._open

    def stays_s(self, until_s: float) -> tuple[float, ...]:
        """For how long each node was there, up to a time."""
        return self._machines.stays_s(until_s)

    @property
    def has_more(self) -> bool:
        """Whether anything can still happen."""
        return bool(self._heap)

    @property
    def only_rings(self) -> bool:
        """Whether nothing is under way but timers, which may go on for ever."""
        return all(priority == TIMERS for _, priority, _, _ in self._heap)

    @property
    def next_s(self) -> float:
        """When the next thing may happen; never, once every query has ended."""
        return self._heap[0][0] if self._heap and self._open else math.inf

    def run(self, until_s: float = math.inf, most_steps: int = sys.maxsize) -> None:
        """Run until every query has ended, to `until_s`, or for `most_steps` decisions."""
        heap = self._heap
        moved = self._moved
        running, beaten = self.scheduler.state.running, self.scheduler.state.beaten
        handle = self.scheduler.handle
        executors = self._executors
        while heap and self._open and heap[0][0] <= until_s and most_steps:
            events: list[ev.Event] = []
            rare = False
            while True:
                now, _, _, what = heappop(heap)
                kind = type(what)
                if kind is TaskFinished or kind is TaskFailed:
                    number = what[1]
                    known = number in running or number in beaten
                    if known and (not moved or self._is_due(number, now)):
                        events.append(what)
                else:
                    rare = True
                    self._happen(now, what, events)
                if not heap or heap[0][0] != now:
                    break
            if not events:
                continue
            most_steps -= 1
            if now == self.now:
                self._check_moving(now)
            self.now = now
            if rare:
                events[:0] = self._leasing.progress(now)
            if self.truth.has_parsing:
                changed = self.truth.segments.changed_shares()
                events += [ev.SegmentsKept(now, *share) for share in changed]
            if self._learner is not None:
                events += self._learn(now, self._learner, events)
            for command in handle(*events):
                executors[type(command)](command)
            if self._early_reduces:
                self._shuffling.release(now)

    def _learn(self, now: float, learner: Predicting, events: Sequence[ev.Event]) -> list[ev.Event]:
        """What the tasks that have just ended teach a predictor."""
        told: list[ev.Event] = []
        for event in events:
            if isinstance(event, TaskFinished):
                launch = self._state.running.get(event.launch)
                if launch is None or (launch.round and launch.tasks[0].kind != MAP):
                    continue  # it was beaten, or a fold, which says nothing of the whole task
                told += learner.ended(now, launch, self._report(now, launch, event))
        return told

    def _report(self, now: float, launch: do.Launch, event: TaskFinished) -> Report:
        """What the node of a task has measured beside its time."""
        truth = self.truth
        if launch.tasks[0].kind == MAP:
            left_bytes = event.output_bytes if truth.has_outputs else None
            return Report(left_bytes, is_local(launch, self._state))
        parts = truth.parts_of_reduces(launch.tasks[0].job)
        if parts is None:
            return Report()
        _, merge, rest = parts
        after_s = (now - launch.time_s) * (merge + rest)
        if self._early_reduces:
            after_s = self._shuffling.rest_s(launch.number)
        merge_s = after_s * merge / (merge + rest) if merge else 0.0
        return Report(merge_s=merge_s, rest_s=after_s - merge_s)

    def _check_moving(self, now: float) -> None:
        """A policy that decides back and forth within one instant would never end."""
        self._rounds = self._rounds + 1 if now == self._rounds_s else 0
        self._rounds_s = now
        if self._rounds > MOST_ROUNDS:
            raise QueryardError(
                f"time stands still at {now} s: the policy {self.scheduler.policy.name!r} has "
                f"decided {MOST_ROUNDS} times without anything moving on"
            )

    def _is_due(self, number: int, now: float) -> bool:
        """Whether a launch that may have been moved ends now, and has not ended yet."""
        due = self._moved.get(number, now) == now
        if due and number in self._moved:
            self._moved[number] = -math.inf
        return due

    def _happen(self, now: float, what: Any, events: list[ev.Event]) -> None:
        """Turn an entry of the queue into events, unless it has become void."""
        if isinstance(what, BatchEnds | Outgrows | Returns):
            events.extend(self._leasing.happen(now, what))
        elif isinstance(what, Arrives):
            self._arrive(now, what.arrival, events)
        elif isinstance(what, Calls):
            events.extend(what.call(now))
        elif isinstance(what, ev.NodeJoined):
            self._machines.join(what, events)
        elif isinstance(what, ev.TableChanged):
            self.truth.segments.drop(what.table.name)
            events.append(what)
        elif isinstance(what, ev.NodeLost):
            self._lose(now, what, events)
        else:
            events.append(what)

    def _arrive(self, now: float, arrival: Arrival, events: list[ev.Event]) -> None:
        query = arrival.query
        key = query.idempotency_key
        if key and (key in self.scheduler.state.keys or key in self._keys):
            self._open -= 1  # it is the earlier query, and ends with it
        else:
            self._keys.add(key)
            tables = self.scheduler.state.tables
            for job in query.jobs:
                physics = self.truth.add(query.job_id(job.name), job, arrival.truth[job.name])
                physics.read(tables[name] for name in job.scans if name in tables)
        events.append(ev.QuerySubmitted(now, query))
        events.extend(self.estimates(now, arrival))

    # --- tasks -----------------------------------------------------------------------------

    def _launch(self, command: do.Launch) -> None:
        truth = self.truth
        number, node, tasks, round, now = command
        at = truth.fails(command) if self._failing else None
        if tasks[0][1] == MAP:
            end = now + truth.map_seconds(command, self._state)
        else:
            shuffle_s, rest_s = truth.reduce_seconds(command, self._state)
            end = now + shuffle_s + rest_s
            if round:
                if at is None:
                    truth.folds(command, self._state)
            elif self._early_reduces and self._shuffling.waits(command, shuffle_s, rest_s, at):
                return
        if at is not None:
            end = now + (end - now) * at
            self.post(end, WORK, TaskFailed(end, number, BY_CHANCE))
            return
        self._sequence = sequence = self._sequence + 1
        # Named tuples made this way cost half; this runs once per task.
        output_bytes = truth.output_bytes(command) if truth.has_outputs else 0.0
        event = _new(TaskFinished, (end, number, node, output_bytes, None))
        heappush(self._heap, (end, WORK, sequence, event))

    def _kill(self, command: do.Kill) -> None:
        now = self.scheduler.state.now
        self._moved[command.number] = now
        self.post(now, WORK, ev.TaskFailed(now, command.number, "killed"))

    # --- the cluster -----------------------------------------------------------------------

    def _lose(self, now: float, event: ev.NodeLost, events: list[ev.Event]) -> None:
        node = self._state.nodes.get(event.node)
        if node is None:
            return  # released in the meantime
        events.append(event)
        self.truth.lose(event.node)
        if all(
            other.host != node.host for other in self._state.nodes.values() if other is not node
        ):
            self.truth.segments.lose(node.host)
        self._leasing.lose(now, node)
        self._shuffling.lose(now, event.node)
        self._machines.lose(now, node)

    # --- queries and timers ----------------------------------------------------------------

    def _wake_at(self, command: do.WakeAt) -> None:
        self.post(command.time_s, TIMERS, ev.Woke(command.time_s))

    def _finish(self, command: do.Finish) -> None:
        self._end(command.query)

    def _fail(self, command: do.Fail) -> None:
        self.failed[command.query] = command.cause
        self._end(command.query)

    def _end(self, query: str) -> None:
        self._open -= 1
        self.ends[query] = self.scheduler.state.now
        self._leasing.forget(query)
        if self._learner is not None:
            self._learner.forget(query)
        if self._on_end is not None:
            self._on_end(query)
