"""Nodes at which work fails that succeeds elsewhere get no work for a while.

Only success elsewhere tells that a node was to blame: a query of which a file is missing fails
everywhere. Queries count, not attempts: what one of them meets may be peculiar to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from queryard.core.state import State

# A node rests after so many different queries in a row; one more, and it rests again.
MOST_FAILED = 3
REST_S = 60.0
# How early the clock may ring.
EARLY_S = 0.01


class Rest(NamedTuple):
    """Until when a node gets no work, and why."""

    until_s: float
    reason: str


class NodeHealth:
    """Changed by the coordinator alone; `state` is the kernel's."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._nodes: set[str] = set()
        # What nodes do not answer, as the backend says.
        self._silent: set[str] = set()
        self._resting: dict[str, Rest] = {}
        # Node -> the queries that failed there in a row and have succeeded elsewhere.
        self._blamed: dict[str, dict[str, None]] = {}
        # Query -> node -> its last error there.
        self._errors: dict[str, dict[str, str]] = {}

    def failed(self, query: str, node: str, error: str) -> None:
        """Work of a query has failed at a node, which may be why."""
        self._errors.setdefault(query, {})[node] = error

    def succeeded(self, query: str, node: str, failed_at: Iterable[str], now: float) -> list[str]:
        """Work has ended well at a node that failed at others before; which of them rest now."""
        if node not in self._resting:
            self._blamed.pop(node, None)
        return [name for name in failed_at if self._blame(name, query, now)]

    def _blame(self, node: str, query: str, now: float) -> bool:
        error = self._errors.get(query, {}).get(node)
        if error is None or node not in self._nodes or node in self._resting:
            return False
        blamed = self._blamed.setdefault(node, {})
        blamed[query] = None
        if len(blamed) < MOST_FAILED or not self._is_another_there(node):
            return False
        while len(blamed) >= MOST_FAILED:
            del blamed[next(iter(blamed))]
        reason = f"queries failed there, and succeeded elsewhere; the last with: {error}"
        self._resting[node] = Rest(now + REST_S, reason)
        return True

    def _is_another_there(self, node: str) -> bool:
        return any(
            not other.draining and other.id not in self._resting and other.id != node
            for other in self._state.nodes.values()
        )

    def forget(self, query: str) -> None:
        """A query has ended."""
        self._errors.pop(query, None)

    def heard(self, node: str, silent: bool) -> bool:
        """The backend says whether a node answers; whether it is to get no work."""
        (self._silent.add if silent else self._silent.discard)(node)
        return silent or node in self._resting

    def joined(self, node: str) -> None:
        """A node is there, and healthy for all that is known."""
        self._nodes.add(node)

    def lost(self, node: str) -> None:
        """A node is gone, maybe sooner than the kernel knows."""
        self._nodes.discard(node)
        self._silent.discard(node)
        self._resting.pop(node, None)
        self._blamed.pop(node, None)

    def rested(self, now: float) -> list[str]:
        """Nodes that get work again, of those that have rested; all, if there are no others."""
        none_left = not self._state.total_slots
        over = [
            node
            for node, rest in self._resting.items()
            if none_left or rest.until_s <= now + EARLY_S
        ]
        for node in over:
            del self._resting[node]
        return [node for node in over if node not in self._silent]

    def is_silent(self, node: str) -> bool:
        """Whether the backend says that it does not answer."""
        return node in self._silent

    def resting(self, node: str, now: float) -> str:
        """For how long and why a node gets no work; "" if it is not so."""
        rest = self._resting.get(node)
        return "" if rest is None else f"for {max(0.0, rest.until_s - now):.0f} s: {rest.reason}"
