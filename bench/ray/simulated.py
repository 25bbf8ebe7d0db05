"""A cluster in simulated time with one driver, whose work takes time as well.

The kernel is the real one, and the processor time of each of its decisions counts. Beside it a
launch costs the driver a fixed time. While the driver works, slots wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.model import Job, Node, Phase, Query
from queryard.core.scheduler import Scheduler
from queryard.policies import compose, resolve_profile


class Costs(NamedTuple):
    """What scheduling costs, in seconds.

    `launch_s` of the driver's processor per launch, without the kernel; `way_s` until a message is
    at the other side; `ask_s` for a reduce to ask one node for rows. `kernel` is how often the
    processor time of the kernel's decisions counts.
    """

    launch_s: float
    way_s: float = 0.0015
    ask_s: float = 0.001
    kernel: float = 1.0


FREE = Costs(0.0, 0.0, 0.0, 0.0)
"""Scheduling takes no time: what is lost then is lost to the shape of the queries."""


class Load(NamedTuple):
    """Queries at once: jobs, and seconds per task by query, job and kind."""

    queries: Sequence[Query]
    seconds: Mapping[tuple[str, str], float]


class Outcome(NamedTuple):
    """How long it took, and what it cost the driver: the kernel's decisions, and all else."""

    last_s: float
    launches: int
    kernel_s: float
    driver_s: float
    asking_s: float

    @property
    def driver_share(self) -> float:
        return (self.kernel_s + self.driver_s) / self.last_s


def simulated(load: Load, nodes: int, slots: int, costs: Costs) -> Outcome:
    """Run a load on so many nodes."""
    scheduler = Scheduler(compose, resolve_profile("fifo"))
    waiting: list[tuple[float, int, ev.Event]] = []
    posted = 0

    def post(event: ev.Event) -> None:
        nonlocal posted
        posted += 1
        heappush(waiting, (event.time_s, posted, event))

    for number in range(nodes):
        post(ev.NodeJoined(0.0, Node(f"n{number:03}", slots)))
    for query in load.queries:
        post(ev.QuerySubmitted(0.0, query))
    now = kernel_s = driver_s = asking_s = 0.0
    launches = 0
    while waiting:
        now = max(now, waiting[0][0])
        moment = []
        while waiting and waiting[0][0] <= now:
            moment.append(heappop(waiting)[2]._replace(time_s=now))
        began_s = time.thread_time()
        commands = scheduler.handle(*moment)
        took_s = (time.thread_time() - began_s) * costs.kernel
        kernel_s += took_s
        free_s = now + took_s
        for command in commands:
            if isinstance(command, do.Launch):
                launches += 1
                free_s += costs.launch_s
                driver_s += costs.launch_s
                (task,) = command.tasks
                # All nodes have rows for a reduce; it asks each of them.
                asks_s = costs.ask_s * (nodes - 1) if task.kind == "reduce" else 0.0
                asking_s += asks_s
                end_s = free_s + 2 * costs.way_s + load.seconds[task.job, task.kind] + asks_s
                post(ev.TaskFinished(end_s, command.number, command.node))
            elif isinstance(command, do.WakeAt):
                post(ev.Woke(command.time_s))
        now = free_s
    return Outcome(now, launches, kernel_s, driver_s, asking_s)


def grown(load: Load, times: int) -> Load:
    """The same over so many times the data: as many times the tasks, of the same size.

    Phases of one task stay: what is small, or is put together at the end, does not grow.
    """

    def phase(given: Phase | None) -> Phase | None:
        return given if given is None or given.tasks == 1 else Phase(given.tasks * times)

    def job(given: Job) -> Job:
        return Job(
            given.name, upstream=given.upstream, map=phase(given.map), reduce=phase(given.reduce)
        )

    queries = [Query(each.id, tuple(map(job, each.jobs))) for each in load.queries]
    return Load(queries, load.seconds)
