"""The launches of a query's tasks at one node, and the DuckDB instance that they share.

The first task opens the instance, with memory that the pool lends until the query ends. No earlier:
the kernel reserves the query's memory when it launches the first task.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import NamedTuple

from queryard.engine.errors import QueryCancelled
from queryard.engine.instances.pool import InstancePool

from .cancellation import Cancellation
from .node import StagedNode

OpenNode = Callable[[ExitStack, int], StagedNode]
"""Opens an instance with so many bytes, and as many for rows; what it opens is on the stack."""


class _Opened(NamedTuple):
    node: StagedNode
    to_close: ExitStack


class Launched:
    """What runs now, how it is stopped, and where it runs; any thread may call any method."""

    def __init__(self, pool: InstancePool, memory_bytes: int, open_node: OpenNode) -> None:
        """`memory_bytes` is what the query may use at the node."""
        self._pool = pool
        self._memory_bytes = memory_bytes
        self._open_node = open_node
        self._lock = threading.Lock()
        # Held while the instance is opened: the pool may have to wait for memory, and launches can
        # be stopped meanwhile.
        self._opening = threading.Lock()
        self._closed = False
        self._open: _Opened | None = None
        self._launches: dict[int, Cancellation] = {}

    def node(self) -> StagedNode:
        """The node side of the query; raises `QueryCancelled` once it is cancelled or closed."""
        with self._opening:
            with self._lock:
                self._check_open()
                if self._open is not None:
                    return self._open.node
            with ExitStack() as opening:
                self._pool.lend(self._memory_bytes)
                opening.callback(self._pool.take_back, self._memory_bytes)
                # Half for the statements, half for the rows that pass between them.
                node = self._open_node(opening, self._memory_bytes // 2)
                with self._lock:
                    self._check_open()
                    self._open = _Opened(node, opening.pop_all())
                    return node

    def _check_open(self) -> None:
        if self._closed:
            raise QueryCancelled("cancelled")

    def cancellation(self, launch: int) -> Cancellation:
        """What stops the task of one launch; it is stopped already if the query is cancelled."""
        with self._lock:
            found = self._launches.setdefault(launch, Cancellation())
            is_closed = self._closed
        if is_closed:
            found.ask()
        return found

    def over(self, launch: int) -> None:
        """A launch has ended."""
        with self._lock:
            self._launches.pop(launch, None)

    def kill(self, launch: int) -> None:
        """Stop the task of one launch; returns when it has stopped."""
        self.cancellation(launch).stop(QueryCancelled("killed"))

    def cancel(self) -> None:
        """Stop all tasks, and let none begin."""
        with self._lock:
            self._closed = True
            opened = self._open
            launches = list(self._launches.values())
        for each in launches:
            each.ask()  # also those that wait for maps
        if opened is not None:
            opened.node.cancel()

    def close(self) -> None:
        """Free everything, once no task runs."""
        with self._lock:
            self._closed = True
            opened, self._open = self._open, None
        if opened is not None:
            opened.to_close.close()
