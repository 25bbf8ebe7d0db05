"""Memory is reserved before a query starts: which query may reserve it now.

It is given out in the order of the leaf, and memory is kept for the query that was refused
first, so a large query is not passed by small ones for ever. What a node keeps for small queries
is not kept for it: these wait for one another only.
"""

from __future__ import annotations

from .entities import QueryState
from .nodes import NodeState
from .ranks import PoolTree
from .state import State


class Admission:
    """Remembers the query that waits for memory."""

    def __init__(self, state: State, tree: PoolTree, waiter: str = "") -> None:
        self.waiter = waiter
        self._state = state
        self._tree = tree

    def admits(self, query: QueryState, lane: int, node: NodeState) -> bool:
        """Whether a query may reserve its memory now, on this node if it lives on one host.

        A refusal is noted in the tree. A query that needs more than there is (nodes were lost)
        holds up no query.
        """
        state = self._state
        if state.paused_by is not None:
            return False
        if self._has_room(query, lane, node.host):
            return True
        if query.memory_bytes <= state.room_bytes(query):
            # What is kept for small queries may still do for them.
            self._tree.refused_above = state.most_small_bytes if state.spares(query) else 0.0
        return False

    def is_open_to(self, query: QueryState, host: str = "") -> bool:
        """Whether only a slot keeps a query from starting, wherever it stands in its leaf; on the
        host, if one is given.
        """
        waiter = self.waiting()
        if waiter is None or waiter is query or self.may_pass(query, waiter):
            return self._state.fits(query, host=host)
        return self._state.fits(query, waiter, host)

    def _has_room(self, query: QueryState, lane: int, host: str) -> bool:
        state = self._state
        demand = query.memory_bytes
        if not demand:
            return True
        waiter = self.waiting()
        if waiter is not None and waiter is not query and not self._overtakes(query, waiter, lane):
            if self.may_pass(query, waiter):
                return state.fits(query, host=host)
            return state.fits(query, waiter, host)
        if state.fits(query, host=host):
            return True
        if demand <= state.room_bytes(query):
            self.waiter = query.id
        return False

    def may_pass(self, query: QueryState, waiter: QueryState) -> bool:
        """Whether a small query can have of what is kept for its like, and the waiter cannot."""
        state, demand = self._state, query.memory_bytes
        is_left = state.small_bytes + demand <= state.kept_bytes
        return state.is_small(demand) and state.spares(waiter) and is_left

    def waiting(self) -> QueryState | None:
        """The query for which memory is kept, if it still waits and could start with it."""
        waiter = self._state.queries.get(self.waiter)
        if waiter is None or waiter.stage != "waiting" or not any(waiter.runnable):
            return None
        return waiter if 0 < waiter.memory_bytes <= self._state.room_bytes(waiter) else None

    def _overtakes(self, query: QueryState, waiter: QueryState, lane: int) -> bool:
        """Whether the order of their common leaf now puts the query before the waiter."""
        leaf = self._tree.pools[query.pool]
        state = self._state
        own, other = leaf.place(query, lane, state), leaf.place(waiter, lane, state)
        return own is not None and other is not None and own < other
