"""Keeps blocks apart that are larger together than alone, and thins out one by another.

The order of joins is chosen for one run of the whole query. Here the other sides of the sampled
table's joins are kept as tables and joined in every statement, so two of them are made into one
only if that one has no more rows than the larger of the two. Where a condition is between two of
them, rows of the larger one without a partner in the smaller one are left out beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queryard.sql.planner.algebra import Join, Node, OneRow, Scan, UnionAll, inputs, names
from queryard.sql.planner.cardinality import Cardinality, key_pair
from queryard.sql.planner.expressions import Expr, references

_MORE = 1.1  # estimates of equal numbers of rows differ a little
_WORTH = 0.7
_SMALL = 0.5  # looking up rows in a smaller block costs little, whatever comes of it


class Apart:
    """One pass over the way from the root to the sampled table."""

    def __init__(self, cardinality: Cardinality, scan: Scan) -> None:
        self._cardinality = cardinality
        self._scan = scan
        self._blocks: list[Node] = []

    def run(self, node: Node) -> Node:
        """The node, with inner joins of the sampled rows one after the other where that is less."""
        if isinstance(node, Scan | OneRow | UnionAll) or not self._leads(node):
            return node
        if not isinstance(node, Join):
            return replace(node, child=self.run(node.child))
        on_left = self._leads(node.left)
        mine, other = (node.left, node.right) if on_left else (node.right, node.left)
        mine = self.run(mine)
        if node.kind == "inner":
            return self._joined(mine, other, node.conditions)
        return replace(node, left=mine) if on_left else replace(node, right=mine)

    def _leads(self, node: Node) -> bool:
        return node is self._scan or any(self._leads(child) for child in inputs(node))

    def _joined(self, mine: Node, other: Node, conditions: Sequence[Expr]) -> Node:
        if isinstance(other, Join) and other.kind == "inner" and self._grows(other):
            every = [*conditions, *other.conditions]
            for first, second in ((other.left, other.right), (other.right, other.left)):
                both = names(mine) | names(first)
                now = [c for c in every if references(c) <= both]
                if any(references(c) & names(mine) and references(c) & names(first) for c in now):
                    later = [c for c in every if c not in now]
                    return self._joined(self._joined(mine, first, now), second, later)
        other = self._thinned(other, conditions)
        self._blocks.append(other)
        return Join("inner", mine, other, tuple(conditions))

    def _thinned(self, other: Node, conditions: Sequence[Expr]) -> Node:
        """The block without rows that have no partner in a smaller block, joined before."""
        for block in self._blocks:
            both = names(block) | names(other)
            between = [
                c
                for c in conditions
                if references(c) <= both
                and key_pair(c, names(other)) is not None
                and references(c) & names(block)
            ]
            rows, small = self._cardinality.rows(other), self._cardinality.rows(block)
            if not between or small >= rows:
                continue
            kept = Join("semi", other, block, tuple(between))
            if small < _SMALL * rows or self._cardinality.rows(kept) < _WORTH * rows:
                other = kept
        return other

    def _grows(self, node: Join) -> bool:
        sides = [self._cardinality.rows(side) for side in (node.left, node.right)]
        return self._cardinality.rows(node) > _MORE * max(sides)
