"""A cluster in which every task takes exactly as long as the test says: no truth, no noise.

>>> yard = Yard({"order": "fifo"}, "1x1")
>>> yard.submit("a", [("scan", 2, 5.0)]).run().ends
{'a': 10.0}
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Any, NamedTuple

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.model import Job, Node, Phase, Query, Table
from queryard.core.scheduler import Scheduler
from queryard.core.state import Settings, State
from queryard.policies import compose, resolve_profile


class Started(NamedTuple):
    """A launch as the tests look at it; `riders` are the ids of all jobs it serves."""

    time_s: float
    job: str
    kind: str
    index: int
    node: str
    riders: tuple[str, ...] = ()


class Yard:
    """Drives a scheduler by hand: `submit`, `run`, then look at `launches` and `ends`."""

    def __init__(
        self,
        profile: str | Mapping[str, Any],
        nodes: str | Iterable[Node] = "1x1",
        tables: Iterable[Table] = (),
        settings: Settings | None = None,
    ) -> None:
        self.scheduler = Scheduler(compose, resolve_profile(profile), settings)
        self.launches: list[Started] = []
        self.ends: dict[str, float] = {}
        self.scales: list[tuple[float, int]] = []
        self._seconds: dict[tuple[str, str], float] = {}
        self._events: list[tuple[float, int, ev.Event]] = []
        self._posted = 0
        if isinstance(nodes, str):
            count, slots = map(int, nodes.split("x"))
            nodes = [Node(f"n{i:02}", slots) for i in range(count)]
        for table in tables:
            self.post(ev.TableChanged(0.0, table))
        for node in nodes:
            self.post(ev.NodeJoined(0.0, node))

    @property
    def state(self) -> State:
        return self.scheduler.state

    def post(self, event: ev.Event) -> None:
        self._posted += 1
        heappush(self._events, (event.time_s, self._posted, event))

    def submit(self, id: str, jobs: Iterable[Any], at: float = 0.0, **query: Any) -> Yard:
        """Jobs are (name, maps, seconds per map), or (a `Job`, seconds per map, per reduce)."""
        specs: list[Job] = []
        for job in jobs:
            if isinstance(job[0], Job):
                spec, times = job[0], job[1:]
            else:
                spec, times = Job(job[0], map=Phase(job[1])), job[2:]
            specs.append(spec)
            for kind, seconds in zip(("map", "reduce"), times, strict=False):
                self._seconds[f"{id}/{spec.name}", kind] = seconds
        asked = Query(id, tuple(specs), submit_s=at, **query)
        self.post(ev.QuerySubmitted(at, asked))
        for spec in specs:
            key = asked.job_id(spec.name)
            reduce_s = self._seconds.get((key, "reduce"))
            self.post(ev.EstimateChanged(at, key, self._seconds[key, "map"], reduce_s))
        return self

    def run(self, until_s: float = math.inf) -> Yard:
        """Go on until nothing happens any more, or to a time (included)."""
        while self._events and self._events[0][0] <= until_s:
            now = self._events[0][0]
            instant = []
            while self._events and self._events[0][0] == now:
                instant.append(heappop(self._events)[2])
            for command in self.scheduler.handle(*instant):
                self._execute(now, command)
        return self

    def fork(self) -> Yard:
        """The same cluster once more, to go on from here on its own."""
        twin = Yard.__new__(Yard)
        twin.scheduler = self.scheduler.fork()
        twin.launches = self.launches.copy()
        twin.ends = self.ends.copy()
        twin.scales = self.scales.copy()
        twin._seconds = self._seconds
        twin._events = self._events.copy()
        twin._posted = self._posted
        return twin

    def _execute(self, now: float, command: do.Command) -> None:
        if isinstance(command, do.Launch):
            task = command.tasks[0]
            riders = tuple(task.job for task in command.tasks)
            self.launches.append(
                Started(now, task.job, task.kind, task.index, command.node, riders)
            )
            end = now + max(self._seconds[task.job, task.kind] for task in command.tasks)
            self.post(ev.TaskFinished(end, command.number, command.node))
        elif isinstance(command, do.Kill):
            self.post(ev.TaskFailed(now, command.number, "killed"))
        elif isinstance(command, do.WakeAt):
            self.post(ev.Woke(command.time_s))
        elif isinstance(command, do.Scale):
            self.scales.append((now, command.nodes))
        elif isinstance(command, do.Release):
            self.post(ev.NodeLost(now, command.node))
        elif isinstance(command, do.Finish | do.Fail):
            self.ends[command.query] = now

    # --- looking ---------------------------------------------------------------------------

    def order(self) -> list[str]:
        """The queries or jobs in the order of their launches; a run of equals counts once."""
        order: list[str] = []
        for launch in self.launches:
            name = launch.job.partition("/")[2] or launch.job
            query = launch.job.partition("/")[0]
            label = name if len(self._queries()) == 1 else query
            if not order or order[-1] != label:
                order.append(label)
        return order

    def _queries(self) -> set[str]:
        return {launch.job.partition("/")[0] for launch in self.launches}

    def slots_of(self, query: str) -> int:
        return self.state.queries[query].slots
