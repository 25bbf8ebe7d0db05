"""Leaves out columns of dimensions that only dimensions need.

What the sampled table is joined with is kept in tables, which have to be written and read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from queryard.sql.planner.algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    OneRow,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
    names,
)
from queryard.sql.planner.expressions import Expr, column, references


class Narrowing:
    """One pass over the way from the root to the sampled table."""

    def __init__(self, path: Sequence[Node]) -> None:
        self._path = {id(node) for node in path}
        self._needed = names(path[0]).union(*(_reads(node) for node in path))

    def run(self, node: Node) -> Node:
        """The node over narrower blocks beside the path."""
        if isinstance(node, Scan | OneRow | UnionAll):
            return node
        if isinstance(node, Join):
            left, right = (self._side(side) for side in (node.left, node.right))
            return replace(node, left=left, right=right)
        return replace(node, child=self.run(node.child))

    def _side(self, side: Node) -> Node:
        if id(side) in self._path:
            return self.run(side)
        fields = tuple(field for field in side.fields if field.name in self._needed)
        # What is shared is a table already.
        if isinstance(side, Shared) or len(fields) == len(side.fields):
            return side
        return Project(side, tuple((field.name, column(field.name)) for field in fields), fields)


def _reads(node: Node) -> frozenset[str]:
    """The columns that a node itself asks for."""
    if isinstance(node, Filter | Join):
        return _of(node.conditions)
    if isinstance(node, Project):
        return _of([expression for _, expression in node.items])
    if isinstance(node, Sort):
        return frozenset(key.name for key in node.keys)
    if isinstance(node, Aggregate):
        asked = [source for _, source in node.keys]
        asked += [name for call in node.calls for name in (call.argument, call.condition) if name]
        return frozenset(asked)
    return frozenset()


def _of(expressions: Sequence[Expr]) -> frozenset[str]:
    return frozenset[str]().union(*(references(each) for each in expressions))
