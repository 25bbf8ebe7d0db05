"""What the kernel remembers of a node, and of a host: the nodes of one machine together."""

from __future__ import annotations

from typing import NamedTuple

from .means import Mean
from .model import Node


class Host(NamedTuple):
    """The nodes of a host together: how many of them take new work, their slots and memory."""

    nodes: int
    slots: int
    memory_bytes: float
    kept_bytes: float


class NodeState:
    """A node with its free slots, what runs there, and the observed task times."""

    __slots__ = (
        "draining",
        "free",
        "host",
        "id",
        "leased",
        "leaving",
        "map_mean",
        "maps",
        "reduce_mean",
        "reduces",
        "serves_bound",
        "silent",
        "since_s",
        "spec",
    )

    def __init__(self, spec: Node, since_s: float = 0.0) -> None:
        self.spec = spec
        # When it joined.
        self.since_s = since_s
        self.id = spec.id
        self.host = spec.host or spec.id
        self.free = spec.slots
        self.maps = 0
        self.reduces = 0
        self.leased = 0
        # It is to be given up, or does not answer; for either reason it takes no new work.
        self.leaving = False
        self.silent = False
        self.draining = False
        # It is draining like all nodes of its host: divisible jobs that started there go on.
        self.serves_bound = False
        self.map_mean = Mean()
        self.reduce_mean = Mean()

    def fork(self) -> NodeState:
        copy = NodeState(self.spec, self.since_s)
        copy.free = self.free
        copy.maps = self.maps
        copy.reduces = self.reduces
        copy.leased = self.leased
        copy.leaving = self.leaving
        copy.silent = self.silent
        copy.draining = self.draining
        copy.serves_bound = self.serves_bound
        copy.map_mean = self.map_mean.fork()
        copy.reduce_mean = self.reduce_mean.fork()
        return copy
