"""This machine as a cluster: a slot is a thread.

Native queries are served by as many slots as the kernel grants; tasks of staged queries run one per
slot. All that happens is posted as an event; the loop sets its time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from queryard.backends.protocol import (
    BackendCommand,
    BackendReport,
    Leased,
    NodeNote,
    Post,
    Spread,
    Staged,
    Work,
    WorkerFailed,
)
from queryard.backends.workers import Workers
from queryard.core.commands import Grant, Kill, Launch, Release, Revoke, Scale
from queryard.core.model import Node
from queryard.engine.capi import library
from queryard.engine.threads import CoreSpread

from .leases import Engine, LocalLeases
from .nodes import LocalNodes
from .tasks import LocalTasks


class LocalBackend:
    """Slots of this process, on nodes that stand for groups of them."""

    def __init__(self, engine: Engine, nodes: Sequence[Node]) -> None:
        self._nodes = LocalNodes(nodes)
        spread = CoreSpread(self._nodes.slots)
        self._workers = Workers(self._failed, spread)
        first = next(iter(nodes)).id
        self._leases = LocalLeases(engine, self._workers.start, self._nodes.slots, first, spread)
        self._tasks = LocalTasks(self._workers.start, self._nodes.speed)
        self._post: Post | None = None

    @property
    def slots(self) -> int:
        return self._nodes.slots

    @property
    def width(self) -> int:
        # Where threads cannot be lent, one slot runs a whole statement.
        return self.slots if library().leases else 1

    def start(self, post: Post) -> None:
        self._post = post
        self._leases.begin(post)
        self._tasks.begin(post)
        self._nodes.join_all(post)

    def add(self, query: str, work: Work) -> None:
        match work:
            case Leased():
                self._leases.add(query, work)
            case Staged():
                self._tasks.add(query, work.tasks)
            case Spread():
                raise AssertionError("tasks of this process are given as they are")

    def execute(self, command: BackendCommand) -> None:
        assert self._post is not None, "start comes first"
        match command:
            case Grant():
                self._leases.grant(command)
            case Revoke():
                self._leases.revoke(command)
            case Launch():
                self._tasks.launch(command)
            case Kill():
                self._tasks.kill(command)
            case Scale():
                self._nodes.scale(command.nodes, self._post)
            case Release():
                self._nodes.release(command.node, self._post)

    def set_guarantee_unmet(self, unmet: bool) -> None:
        self._leases.guarantee_unmet = unmet

    def stop(self, query: str, error: BaseException) -> None:
        self._leases.stop(query, error)
        self._tasks.stop(query, error)

    def forget(self, query: str) -> None:
        self._leases.forget(query)
        self._tasks.forget(query)

    def _failed(self, error: BaseException) -> None:
        if self._post is not None:
            self._post(WorkerFailed(error))

    def report(self) -> BackendReport:
        return self._leases.report()

    def notes(self) -> Mapping[str, NodeNote]:
        return {}

    @property
    def refused(self) -> tuple[str, ...]:
        return ()

    def close(self, timeout_s: float = 10.0) -> bool:
        deadline = time.monotonic() + timeout_s
        self._leases.cancel_all()
        self._tasks.cancel_all()
        stopped = self._workers.close(deadline)
        self._leases.close()
        return stopped
