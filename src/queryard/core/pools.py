"""One pool: its share, the candidates that wait in it, and the rankings they stand in."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from heapq import merge
from typing import Any

from .apportion import ROUNDING, apportion
from .entities import Candidate, JobState, QueryState
from .lines import Moving
from .nodes import NodeState
from .parts import QueryOrder
from .policy import PoolSpec
from .rankings import Key, Ranking
from .state import State

# The cap of a pool without one.
UNLIMITED = sys.maxsize


def needs_memory(query: QueryState) -> bool:
    """Whether a query must reserve memory before it may start."""
    return query.stage == "waiting" and query.memory_bytes > 0


class Pool:
    """One pool with its use; `ready` counts, by lane, the candidates below it."""

    __slots__ = (
        "among",
        "apart",
        "by_job",
        "by_size",
        "by_slots",
        "cap",
        "child_caps",
        "children",
        "drawn_s",
        "drifts",
        "gated",
        "gates",
        "guarantee",
        "held",
        "homes",
        "index",
        "lanes",
        "lead_rate",
        "lot",
        "members",
        "moves",
        "names",
        "order",
        "parent",
        "path",
        "queries",
        "rankings",
        "rate",
        "ready",
        "refreshed_s",
        "rekeys",
        "rotates",
        "served",
        "share",
        "spec",
        "takes_turns",
        "used",
        "virtual_s",
        "waits",
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
        make = self.order.ranking if self.order is not None else Ranking
        self.lanes = tuple(make() for _ in range(lanes))
        # Whether the order follows the clock by itself (see `lines`), or is refreshed for that.
        self.moves = isinstance(self.lanes[0], Moving)
        self.drifts = "time" in changes and not self.moves
        self.rotates = "leased" in changes
        self.names: dict[str, Pool] = {}
        self.children = Ranking()
        # Candidates that must reserve memory before they may start stand apart: where the first
        # is refused, none behind it need be asked.
        self.gates = tuple(make() for _ in range(lanes))
        self.rankings = self.lanes + self.gates
        # Host -> rankings, by lane, of candidates with jobs that can use its slots only; and
        # (candidate, lane) -> the hosts by which it stands there (see `hosts_of`).
        self.apart: dict[str, tuple[Ranking, ...]] = {}
        self.homes: dict[tuple[int, int], tuple[str, ...]] = {}
        self.members: dict[int, Candidate] = {}
        self.ready = [0] * lanes
        # How many of those, in all lanes, stand at a gate.
        self.gated = 0
        # Slots, and parts of those on which queries of several pools ride.
        self.used: float = 0
        self.queries = 0
        self.weight = 1.0 if spec.weight == "queries" else float(spec.weight)
        self.served = 0
        self.refreshed_s = -math.inf
        self.cap = 0
        self.child_caps: dict[str, int] = {}
        self.guarantee = 0
        # For children that draw lots, see `lots`: the last lot, and when it was drawn.
        self.lot = 0.0
        self.drawn_s = -math.inf
        # For children that take turns, see `turns`.
        self.takes_turns = parent is not None and parent.spec.choice == "turns"
        self.share = 1.0
        # What its children's shares were computed for.
        self.among: tuple[Any, ...] = ()
        self.rate = 0.0
        self.lead_rate = 0.0
        self.virtual_s = 0.0
        self.waits = False
        self.held: float = 0

    def resize(self, slots: int) -> None:
        """Shares in whole slots, after those of its parent; a pool that may run may use one."""
        spec, parent = self.spec, self.parent
        capped = int(spec.cap * slots + ROUNDING)
        if parent is not None:
            capped = parent.child_caps.get(self.path.rpartition("/")[2], capped)
        self.cap = UNLIMITED if spec.cap == 1 else max(1, capped)
        # Rounded down one by one, caps that add up to everything would leave slots idle.
        self.child_caps = {}
        if spec.caps_all:
            caps = apportion([child.cap * slots for child in spec.children.values()])
            self.child_caps = dict(zip(spec.children, caps, strict=True))
        self.guarantee = self._promised_slots(slots)

    def _promised_slots(self, slots: int) -> int:
        return 0 if self.takes_turns else int(self.spec.promised * slots + ROUNDING)

    def reset_lots(self, slots: int) -> None:
        """Its children have no more than what is promised to them."""
        self.drawn_s = -math.inf
        for child in self.names.values():
            child.guarantee = child._promised_slots(slots)

    def count(self, queries: int) -> None:
        """Queries came or went; they may be what the pool weighs."""
        self.queries += queries
        if self.spec.weight == "queries":
            self.weight = float(max(1, self.queries))

    def uids(self, query: QueryState) -> list[int]:
        """The candidates of a query: itself, or its jobs one by one."""
        return [job.uid for job in query.jobs] if self.by_job else [query.uid]

    def place(self, query: QueryState, lane: int, state: State) -> tuple[Key, int] | None:
        """Where the first candidate of a query stands at a gate; None if it stands at none."""
        keys = self.gates[lane].keys
        found = [(keys[uid], uid) for uid in self.uids(query) if uid in keys]
        if self.moves and self.order is not None:
            rankings = self.all_rankings
            found = [(self.order.key_now(key, rankings, state), uid) for key, uid in found]
        return min(found, default=None)

    def hosts_of(self, candidate: Candidate, lane: int) -> tuple[str, ...]:
        """The hosts to which jobs of a candidate are bound, "" if some are not; () if none is."""
        jobs = (candidate,) if isinstance(candidate, JobState) else candidate.runnable[lane]
        hosts = tuple(dict.fromkeys(job.host for job in jobs))
        return () if hosts == ("",) else hosts

    def put_apart(self, uid: int, lane: int, hosts: tuple[str, ...], key: Key) -> None:
        """Rank a candidate among those that can use slots of these hosts ("": of any)."""
        self.homes[uid, lane] = hosts
        for host in hosts:
            if host and host not in self.apart:
                assert self.order is not None
                self.apart[host] = tuple(self.order.ranking() for _ in self.lanes)
            (self.apart[host] if host else self.lanes)[lane].put(uid, key)

    def drop_apart(self, uid: int, lane: int) -> bool:
        """Take a candidate from there; False if it does not stand there."""
        hosts = self.homes.pop((uid, lane), ())
        for host in hosts:
            rankings = self.apart[host] if host else self.lanes
            rankings[lane].drop(uid)
            if host and not any(ranking.keys for ranking in rankings):
                del self.apart[host]
        return bool(hosts)

    def stands_apart(self, uid: int) -> bool:
        """Whether a candidate stands by its hosts in some lane."""
        return any((uid, lane) in self.homes for lane in range(len(self.lanes)))

    def rerank_apart(self, uid: int, key: Key) -> None:
        """A candidate has another key from now on."""
        for lane in range(len(self.lanes)):
            for host in filter(None, self.homes.get((uid, lane), ())):
                self.apart[host][lane].put(uid, key)

    @property
    def all_rankings(self) -> Sequence[Ranking]:
        """Those of all lanes, at gates and by hosts."""
        if not self.apart:
            return self.rankings
        apart = (ranking for rankings in self.apart.values() for ranking in rankings)
        return (*self.rankings, *apart)

    def refill(self, keys: Mapping[int, Key]) -> None:
        """All candidates have other keys from now on."""
        for ranking in self.all_rankings:
            ranking.refill([(uid, keys[uid]) for uid in ranking.keys])

    def turns(self, ranking: Ranking, state: State) -> Iterable[tuple[Key, int]]:
        """The candidates of a ranking as they stand now, the first one first."""
        if not self.moves:
            return ranking.entries
        assert self.order is not None
        return self.order.turns(ranking, self.all_rankings, state)

    def free_for(self, node: NodeState, lane: int, state: State) -> Iterable[tuple[Key, int]]:
        """Candidates for a slot of the node that hold memory or need none, in their order."""
        bound = self.apart.get(node.host)
        if node.draining:
            return self.turns(bound[lane], state) if bound is not None else ()
        free = self.turns(self.lanes[lane], state)
        return free if bound is None else merge(free, self.turns(bound[lane], state))

    def key(self) -> float:
        """Below 0 while the guarantee is not met, else by use over weight; or by the turns it had.

        A slot counts as used for one more quantum. One that is held has a quantum's advance,
        so that it does not change hands at every event. A child whose next query takes less than
        its credit has the rest of the credit as an advance, by its weight.
        """
        if self.takes_turns:
            spec = self.parent.spec  # type: ignore[union-attr]
            ahead = self.used - 1 if self.used < self.held else self.used
            lead_s = max(0.0, spec.credit * spec.quantum_s - self.next_left_s())
            return self.virtual_s + ahead * spec.quantum_s * self.rate - lead_s * self.lead_rate
        used, guarantee = self.used, self.guarantee
        return used / guarantee - 1.0 if used < guarantee else used / self.weight

    def next_left_s(self) -> float:
        """The work that is left of the query which is next here; infinite if that is not known."""
        if self.order is None:
            index = self.children.entries[0][1] if self.children.entries else -1
            found = (child for child in self.names.values() if child.index == index)
            return next((child.next_left_s() for child in found), math.inf)
        least_s = math.inf
        for ranking in self.all_rankings:
            if ranking.entries:
                left_s = self.members[ranking.entries[0][1]].query.left_s
                if 0.0 < left_s < least_s:
                    least_s = left_s
        return least_s

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
        copy.moves = self.moves
        copy.drifts = self.drifts
        copy.rotates = self.rotates
        copy.names = {}
        copy.children = self.children.fork()
        copy.lanes = tuple(ranking.fork() for ranking in self.lanes)
        copy.gates = tuple(ranking.fork() for ranking in self.gates)
        copy.rankings = copy.lanes + copy.gates
        copy.apart = {
            host: tuple(ranking.fork() for ranking in rankings)
            for host, rankings in self.apart.items()
        }
        copy.homes = self.homes.copy()
        copy.members = {}
        copy.ready = self.ready.copy()
        copy.gated = self.gated
        copy.used = self.used
        copy.queries = self.queries
        copy.weight = self.weight
        copy.served = self.served
        copy.refreshed_s = self.refreshed_s
        copy.cap = self.cap
        copy.child_caps = self.child_caps.copy()
        copy.lot = self.lot
        copy.drawn_s = self.drawn_s
        copy.guarantee = self.guarantee
        copy.takes_turns = self.takes_turns
        copy.share = self.share
        copy.among = self.among  # replaced as a whole, never changed
        copy.rate = self.rate
        copy.lead_rate = self.lead_rate
        copy.virtual_s = self.virtual_s
        copy.waits = self.waits
        copy.held = self.held
        return copy
