"""A Ray cluster as a backend.

Native queries run under leases at one node each, tasks of staged queries at all nodes. What cannot
leave the driver's process (temporary tables, writes, frames, Python functions, online answers)
runs in it, on slots that nodes lend to it by name only.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from queryard.backends.local.leases import Engine
from queryard.backends.protocol import (
    BackendCommand,
    BackendReport,
    Leased,
    NodeNote,
    Post,
    QueryUsed,
    Spread,
    Work,
    WorkerFailed,
)
from queryard.backends.workers import Workers
from queryard.core.commands import Grant, Kill, Launch, Release, Revoke, Scale
from queryard.core.errors import QueryardError
from queryard.core.events import NodeJoined, NodeLost, NodeSilent
from queryard.core.model import Node, TaskId
from queryard.engine.errors import QueryCancelled, failure_kind
from queryard.sql.catalog.carried import carried
from queryard.sql.catalog.catalog import Catalog

from .at_driver import AtDriver
from .cluster import Cluster
from .exchange import RayExchange
from .launches import Launches
from .link import Link
from .members import Members, MemberSetting
from .messages import (
    DRIVER,
    Lost,
    Met,
    NodeEvent,
    NodeReport,
    RowsBegan,
    RowsCame,
    RowsEnded,
    Tables,
    Unmet,
)
from .peers import Peers
from .reporting import NodeNotes, node_reports, total_of
from .runs import Runs
from .usage import UsageAtNodes
from .workplace import DuckWorkplace, OpenWorkplace

# What the driver reads of answers is bounded as if the object store at its node had this size.
DRIVER_STORE_BYTES = 256 << 20

Send = Callable[[Any], Any]
"""A statement as a node can run it; None if it must run in this process."""


class RayBackend:
    """Slots of the nodes of a Ray cluster."""

    def __init__(
        self,
        cluster: Cluster,
        setting: MemberSetting,
        engine: Engine,
        catalog: Catalog | None,
        send: Send,
        open_workplace: OpenWorkplace = DuckWorkplace,
        ends: Callable[[], None] | None = None,
    ) -> None:
        """`engine` runs what cannot be sent. `ends` is called when all of it has ended."""
        self._cluster = cluster
        self._ends = ends
        self._catalog = catalog
        self._send = send
        # Guards all that is known of runs and launches; never held while rows are passed on.
        self._lock = threading.RLock()
        # Notified when a node has joined, and when a query is not wanted any more.
        self._changed = threading.Condition(self._lock)
        self._unwanted: set[str] = set()
        self._closed = False
        self._post: Post | None = None
        self._early: list[NodeJoined | NodeLost | NodeSilent] = []
        self._links: dict[str, Link] = {}
        self._usage = UsageAtNodes()
        self._notes = NodeNotes(cluster.ray)
        self._peers = Peers(cluster.ray, DRIVER_STORE_BYTES)
        self._runs = Runs(self._prepare)
        self._launches = Launches(
            self._prepare, lambda: sum(link.node.memory_bytes for link in self._links.values())
        )
        self._workers = Workers(self._failed)
        self._members = Members(
            cluster, setting, open_workplace, self._joined, self._hear, self._gone, self._silent
        )
        # Before nodes join: one may be lost while others still do.
        self._here = AtDriver(engine, self._workers.start, max(1, cluster.driver_cpus()))
        self._members.start()
        if not self._links:
            reasons = "; ".join(self._members.refused.values()) or "there are no nodes with CPUs"
            self._members.close(0.0)
            if ends is not None:
                ends()
            raise QueryardError(f"backend ray: no node takes part: {reasons}")

    @property
    def slots(self) -> int:
        with self._lock:
            return max(1, sum(link.node.slots for link in self._links.values()))

    @property
    def width(self) -> int:
        with self._lock:
            return max((link.node.slots for link in self._links.values()), default=1)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that take part now."""
        with self._lock:
            return tuple(link.node for link in self._links.values())

    @property
    def refused(self) -> tuple[str, ...]:
        """The nodes that do not take part, each with the reason."""
        return tuple(self._members.refused.values())

    def exchange(self, query: str) -> RayExchange:
        """The driver's way to the rows of a query."""
        return RayExchange(self._peers, DRIVER, query)

    def start(self, post: Post) -> None:
        with self._lock:
            self._post = post
            self._runs.begin(post)
            self._launches.begin(post)
            self._here.begin(post)
            for event in self._early:
                post(event)
            self._early.clear()

    # --- nodes --------------------------------------------------------------------------------

    def _joined(self, link: Link) -> None:
        with self._lock:
            if not self._members.has(link):
                return  # it was given up meanwhile
            self._meet(link)
            self._links[link.name] = link
            self._tell_node(NodeJoined(0.0, link.node))
            self._changed.notify_all()

    def _meet(self, link: Link) -> None:
        """Let a new node and all others know each other: they fetch rows from one another."""
        self._peers.meet(link.name, link.actor)
        for other in self._members.links():
            if other is not link:
                other.send(Met(link.name, link.actor))
                link.send(Met(other.name, other.actor))

    def _gone(self, link: Link, reason: str) -> None:
        with self._lock:
            is_busy = self._runs.has_any_at(link) or self._launches.has_any_at(link)
            self._members.lost(link, is_busy)
            is_used = self._links.pop(link.name, None) is not None
            self._peers.lose(link.name)
            for other in self._members.links():
                other.send(Lost(link.name))
            if not is_used:
                self._launches.lose(link, reason)
                return
            self._runs.lose(link, reason)
            self._here.lose(link.name)
            self._tell_node(NodeLost(0.0, link.name, reason, self._here.jobs))
            self._launches.lose(link, reason)

    def _silent(self, link: Link, silent: bool) -> None:
        with self._lock:
            if link.name in self._links:
                link.told_suspect = silent
                self._tell_node(NodeSilent(0.0, link.name, silent))

    def _tell_node(self, event: NodeJoined | NodeLost | NodeSilent) -> None:
        self._here.lent_by(sum(link.node.slots for link in self._links.values()))
        if self._post is None:
            self._early.append(event)
        else:
            self._post(event)

    def _prepare(self, link: Link) -> None:
        """Let a node know the catalog as it is now."""
        if self._catalog is None or link.tables_version == self._catalog.version:
            return
        link.tables_version = self._catalog.version
        tables = carried(self._catalog.tables.values())
        link.send(Tables(tables, self._catalog.databases))

    # --- work ---------------------------------------------------------------------------------

    def add(self, query: str, work: Work) -> None:
        with self._lock:
            if isinstance(work, Spread):
                self._launches.add(query, work.tasks)
            elif isinstance(work, Leased):
                self._lease(query, work)
            else:
                raise AssertionError("tasks of a cluster are given as data")

    def _lease(self, query: str, work: Leased) -> None:
        if work.statement is None:
            is_here = self._here.has_run(work.run)
        else:
            sent = self._send(work.statement)
            is_here = sent is None
            if sent is not None:
                work = Leased(work.run, work.width, work.output, sent)
        if is_here:
            self._here.add(query, work)
        else:
            self._runs.add(query, work)

    def execute(self, command: BackendCommand) -> None:
        with self._lock:
            match command:
                case Grant():
                    self._grant(command)
                case Revoke():
                    self._revoke(command)
                case Launch():
                    # Of a node that is gone the kernel has yet to hear.
                    if (link := self._links.get(command.node)) is not None:
                        self._launches.launch(command, link)
                case Kill():
                    self._launches.kill(command)
                case Scale():
                    self._scale(command.nodes)
                case Release():
                    self._release(command.node)

    def _grant(self, command: Grant) -> None:
        link = self._links.get(command.node)
        if link is None:
            return
        if self._here.has(command.job):
            self._here.grant(command)
        else:
            self._runs.grant(command, link)

    def _revoke(self, command: Revoke) -> None:
        link = self._links.get(command.node)
        if self._here.has(command.job):
            self._here.revoke(command)
        elif link is not None:
            self._runs.revoke(command, link)

    def _scale(self, wanted: int) -> None:
        """Take nodes into use again that were taken out of it; others join when they are there."""
        for link in self._members.want(wanted):
            self._links[link.name] = link
            link.told_suspect = False
            self._tell_node(NodeJoined(0.0, link.node))
        self._changed.notify_all()

    def _release(self, node: str) -> None:
        """Take a node out of use; it is idle."""
        link = self._links.pop(node, None)
        if link is not None:
            self._members.release(link)
            self._tell_node(NodeLost(0.0, node))

    def set_guarantee_unmet(self, unmet: bool) -> None:
        with self._lock:
            self._here.set_guarantee_unmet(unmet)
            for link in self._links.values():
                link.send(Unmet(unmet))

    def stop(self, query: str, error: BaseException) -> None:
        with self._lock:
            self._unwanted.add(query)
            self._changed.notify_all()
            self._here.stop(query, error)
            self._runs.stop(query, error)
            self._launches.stop(query, error)

    def forget(self, query: str) -> None:
        with self._lock:
            self._here.forget(query)
            self._runs.forget(query)
            self._launches.forget(query)
            self._usage.forget(query)
            self._unwanted.discard(query)

    def make_again(self, query: str, task: TaskId) -> None:
        """Run a task of a query once more, since its rows were lost before they were read.

        Returns when it has run, or may be tried again; raises if that would be in vain. If no node
        is there, it waits for one, as every query does.
        """
        over = threading.Event()
        errors: list[BaseException] = []

        def ended(error: BaseException | None) -> None:
            if error is not None:
                errors.append(error)
            over.set()

        with self._changed:
            self._changed.wait_for(lambda: self._links or self._closed or query in self._unwanted)
            if self._closed or query in self._unwanted:
                raise QueryCancelled("cancelled")
            # The first that answers; if none does, its loss is heard of.
            link = min(self._links.values(), key=lambda link: link.is_suspect)
            self._launches.make_again(query, task, link, ended)
        over.wait()
        for error in errors:
            if failure_kind(error) == "never":
                raise error

    # --- what nodes tell ----------------------------------------------------------------------

    def _hear(self, link: Link, events: Sequence[NodeEvent]) -> None:
        for each in events:
            defect = each.error if isinstance(each, WorkerFailed) else None
            if defect is None:
                try:
                    self._hear_one(link, each)
                except Exception as error:
                    defect = error
            if defect is not None:
                # What the node does from now on cannot be relied on. The others go on.
                link.give_up(f"{type(defect).__name__}: {defect}")
                return

    def _hear_one(self, link: Link, event: NodeEvent) -> None:
        if isinstance(event, RowsBegan | RowsCame | RowsEnded):
            with self._lock:
                run = self._runs.find(event.run)
                if run is None or run.link is not link or run.error is not None:
                    return
                # Under the lock: whether it can begin again is decided there as well.
                run.note_rows(event)
            try:
                run.hear_rows(event, link)
            except Exception as error:
                with self._lock:
                    self._runs.break_off(run, error)
            return
        with self._lock:
            if not self._members.has(link):
                return  # what a lost node still says counts no more
            if self._launches.hear(event) or link.name not in self._links:
                return  # out of use, it may still make again what a reader waits for
            if isinstance(event, QueryUsed) and self._knows(event.query):
                event = self._usage.summed(link.name, event)
            self._runs.hear(event)

    def _knows(self, query: str) -> bool:
        """Whether a query was not forgotten; a slot that was written off may tell of one later."""
        return self._runs.find(query) is not None or self._launches.has(query)

    def _failed(self, error: BaseException) -> None:
        if self._post is not None:
            self._post(WorkerFailed(error))

    # --- looking on, and the end --------------------------------------------------------------

    def reports(self) -> dict[str, NodeReport]:
        """What each node holds now, of those that answer soon."""
        return node_reports(self._cluster.ray, self._members.links())

    def notes(self) -> dict[str, NodeNote]:
        return self._notes.of(self._members.links())

    def report(self) -> BackendReport:
        return total_of(self._here.report(), self.reports().values())

    def close(self, timeout_s: float = 10.0) -> bool:
        deadline = time.monotonic() + timeout_s
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._here.cancel_all()
        stopped = self._members.close(max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._launches.close()
        stopped = self._workers.close(deadline) and stopped
        self._here.close()
        if self._ends is not None:
            self._ends()
        return stopped
