"""A second driver, in real time, with tasks that only sleep: the kernel needs no simulator.

It is also the smallest example of what a live backend must do: carry out commands, post events.
Every launch is a timer of an event loop; the slots, the order and the policy are the kernel's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.model import MAP, Node
from queryard.core.scheduler import Scheduler
from queryard.workload.model import Workload


class SleepingCluster:
    """Runs a workload by sleeping; `speedup` shortens every sleep."""

    def __init__(self, scheduler: Scheduler, workload: Workload, speedup: float = 1.0) -> None:
        self.scheduler = scheduler
        self.ends: dict[str, float] = {}
        self._speedup = speedup
        self._arrivals = workload.arrivals
        self._tables = workload.tables
        self._truth = {
            arrival.query.job_id(name): truth
            for arrival in workload.arrivals
            for name, truth in arrival.truth.items()
        }
        self._timers: dict[int, asyncio.TimerHandle] = {}
        # Job -> [core-seconds left, slots, last look, timer].
        self._leases: dict[str, list[Any]] = {}
        self._open = len(workload.arrivals)

    async def run(self, nodes: Sequence[Node]) -> None:
        """Until every query has ended."""
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._done = asyncio.Event()
        tables = [ev.TableChanged(0.0, table) for table in self._tables]
        self._handle(*tables, *(ev.NodeJoined(0.0, node) for node in nodes))
        for arrival in self._arrivals:
            self._later(arrival.query.submit_s, self._submit, arrival)
        await self._done.wait()

    def _now(self) -> float:
        # Two events may have the same time; the kernel refuses a time before the last one.
        elapsed = (self._loop.time() - self._began) * self._speedup
        return max(elapsed, self.scheduler.state.now)

    def _later(self, time_s: float, call: Any, *args: Any) -> asyncio.TimerHandle:
        return self._loop.call_at(self._began + time_s / self._speedup, call, *args)

    def _submit(self, arrival: Any) -> None:
        if arrival.query.idempotency_key in self.scheduler.state.keys:
            self._end_one()  # it is the earlier query, and ends with it
        self._handle(ev.QuerySubmitted(self._now(), arrival.query))

    def _handle(self, *events: ev.Event) -> None:
        for command in self.scheduler.handle(*events):
            self._execute(command)

    def _execute(self, command: do.Command) -> None:
        now = self._now()
        if isinstance(command, do.Launch):
            task = command.tasks[0]
            truth = self._truth[task.job]
            rest_s = truth.shuffle_s + truth.merge_s + truth.reduce_s
            seconds = truth.map_s if task.kind == MAP else rest_s
            timer = self._later(now + seconds, self._finish_task, command.number, command.node)
            self._timers[command.number] = timer
        elif isinstance(command, do.Kill):
            self._timers.pop(command.number).cancel()
            self._loop.call_soon(self._fail_task, command.number)
        elif isinstance(command, do.Grant):
            lease = self._leases.setdefault(command.job, [self._work_s(command.job), {}, now, None])
            self._advance(lease, now)
            lease[1][command.node] = lease[1].get(command.node, 0) + command.slots
            self._expect(command.job, lease, now)
        elif isinstance(command, do.Revoke):
            self._loop.call_soon(self._return_slots, command)
        elif isinstance(command, do.WakeAt):
            self._later(command.time_s, self._wake, command.time_s)
        elif isinstance(command, do.Finish | do.Fail):
            self.ends[command.query] = now
            self._end_one()

    def _end_one(self) -> None:
        self._open -= 1
        if not self._open:
            self._done.set()

    def _wake(self, time_s: float) -> None:
        self._handle(ev.Woke(max(time_s, self._now())))

    def _finish_task(self, number: int, node: str) -> None:
        if self._timers.pop(number, None) is not None:
            self._handle(ev.TaskFinished(self._now(), number, node))

    def _fail_task(self, number: int) -> None:
        self._handle(ev.TaskFailed(self._now(), number, "killed"))

    def _work_s(self, job: str) -> float:
        return self._truth[job].work_s

    def _advance(self, lease: list[Any], now: float) -> None:
        lease[0] = max(0.0, lease[0] - (now - lease[2]) * sum(lease[1].values()))
        lease[2] = now

    def _expect(self, job: str, lease: list[Any], now: float) -> None:
        if lease[3] is not None:
            lease[3].cancel()
            lease[3] = None
        slots = sum(lease[1].values())
        if slots:
            lease[3] = self._later(now + lease[0] / slots, self._finish_lease, job)

    def _finish_lease(self, job: str) -> None:
        lease = self._leases.pop(job)
        now = self._now()
        self._handle(
            *(ev.LeaseEnded(now, job, node, slots, "finished") for node, slots in lease[1].items())
        )

    def _return_slots(self, command: do.Revoke) -> None:
        lease = self._leases.get(command.job)
        if lease is None or command.node not in lease[1]:
            return
        now = self._now()
        self._advance(lease, now)
        slots = min(command.slots, lease[1][command.node])
        lease[1][command.node] -= slots
        if not lease[1][command.node]:
            del lease[1][command.node]
        self._expect(command.job, lease, now)
        self._handle(ev.LeaseEnded(now, command.job, command.node, slots, "revoked"))
