"""Lets the small side of a join thin out the large one before that is grouped or shuffled.

Where rows of the right side without a partner cannot matter (left, semi and anti joins, and
groups that are joined by their keys), the keys of a small left side are computed first and the
right side is read through a semi join with them. This is what makes correlated subqueries cheap:
averages are computed only for the parts that are asked for (magic sets, Beeri 1987).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from .algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    OneRow,
    Project,
    Scan,
    Shared,
    UnionAll,
    inputs,
    names,
)
from .builder import Builder
from .cardinality import Cardinality, key_pair
from .expressions import column
from .pushdown import Pushdown

_MOST_KEYS = 2e6
_WORTH = 8.0  # the right side must read this many times as many rows as the left has
_THINNED = 2.0  # and must itself be this many times as large


class Sideways:
    """One pass over a plan."""

    def __init__(self, builder: Builder, cardinality: Cardinality) -> None:
        self._builder = builder
        self._cardinality = cardinality
        self._shared: dict[int, Shared] = {}

    def run(self, node: Node) -> Node:
        """The plan with large right sides thinned out, outer joins before inner ones."""
        if isinstance(node, Join):
            node = self._thinned(node)
            return replace(node, left=self.run(node.left), right=self.run(node.right))
        if isinstance(node, Scan | OneRow):
            return node
        if isinstance(node, UnionAll):
            return replace(node, inputs=tuple(self.run(child) for child in node.inputs))
        if isinstance(node, Shared):
            if id(node) not in self._shared:
                fresh = Shared(node.child)
                self._shared[id(node)] = self._shared[id(fresh)] = fresh
                fresh.child = self.run(node.child)
            return self._shared[id(node)]
        return replace(node, child=self.run(node.child))

    def _thinned(self, node: Join) -> Join:
        if node.kind in ("left", "semi", "anti"):
            return self._by_left(node)
        if node.kind == "inner" and _groups(node.right):
            return self._by_left(node)
        if node.kind == "inner" and _groups(node.left):
            return self._by_left(Join("inner", node.right, node.left, node.conditions))
        return node

    def _by_left(self, node: Join) -> Join:
        left, right = self._cardinality.rows(node.left), self._cardinality.rows(node.right)
        read = self._rows_read(node.right)
        if left > _MOST_KEYS or read < _WORTH * left or read < 50_000:
            return node
        if right < _THINNED * left and not _groups(node.right):
            return node
        pairs = [key_pair(c, names(node.left)) for c in node.conditions]
        keys = [
            (mine, other) for mine, other in filter(None, pairs) if isinstance(other, exp.Column)
        ]
        if not keys:
            return node
        shared = Shared(node.left)
        wanted, columns = self._builder.extended(shared, [mine for mine, _ in keys])
        taken = self._builder.project(
            wanted, [(self._builder.fresh(), column(name)) for name in columns]
        )
        outs = [(self._builder.fresh(), field.name) for field in taken.fields]
        distinct = self._builder.aggregate(taken, outs, ())
        conditions = [
            exp.EQ(this=other.copy(), expression=column(out))
            for (_, other), (out, _) in zip(keys, outs, strict=True)
        ]
        pushdown = Pushdown(self._builder, self._cardinality)
        thinned = pushdown.with_semi_join(node.right, distinct, conditions)
        return Join(node.kind, shared, thinned, node.conditions)

    def _rows_read(self, node: Node) -> float:
        if isinstance(node, Scan | Shared):
            return self._cardinality.rows(node)
        return sum(self._rows_read(child) for child in inputs(node))


def _groups(node: Node) -> bool:
    while isinstance(node, Filter | Project):
        node = node.child
    return isinstance(node, Aggregate) and bool(node.keys)
