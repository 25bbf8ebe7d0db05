"""The tree of pools at work: rankings of candidates, and how many slots each pool uses.

A leaf ranks its candidates by the key of its order, one ranking per lane (see `SlotSplit`). An
inner pool ranks its children: those below their guarantee first, then by use over weight; or
they take turns (`turns`), or are drawn by lot (`lots`).
Only what can use a slot stands in a ranking, so the next candidate is found at its head.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from . import lots, turns
from .entities import Candidate, QueryState
from .model import UNBOUNDED
from .nodes import NodeState
from .policy import PoolSpec
from .pools import Pool, needs_memory
from .state import State

# An order that changes with time is refreshed on a tick, but not before this share of its
# candidates was served (or is new), so that a refresh costs a constant for each decision.
REFRESH_SHARE = 0.5
# The number of pools that are kept although no query is in them.
KEPT = 64


class PoolTree:
    """All pools of a policy; new tenants get theirs when they first appear."""

    def __init__(self, spec: PoolSpec, lanes: int, slots: int, now: float = 0.0) -> None:
        self.lanes = lanes
        self.slots = slots
        # Set while slots are dealt out on trial: a lottery then goes by what was drawn before.
        self.dealing = False
        # Set in a deal among queries with speed-up curves: gives a slot to a candidate of a leaf.
        self.fits: Callable[[Pool, int, NodeState], bool] | None = None
        # Set by an attempt that failed for want of memory: what needs more need not ask either.
        self.refused_above = UNBOUNDED
        # Up to when the use of slots is entered, and how soon a turn may end: see `turns`.
        self.elapsed_s = now
        self.contended_s = math.inf
        # How many slots were busy after the last decision, where a lone leaf is not metered.
        self.busy_slots = 0
        self._keeps_time = spec.keeps_time
        # Whether there is a lottery, and whether lots decide over leased slots now: see `lots`.
        self.draws_lots = spec.draws_lots
        self.has_lots = False
        # By index; parents come before their children.
        self.pools: dict[int, Pool] = {}
        self._next_index = 0
        # When there are more, those without queries are forgotten.
        self._most = KEPT
        self.root = self._add("", spec, None)

    def _add(self, path: str, spec: PoolSpec, parent: Pool | None) -> Pool:
        pool = Pool(self._next_index, path, spec, parent, self.lanes)
        pool.resize(self.slots)
        self.pools[pool.index] = pool
        self._next_index += 1
        return pool

    def resize(self, slots: int, state: State) -> None:
        """There are more slots or fewer: other shares, and other sizes of queries."""
        self.slots = slots
        for pool in self.pools.values():
            pool.resize(slots)
            self._rerank(pool)
            if pool.by_size:
                for candidate in list(pool.members.values()):
                    self.rekey(pool, candidate, state)

    def _rerank(self, pool: Pool) -> None:
        parent = pool.parent
        if parent is not None and pool.index in parent.children.keys:
            parent.children.put(pool.index, pool.key())

    def take_over(self, before: PoolTree, state: State) -> None:
        """Let pools of the same paths go on with what was seen there; after all have entered."""
        known = {pool.path: pool for pool in before.pools.values()}
        for pool in self.pools.values():
            then = known.get(pool.path)
            if then is None:
                continue
            if pool.takes_turns and then.takes_turns:
                pool.virtual_s, pool.waits = then.virtual_s, then.waits
            if pool.order is not None and type(pool.order) is type(then.order):
                pool.order.take_over(then.order, state)

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

    def forget(self) -> bool:
        """If there are many, forget pools of tenants without queries; whether any was."""
        if len(self.pools) <= self._most:
            return False
        before = len(self.pools)
        for pool in reversed(list(self.pools.values())):
            parent = pool.parent
            if parent is None or pool.queries or pool.used or pool.names:
                continue
            name = pool.path.rpartition("/")[2]
            # One that takes turns and is ahead of the others must not come back with a new clock.
            if name in parent.spec.children or (pool.takes_turns and _is_ahead(pool, parent)):
                continue
            del self.pools[pool.index]
            del parent.names[name]
        self._most = max(KEPT, 2 * len(self.pools))
        return len(self.pools) < before

    def put(self, leaf: Pool, lane: int, candidate: Candidate, state: State) -> None:
        """A candidate can use a slot of this lane."""
        assert leaf.order is not None
        leaf.members[candidate.uid] = candidate
        leaf.served += 1  # a new candidate makes a refresh due as much as a decision does
        gated = needs_memory(candidate.query)
        key = leaf.order.key(candidate, state)
        hosts = leaf.hosts_of(candidate, lane) if state.apart and not gated else ()
        if hosts:
            leaf.put_apart(candidate.uid, lane, hosts, key)
        else:
            (leaf.gates if gated else leaf.lanes)[lane].put(candidate.uid, key)
        pool: Pool | None = leaf
        while pool is not None:
            pool.ready[lane] += 1
            pool.gated += gated
            parent = pool.parent
            if parent is not None and pool.index not in parent.children.keys:
                if len(parent.children.keys) == 1:
                    self._rerank(self.pools[next(iter(parent.children.keys))])
                parent.children.put(pool.index, pool.key())
            elif pool.takes_turns:  # another query may be next there
                self._rerank(pool)
            pool = parent

    def drop(self, leaf: Pool, lane: int, candidate: Candidate) -> None:
        """A candidate cannot use a slot of this lane any more."""
        uid = candidate.uid
        gated = False
        if not (leaf.homes and leaf.drop_apart(uid, lane)):
            gated = uid not in leaf.lanes[lane].keys
            (leaf.gates if gated else leaf.lanes)[lane].drop(uid)
        if not any(uid in ranking.keys for ranking in leaf.rankings) and not (
            leaf.homes and leaf.stands_apart(uid)
        ):
            del leaf.members[uid]
            leaf.order.left(uid)  # type: ignore[union-attr]
        pool: Pool | None = leaf
        while pool is not None:
            pool.ready[lane] -= 1
            pool.gated -= gated
            parent = pool.parent
            if parent is not None and not any(pool.ready):
                parent.children.drop(pool.index)
            elif pool.takes_turns:
                self._rerank(pool)
            pool = parent

    def place(self, leaf: Pool, lane: int, candidate: Candidate, state: State) -> bool:
        """A candidate may use slots of other hosts than before; whether it does."""
        uid = candidate.uid
        gated = needs_memory(candidate.query)
        hosts = leaf.hosts_of(candidate, lane) if state.apart and not gated else ()
        if hosts == leaf.homes.get((uid, lane), ()):
            return False
        assert leaf.order is not None
        key = leaf.order.key(candidate, state)
        if not leaf.drop_apart(uid, lane):
            leaf.lanes[lane].drop(uid)
        if hosts:
            leaf.put_apart(uid, lane, hosts, key)
        elif gated:
            leaf.gates[lane].put(uid, key)
            self._gate(leaf, 1)
        else:
            leaf.lanes[lane].put(uid, key)
        return True

    def regate(self, query: QueryState) -> None:
        """The query has reserved its memory, or needs more or less of it than before."""
        leaf = self.pools[query.pool]
        to_gate = needs_memory(query)
        for lane, (ranking, gate) in enumerate(zip(leaf.lanes, leaf.gates, strict=True)):
            leave, enter = (ranking, gate) if to_gate else (gate, ranking)
            for uid in leaf.uids(query):
                key = leave.keys.get(uid)
                # One that stands by its hosts is moved when its jobs are looked at (`place`).
                if key is not None and (uid, lane) not in leaf.homes:
                    leave.drop(uid)
                    enter.put(uid, key)
                    self._gate(leaf, 1 if to_gate else -1)

    @staticmethod
    def _gate(pool: Pool | None, candidates: int) -> None:
        while pool is not None:
            pool.gated += candidates
            pool = pool.parent

    def rekey(self, leaf: Pool, candidate: Candidate, state: State) -> None:
        """Something the candidate's key depends on has changed."""
        uid = candidate.uid
        if uid in leaf.members:
            key = leaf.order.key(candidate, state)  # type: ignore[union-attr]
            for ranking in leaf.rankings:
                if uid in ranking.keys:
                    ranking.put(uid, key)
            if leaf.homes:
                leaf.rerank_apart(uid, key)

    @staticmethod
    def is_due(leaf: Pool, state: State) -> bool:
        """Whether the keys of an order that drifts are to be computed anew."""
        if state.now - leaf.refreshed_s < state.settings.tick_s:
            return False
        return leaf.served + 1 >= len(leaf.members) * REFRESH_SHARE

    def refresh_due(self, state: State) -> None:
        """Refresh leaves of which the order has drifted for a tick and has no times of its own."""
        for pool in self.pools.values():
            drifts = pool.drifts and pool.order is not None and not pool.order.is_timed
            if drifts and pool.members and self.is_due(pool, state):
                self.refresh(pool, state)

    def refresh(self, leaf: Pool, state: State) -> None:
        """Compute all keys of a leaf anew."""
        order = leaf.order
        assert order is not None
        leaf.served = 0
        leaf.refreshed_s = state.now
        members = leaf.members
        order.prepare(members.values(), state)
        leaf.refill({uid: order.key(candidate, state) for uid, candidate in members.items()})

    # --- time ------------------------------------------------------------------------------

    @property
    def keeps_time(self) -> bool:
        """Whether an order or a pool goes by the time that passes between two decisions."""
        return self._keeps_time

    def elapse(self, state: State) -> None:
        """Enter what the time since the last decision was used for, as it was then."""
        seconds = state.now - self.elapsed_s
        if seconds <= 0:
            return
        self.elapsed_s = state.now
        for pool in self.pools.values():
            if pool.takes_turns:
                pool.virtual_s += pool.used * seconds * pool.rate
            if pool.order is not None and pool.order.keeps_time:
                slots = pool.used if pool.parent else self.busy_slots
                for uid in pool.order.elapse(seconds, slots, pool.queries, state):
                    if uid in pool.members:
                        self.rekey(pool, pool.members[uid], state)

    def take_turns(self, admits: Callable[[QueryState], bool], state: State) -> None:
        """Say which child is next, now that the events have changed what waits and what is used."""

        def wants_turn(pool: Pool) -> bool:
            """Whether a query could use a slot; one that waits for memory waits for no turn."""
            if sum(pool.ready) > pool.gated:
                return True
            if pool.order is None:
                return any(wants_turn(self.pools[index]) for index in pool.children.keys)
            gates = (iter(pool.turns(gate, state)) for gate in pool.gates if gate.keys)
            return any(admits(pool.members[next(gate)[1]].query) for gate in gates)

        self.contended_s = math.inf
        for pool in self.pools.values():
            if pool.spec.choice != "turns":
                continue
            children = list(pool.names.values())
            if turns.settle(pool, children, self.slots, wants_turn):
                self.contended_s = min(self.contended_s, pool.spec.quantum_s)
            ranked = pool.children.keys
            if len(ranked) > 1:
                pool.children.refill([(c.index, c.key()) for c in children if c.index in ranked])

    def draw_lots(self, state: State) -> None:
        """Draw how many of the leased slots each child of a lottery has, once per quantum."""
        if not self._keeps_time:
            self.contended_s = math.inf
        # The last lease may be on its way from one job to another.
        leases = state.leaseholders or any(job.map is None for job in state.jobs.values())
        self.has_lots = False
        for pool in self.pools.values():
            if pool.spec.choice != "lottery":
                continue
            if leases and lots.draw(pool, self.slots, state):
                self.contended_s = min(self.contended_s, pool.spec.quantum_s)
                self.has_lots = True
            else:
                pool.reset_lots(self.slots)
            for child in pool.names.values():
                self._rerank(child)

    def hold(self, is_deal: bool) -> None:
        """A deal begins, before which children that take turns held what they use; or it ends."""
        self.dealing = is_deal
        for pool in self.pools.values():
            pool.held = pool.used if is_deal else 0

    # --- use -------------------------------------------------------------------------------

    def room(self, index: int) -> float:
        """How many slots more a leaf may use, within the caps of all pools above it."""
        pool: Pool | None = self.pools[index]
        found = math.inf
        while pool is not None:
            found = min(found, pool.cap - pool.used)
            pool = pool.parent
        return max(0.0, found)

    def charge(self, index: int, slots: float) -> None:
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

    # --- copies ----------------------------------------------------------------------------

    def fork(self, state: State) -> PoolTree:
        copy = PoolTree.__new__(PoolTree)
        copy.lanes = self.lanes
        copy.slots = self.slots
        copy.dealing = False
        copy.fits = None
        copy.refused_above = UNBOUNDED
        copy.elapsed_s = self.elapsed_s
        copy.contended_s = self.contended_s
        copy.busy_slots = self.busy_slots
        copy._keeps_time = self._keeps_time
        copy.draws_lots = self.draws_lots
        copy.has_lots = self.has_lots
        copy._next_index = self._next_index
        copy._most = self._most
        copy.pools = {}
        for index, pool in self.pools.items():
            parent = copy.pools[pool.parent.index] if pool.parent else None
            copy.pools[index] = pool.fork(parent)
        for index, pool in self.pools.items():
            names = {name: copy.pools[child.index] for name, child in pool.names.items()}
            copy.pools[index].names = names
        copy.root = copy.pools[self.root.index]
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


def _is_ahead(pool: Pool, parent: Pool) -> bool:
    """Whether a child that takes turns has had more than those that are there, or than all."""
    present = [child.virtual_s for child in parent.names.values() if child.queries]
    if present:
        return pool.virtual_s > min(present)
    return pool.virtual_s >= max(child.virtual_s for child in parent.names.values())
