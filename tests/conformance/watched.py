"""A scheduler that is checked after every step, from the outside."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from queryard.core import commands as do
from queryard.core import events as ev
from queryard.core.entities import QueryState
from queryard.core.model import MAP
from queryard.core.nodes import NodeState
from queryard.core.scheduler import Scheduler


class WatchedScheduler(Scheduler):
    """Checks invariants, conservation, caps and results at every call of `handle`.

    Of half of the tasks that fail it is said that the node may be why.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.launches: dict[int, do.Launch] = {}
        self.results: defaultdict[str, dict[tuple[str, int], str | None]] = defaultdict(dict)
        self.lost: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
        # Launches whose task another launch has done.
        self.beaten: set[int] = set()
        self.specs: dict[str, Any] = {}
        self.ended: Counter[str] = Counter()
        # How many slots a job can use, where the driver said otherwise on the way.
        self.widths: dict[str, int] = {}
        # Nodes -> their hosts; divisible jobs that have started -> theirs.
        self.hosts: dict[str, str] = {}
        self.homes: dict[str, str] = {}
        # Queries -> the nodes at which some task of theirs failed that is to run elsewhere.
        self.failed: defaultdict[str, set[str]] = defaultdict(set)
        super().__init__(*args, **kwargs)

    def handle(self, *events: ev.Event) -> list[do.Command]:
        tree = self.tree
        events = tuple(map(self._blame, events))
        used = {pool.path: pool.used for pool in tree.pools.values()}
        reserved = self.state.reserved_bytes
        started = {query.id for query in self.state.queries.values() if query.stage != "waiting"}
        for event in events:
            self._collect(event)
        commands = super().handle(*events)
        self.validate()
        for command in commands:
            self._check(command)
        self._check_widths()
        if self.state.paused_by is not None:
            self._check_pause(events, started)
        if self.tree is tree:  # another policy finds its pools as full as they are
            self._check_caps(used)
        grown = self.state.reserved_bytes > reserved
        told = any(isinstance(event, ev.MemoryChanged) for event in events)
        assert told or not grown or self.state.reserved_bytes <= self.state.memory_bytes
        if self.policy.work_conserving:
            self._check_conservation()
        return commands

    def _blame(self, event: ev.Event) -> ev.Event:
        if not isinstance(event, ev.TaskFailed) or event.retry != "count" or event.launch % 2:
            return event
        run = self.state.running.get(event.launch)
        for task in run.tasks if run is not None else ():
            self.failed[task.job.partition("/")[0]].add(run.node)
        return event._replace(retry="elsewhere")

    def _collect(self, event: ev.Event) -> None:
        """Keep results as a backend would: what finished, and what a lost node took away."""
        if isinstance(event, ev.QuerySubmitted):
            self.specs[event.query.id] = event.query
        elif isinstance(event, ev.WidthChanged):
            if event.job in self.state.jobs:
                self.widths[event.job] = event.width
        elif isinstance(event, ev.TaskFinished):
            launch = self.launches.pop(event.launch, None)
            if launch is None:
                return  # its node was lost in this very instant
            if launch.round and launch.tasks[0].kind != MAP:
                return  # a fold, which is no result yet
            if event.launch in self.beaten:
                return  # another launch has done the same
            live = self.state.running[event.launch].tasks
            self.beaten.add(self.state.twins.get(event.launch, -1))
            for task in live:
                results = self.results[task.job]
                assert (task.kind, task.index) not in results, f"{task} ran twice into a result"
                results[task.kind, task.index] = event.place
            assert {t.job for t in live} <= {t.job for t in launch.tasks}
        elif isinstance(event, ev.TaskFailed):
            self.launches.pop(event.launch, None)
        elif isinstance(event, ev.NodeJoined):
            self.hosts[event.node.id] = event.node.host or event.node.id
        elif isinstance(event, ev.NodeLost):
            lost = self.hosts.pop(event.node)
            if lost not in self.hosts.values():
                self.homes = {job: host for job, host in self.homes.items() if host != lost}
            for number in [n for n, launch in self.launches.items() if launch.node == event.node]:
                del self.launches[number]
            for job_id, results in self.results.items():
                job = self.state.jobs.get(job_id)
                if job is None or job.done or job.reduce is None:
                    continue
                for (kind, index), place in list(results.items()):
                    if kind == MAP and place == event.node:
                        del results[kind, index]
                        self.lost[job_id].add((kind, index))

    def _check(self, command: do.Command) -> None:
        if isinstance(command, do.Grant) and self.state.jobs[command.job].stays:
            host = self.state.nodes[command.node].host
            at = self.homes.setdefault(command.job, host)
            assert at == host, f"{command.job} has started on {at} and is granted slots of {host}"
        if isinstance(command, do.Launch):
            assert command.number not in self.launches
            self.launches[command.number] = command
            splits = {task.index for task in command.tasks}
            assert len(splits) == 1, "riders share one split"
            assert len({task.job for task in command.tasks}) == len(command.tasks)
        elif isinstance(command, do.Finish | do.Fail):
            self.ended[command.query] += 1
            assert self.ended[command.query] == 1, f"{command.query} ended twice"
        if isinstance(command, do.Finish):
            query = self.specs[command.query]
            for job in query.jobs:
                expected = {("map", i) for i in range(job.map.tasks if job.map else 0)}
                expected |= {("reduce", i) for i in range(job.reduce.tasks if job.reduce else 0)}
                job_id = query.job_id(job.name)
                results = self.results[job_id]
                # A map output that was lost need not be made again once every reduce is done.
                missing = expected - results.keys()
                assert results.keys() <= expected
                assert missing <= self.lost[job_id], f"{job.name}: tasks were lost"
                assert job.reduce is not None or not missing

    def _check_widths(self) -> None:
        """No more is held than the driver last said can be used; no guarantee is kept waiting."""
        for job in self.state.leaseholders.values():
            held = sum(lease[0] for lease in job.leases.values())
            width = self.widths.get(job.id, job.spec.divisible.width if job.spec.divisible else 0)
            assert held <= width or job.finishing, f"{job.id} holds {held} of {width} slots"
        free = sum(node.free for node in self.state.nodes.values() if not node.draining)
        if not free or not self.policy.work_conserving:
            return
        for pool in self.tree.pools.values():
            starved = pool.used < pool.guarantee and pool.queries and any(pool.ready)
            runs = any(
                pool.members[uid].query.stage == "running"
                for ranking in pool.lanes
                for uid in ranking.keys
            )
            assert not (starved and runs), f"pool {pool.path} is below its guarantee"

    def _check_pause(self, events: tuple[ev.Event, ...], started: set[str]) -> None:
        """While it is paused no query starts, but by memory that another one holds."""
        told = {event.query for event in events if isinstance(event, ev.MemoryChanged)}
        for query in self.state.queries.values():
            new = query.stage == "running" and query.id not in started | told
            assert not new, f"{query.id} has started in a pause"

    def _check_caps(self, used: dict[str, int]) -> None:
        for pool in self.tree.pools.values():
            grown = pool.used > used.get(pool.path, 0)
            assert not grown or pool.used <= pool.cap, f"pool {pool.path} is above its cap"

    def _check_conservation(self) -> None:
        free = [node for node in self.state.nodes.values() if node.free]
        for query in self.state.queries.values():
            if not any(self._could_use(node, query) for node in free):
                continue
            if query.stage == "running":
                raise AssertionError(f"slots are free and {query.id} could use one")
            if query.stage == "waiting" and not query.memory_bytes:
                raise AssertionError(f"slots are free and {query.id} could start")

    def _could_use(self, node: NodeState, query: QueryState) -> bool:
        """Divisible jobs that have started go on on their host, and only there.

        A slot of a node where something of the query failed may be left for a better one.
        """
        if node.draining and not node.serves_bound:
            return False
        if node.id in self.failed[query.id]:
            return False
        hosts = {job.host for jobs in query.runnable for job in jobs}
        return not hosts.isdisjoint({node.host} if node.draining else {"", node.host})
