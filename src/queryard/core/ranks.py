"""The tree of pools at work: rankings of who is next, and who uses how much.

A leaf ranks its candidates by the key of its order, one ranking a lane (see `SlotSplit`). An
inner pool ranks its children: those below their guarantee first, then by use over weight.
Only what can use a slot stands in a ranking, so the next candidate is found at its head.
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from .entities import Candidate, NodeState, QueryState
from .parts import Key, PoolSpec, QueryOrder
from .state import State

Attempt = Callable[[Candidate, int, NodeState], bool]
# An order that changes with time is refreshed on a tick, but not before this share of its
# candidates was served (or is new), so that a refresh costs a constant for each decision.
REFRESH_SHARE = 0.5
# The cap of a pool without one.
UNLIMITED = sys.maxsize


class Ranking:
    """Numbers sorted by (key, number); a change costs a binary search.

    >>> ranking = Ranking()
    >>> ranking.put(1, 5.0); ranking.put(2, 3.0); ranking.put(1, 1.0)
    >>> ranking.entries
    [(1.0, 1), (3.0, 2)]
    """

    __slots__ = ("changes", "entries", "keys")

    def __init__(self) -> None:
        # Goes up whenever the head may be another.
        self.changes = 0
        self.entries: list[tuple[Key, int]] = []
        self.keys: dict[int, Key] = {}

    def put(self, uid: int, key: Key) -> None:
        old = self.keys.get(uid)
        if old is not None:
            if old == key:
                return
            del self.entries[bisect_left(self.entries, (old, uid))]
        self.changes += 1
        self.keys[uid] = key
        insort(self.entries, (key, uid))

    def drop(self, uid: int) -> None:
        self.changes += 1
        key = self.keys.pop(uid)
        del self.entries[bisect_left(self.entries, (key, uid))]

    def refill(self, keys: Iterable[tuple[int, Key]]) -> None:
        self.changes += 1
        self.keys = dict(keys)
        self.entries = sorted((key, uid) for uid, key in self.keys.items())

    def fork(self) -> Ranking:
        copy = Ranking()
        copy.entries = self.entries.copy()
        copy.keys = self.keys.copy()
        return copy


def needs_memory(query: QueryState) -> bool:
    """Whether a query must reserve memory before it may start."""
    return query.stage == "waiting" and query.spec.memory_bytes > 0


class Pool:
    """One pool with its use; `ready` counts, by lane, the candidates below it."""

    __slots__ = (
        "by_job",
        "by_size",
        "by_slots",
        "cap",
        "children",
        "drifts",
        "gates",
        "guarantee",
        "index",
        "lanes",
        "members",
        "names",
        "order",
        "parent",
        "path",
        "queries",
        "rankings",
        "ready",
        "refreshed_s",
        "rekeys",
        "served",
        "spec",
        "used",
        "weight",
    )

    def __init__(
        self, index: int, path: str, spec: PoolSpec, parent: Pool | None, lanes: int
    ) -> None:
        self.index = index
        self.path = path
        self.spec = spec
        self.parent = parent
        self.order: QueryOrder | None = spec.order.fork() if spec.order else None
        changes = spec.order.changes_with if spec.order else frozenset()
        self.by_job = spec.order is not None and spec.order.unit == "job"
        self.by_slots = "slots" in changes
        self.by_size = not changes.isdisjoint({"work", "size"})
        self.rekeys = bool(changes)
        self.drifts = "time" in changes
        self.names: dict[str, Pool] = {}
        self.children = Ranking()
        self.lanes = tuple(Ranking() for _ in range(lanes))
        # Those who must reserve memory before they may start stand apart: where the first
        # is refused, none behind it need be asked.
        self.gates = tuple(Ranking() for _ in range(lanes))
        self.rankings = self.lanes + self.gates
        self.members: dict[int, Candidate] = {}
        self.ready = [0] * lanes
        self.used = 0
        self.queries = 0
        self.weight = 1.0 if spec.weight == "queries" else float(spec.weight)
        self.served = 0
        self.refreshed_s = -math.inf
        self.cap = 0
        self.guarantee = 0

    def resize(self, slots: int) -> None:
        """Shares in whole slots; a pool that may run at all may use one."""
        capped = max(1, int(self.spec.cap * slots + 1e-9))
        self.cap = UNLIMITED if self.spec.cap == 1 else capped
        self.guarantee = int(self.spec.promised * slots + 1e-9)

    def count(self, queries: int) -> None:
        """Queries came or went; they may be what the pool weighs."""
        self.queries += queries
        if self.spec.weight == "queries":
            self.weight = float(max(1, self.queries))

    def key(self) -> float:
        """Below 0 while the guarantee is not met, else by use over weight."""
        used, guarantee = self.used, self.guarantee
        return used / guarantee - 1.0 if used < guarantee else used / self.weight

    def fork(self, parent: Pool | None) -> Pool:
        copy = Pool.__new__(Pool)
        copy.index = self.index
        copy.path = self.path
        copy.spec = self.spec
        copy.parent = parent
        copy.order = self.order.fork() if self.order else None
        copy.by_job = self.by_job
        copy.by_slots = self.by_slots
        copy.by_size = self.by_size
        copy.rekeys = self.rekeys
        copy.drifts = self.drifts
        copy.names = {}
        copy.children = self.children.fork()
        copy.lanes = tuple(ranking.fork() for ranking in self.lanes)
        copy.gates = tuple(ranking.fork() for ranking in self.gates)
        copy.rankings = copy.lanes + copy.gates
        copy.members = {}
        copy.ready = self.ready.copy()
        copy.used = self.used
        copy.queries = self.queries
        copy.weight = self.weight
        copy.served = self.served
        copy.refreshed_s = self.refreshed_s
        copy.cap = self.cap
        copy.guarantee = self.guarantee
        return copy


class PoolTree:
    """All pools of a policy; new tenants get theirs when they first appear."""

    def __init__(self, spec: PoolSpec, lanes: int, slots: int) -> None:
        self.lanes = lanes
        self.slots = slots
        # Set while slots are dealt out on trial: a lottery then goes by its odds as shares.
        self.dealing = False
        # Set by an attempt that failed for want of memory.
        self.refused = False
        self.pools: list[Pool] = []
        self.root = self._add("", spec, None)

    def _add(self, path: str, spec: PoolSpec, parent: Pool | None) -> Pool:
        pool = Pool(len(self.pools), path, spec, parent, self.lanes)
        pool.resize(self.slots)
        self.pools.append(pool)
        return pool

    def resize(self, slots: int, state: State) -> None:
        """There are more slots or fewer: other shares, and other sizes of queries."""
        self.slots = slots
        for pool in self.pools:
            pool.resize(slots)
            self._rerank(pool)
            if pool.by_size:
                for candidate in list(pool.members.values()):
                    self.rekey(pool, candidate, state)

    def _rerank(self, pool: Pool) -> None:
        parent = pool.parent
        if parent is not None and pool.index in parent.children.keys:
            parent.children.put(pool.index, pool.key())

    # --- members ---------------------------------------------------------------------------

    def enter(self, query: QueryState) -> Pool:
        """Find (or make) the leaf of a new query."""
        pool = self.root
        pool.count(1)
        while pool.order is None:
            name, spec = pool.spec.route(query)
            child = pool.names.get(name)
            if child is None:
                path = f"{pool.path}/{name}" if pool.path else name
                child = pool.names[name] = self._add(path, spec, pool)
            pool = child
            pool.count(1)
            self._rerank(pool)
        query.pool = pool.index
        return pool

    def leave(self, query: QueryState) -> None:
        pool: Pool | None = self.pools[query.pool]
        while pool is not None:
            pool.count(-1)
            self._rerank(pool)
            pool = pool.parent

    def put(self, leaf: Pool, lane: int, candidate: Candidate, state: State) -> None:
        """A candidate can use a slot of this lane."""
        assert leaf.order is not None
        leaf.members[candidate.uid] = candidate
        leaf.served += 1  # somebody new makes a refresh due as much as a decision does
        gated = needs_memory(candidate.query)
        ranking = leaf.gates[lane] if gated else leaf.lanes[lane]
        ranking.put(candidate.uid, leaf.order.key(candidate, state))
        pool: Pool | None = leaf
        while pool is not None:
            pool.ready[lane] += 1
            parent = pool.parent
            if parent is not None and pool.index not in parent.children.keys:
                if len(parent.children.keys) == 1:
                    self._rerank(self.pools[next(iter(parent.children.keys))])
                parent.children.put(pool.index, pool.key())
            pool = parent

    def drop(self, leaf: Pool, lane: int, candidate: Candidate) -> None:
        """A candidate cannot use a slot of this lane any more."""
        uid = candidate.uid
        (leaf.lanes if uid in leaf.lanes[lane].keys else leaf.gates)[lane].drop(uid)
        if not any(uid in ranking.keys for ranking in leaf.rankings):
            del leaf.members[uid]
        pool: Pool | None = leaf
        while pool is not None:
            pool.ready[lane] -= 1
            parent = pool.parent
            if parent is not None and not any(pool.ready):
                parent.children.drop(pool.index)
            pool = parent

    def open_gate(self, query: QueryState) -> None:
        """The query has reserved its memory."""
        leaf = self.pools[query.pool]
        uids = [job.uid for job in query.jobs] if leaf.by_job else [query.uid]
        for ranking, gate in zip(leaf.lanes, leaf.gates, strict=True):
            for uid in uids:
                key = gate.keys.get(uid)
                if key is not None:
                    gate.drop(uid)
                    ranking.put(uid, key)

    def rekey(self, leaf: Pool, candidate: Candidate, state: State) -> None:
        """Something the candidate's key depends on has changed."""
        uid = candidate.uid
        if uid in leaf.members:
            key = leaf.order.key(candidate, state)  # type: ignore[union-attr]
            for ranking in leaf.rankings:
                if uid in ranking.keys:
                    ranking.put(uid, key)

    @staticmethod
    def _due(leaf: Pool, state: State) -> bool:
        if state.now - leaf.refreshed_s < state.settings.tick_s:
            return False
        return leaf.served + 1 >= len(leaf.members) * REFRESH_SHARE

    def refresh_due(self, state: State) -> None:
        """Refresh the leaves whose order has drifted for a tick and has no times of its own."""
        for pool in self.pools:
            drifts = pool.drifts and pool.order is not None and not pool.order.is_timed
            if drifts and pool.members and self._due(pool, state):
                self.refresh(pool, state)

    def refresh(self, leaf: Pool, state: State) -> None:
        """Compute all keys of a leaf anew."""
        order = leaf.order
        assert order is not None
        leaf.served = 0
        leaf.refreshed_s = state.now
        members = leaf.members
        order.prepare(members.values(), state)
        keys = {uid: order.key(candidate, state) for uid, candidate in members.items()}
        for ranking in leaf.rankings:
            ranking.refill([(uid, keys[uid]) for uid in ranking.keys])

    # --- use -------------------------------------------------------------------------------

    def charge(self, index: int, slots: int) -> None:
        """Slots of a leaf came into use (or, negative, were given back)."""
        pool = self.pools[index]
        pool.used += slots
        parent = pool.parent
        while parent is not None:
            # An only child needs no rank; it gets one when another joins it.
            children = parent.children
            if len(children.keys) > 1 and index in children.keys:
                children.put(index, pool.key())
            pool = parent
            pool.used += slots
            index = pool.index
            parent = pool.parent

    # --- who is next -----------------------------------------------------------------------

    def serve(self, pool: Pool, lane: int, node: NodeState, attempt: Attempt, state: State) -> bool:
        """Offer a free slot down the tree until somebody takes it."""
        if pool.used >= pool.cap:
            return False
        if pool.order is not None:
            if pool.drifts and not self.dealing and self._due(pool, state):
                self.refresh(pool, state)
            members = pool.members
            if pool.gates[lane].entries:
                return self._serve_gated(pool, lane, node, attempt)
            for _, uid in pool.lanes[lane].entries:  # noqa: SIM110 - any() is slower here
                if attempt(members[uid], lane, node):
                    return True
            return False
        if pool.spec.choice == "lottery" and not self.dealing and len(pool.children.keys) > 1:
            turns = self._draw(pool, state)
        else:
            turns = pool.children.entries
        pools = self.pools
        for _, index in turns:
            child = pools[index]
            if child.ready[lane] and self.serve(child, lane, node, attempt, state):
                return True
        return False

    def _serve_gated(self, pool: Pool, lane: int, node: NodeState, attempt: Attempt) -> bool:
        """Ask in order, but nobody who needs memory after one of them was refused it."""
        free, gated = pool.lanes[lane].entries, pool.gates[lane].entries
        i = j = 0
        while i < len(free) or j < len(gated):
            at_gate = j < len(gated) and (i == len(free) or gated[j] < free[i])
            uid = gated[j][1] if at_gate else free[i][1]
            i, j = (i, j + 1) if at_gate else (i + 1, j)
            self.refused = False
            if attempt(pool.members[uid], lane, node):
                return True
            if self.refused:
                j = len(gated)
        return False

    def _draw(self, pool: Pool, state: State) -> list[tuple[Key, int]]:
        """Children below their guarantee first, then in an order drawn by weight.

        The largest of u^(1/w) comes first.
        """
        turns: list[tuple[Key, int]] = []
        for index in sorted(index for _, index in pool.children.entries):
            child = self.pools[index]
            drawn = state.random.random() ** (1.0 / child.weight)
            turns.append((-1.0 - drawn if child.used < child.guarantee else -drawn, index))
        return sorted(turns)

    def fork(self, state: State) -> PoolTree:
        copy = PoolTree.__new__(PoolTree)
        copy.lanes = self.lanes
        copy.slots = self.slots
        copy.dealing = False
        copy.refused = False
        copy.pools = []
        for pool in self.pools:
            parent = copy.pools[pool.parent.index] if pool.parent else None
            copy.pools.append(pool.fork(parent))
        for pool, twin in zip(self.pools, copy.pools, strict=True):
            twin.names = {name: copy.pools[child.index] for name, child in pool.names.items()}
        copy.root = copy.pools[0]
        for query in state.queries.values():
            if not any(query.runnable):
                continue
            leaf = copy.pools[query.pool]
            assert leaf.order is not None
            if leaf.order.unit == "query":
                leaf.members[query.uid] = query
            else:
                for jobs in query.runnable:
                    leaf.members.update((job.uid, job) for job in jobs)
        return copy
