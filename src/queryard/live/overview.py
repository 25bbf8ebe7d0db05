"""All active queries and the cluster at one moment, for pages that show them many times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from queryard.backends.protocol import NodeNote

from .choosing.state import PolicyState
from .facts import QueryFacts
from .request import QueryRequest

# What a query waits for; "slots" if it has begun and holds none now, "" if slots work on it.
Hold = Literal["", "slots", "reader", "entering", "planning", "shared", "memory", "cap", "order"]
# Of a query that stands in no ranking.
NO_TURN: tuple[None, float] = (None, math.inf)


class Glance(NamedTuple):
    """One active query.

    `position` is how many waiting queries stand before it in its pool, None if it stands in no
    ranking. `turn` is that number over the weight of the pool: of two waiting queries of different
    pools, the one with the smaller turn is expected to start first.
    """

    id: str
    request: QueryRequest
    submitted_s: float
    started_s: float | None
    slots: int
    progress: float
    predicted_work_s: float | None
    work_s: float
    memory_bytes: float
    hold: Hold
    position: int | None
    turn: float


class Standing(NamedTuple):
    """What the kernel knows of a query that does not merely wait behind others."""

    slots: int
    hold: Hold
    memory_bytes: float


BEHIND = Standing(0, "order", 0.0)
JUST_CAME = Standing(0, "entering", 0.0)


class Overview(NamedTuple):
    """What the loop sees between two steps, at `now_s` of the host's clock.

    What is known of each query is published by the loop anyway (`facts`, the earliest first), so
    that it is asked only for `turns`, which are position and turn of waiting queries, and for how
    those stand that do not wait behind others.
    """

    now_s: float
    facts: tuple[QueryFacts, ...]
    turns: Mapping[str, tuple[int, float]]
    standings: Mapping[str, Standing]
    slots: int
    busy_slots: int
    memory_bytes: float
    reserved_bytes: float
    policy: PolicyState
    # On whose word no waiting query starts; None while queries start.
    paused_by: str | None

    @property
    def queries(self) -> tuple[Glance, ...]:
        """All active queries, the earliest first."""
        return tuple(map(self.glance, self.facts))

    def turn(self, facts: QueryFacts) -> float:
        """When the turn of a query is, among those that wait."""
        return self.turns.get(facts.id, NO_TURN)[1]

    def hold(self, facts: QueryFacts) -> Hold:
        """What a query waits for."""
        return self._standing(facts.id, self.turns.get(facts.id, NO_TURN)[0]).hold

    def _standing(self, query: str, position: int | None) -> Standing:
        return self.standings.get(query, BEHIND if position else JUST_CAME)

    def glance(self, facts: QueryFacts) -> Glance:
        """One of them, as it stands."""
        position, turn = self.turns.get(facts.id, NO_TURN)
        standing = self._standing(facts.id, position)
        return Glance(
            facts.id,
            facts.request,
            facts.submitted_s,
            facts.started_s,
            standing.slots,
            facts.progress,
            facts.prediction.work_s,
            facts.work_s,
            standing.memory_bytes,
            standing.hold,
            position,
            turn,
        )


class Load(NamedTuple):
    """How much there is to do, in numbers."""

    slots: int
    busy_slots: int
    waiting: int
    running: int
    reserved_bytes: float
    # How often the kernel has decided so far, and the processor seconds of that.
    decisions: int = 0
    decide_s: float = 0.0


class NodeGlance(NamedTuple):
    """One node of the cluster, with the queries that hold its slots."""

    name: str
    host: str
    draining: bool
    slots: int
    busy: int
    speed: float
    memory_bytes: float
    reserved_bytes: float
    since_s: float
    running: tuple[str, ...]
    cached: Mapping[str, tuple[int, int]] = MappingProxyType({})
    """By table: how many of its splits the node has read last, and how many there are."""
    silent: bool = False
    """Whether it has not answered for a while: it takes no new work until it does."""
    resting: str = ""
    """For how long and why it takes no new work, where work failed there that succeeded elsewhere.
    """


class SessionNodes(NamedTuple):
    """The nodes of a session, what its backend knows of them by name, and why others are not."""

    nodes: tuple[NodeGlance, ...]
    notes: Mapping[str, NodeNote]
    refused: tuple[str, ...]


class ClusterView(NamedTuple):
    """All nodes at `now_s`, and the share of each table that is kept parsed."""

    now_s: float
    nodes: tuple[NodeGlance, ...]
    kept_tables: dict[str, float]
