"""All active queries and the cluster at one moment, for pages that show them many times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from queryard.backends.protocol import NodeNote

from .choosing.state import PolicyState
from .request import QueryRequest

# What a query waits for; "slots" if it has begun and holds none now, "" if slots work on it.
Hold = Literal["", "slots", "reader", "entering", "planning", "shared", "memory", "cap", "order"]


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


class Overview(NamedTuple):
    """What the loop sees between two steps, at `now_s` of the host's clock."""

    now_s: float
    queries: tuple[Glance, ...]
    slots: int
    busy_slots: int
    memory_bytes: float
    reserved_bytes: float
    policy: PolicyState
    # On whose word no waiting query starts; None while queries start.
    paused_by: str | None


class Load(NamedTuple):
    """How much there is to do, in numbers."""

    slots: int
    busy_slots: int
    waiting: int
    running: int
    reserved_bytes: float


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
