"""Drops columns and aggregates that nothing reads."""

from __future__ import annotations

from dataclasses import replace

from .algebra import (
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
from .expressions import Expr, column, references


def pruned(root: Node) -> Node:
    """The plan with only the columns that reach the root's columns or decide about rows."""
    return _Pruning().run(root)


class _Pruning:
    def __init__(self) -> None:
        self._needed: dict[int, set[str]] = {}
        self._shared: dict[int, Shared] = {}

    def run(self, root: Node) -> Node:
        # What a shared node must offer is known when all its readers are; readers may be within
        # other shared nodes, so go on until nothing new is asked for.
        while True:
            before = {key: set(value) for key, value in self._needed.items()}
            self._shared = {}
            found = self._node(root, names(root))
            if before == self._needed:
                return found

    def _node(self, node: Node, needed: frozenset[str]) -> Node:
        if isinstance(node, Scan):
            fields = tuple(f for f in node.fields if f.name in needed)
            return Scan(node.table, {f.name: node.columns[f.name] for f in fields}, fields)
        if isinstance(node, OneRow):
            return node
        if isinstance(node, Filter):
            return Filter(self._node(node.child, needed | _reads(node.conditions)), node.conditions)
        if isinstance(node, Project):
            items = tuple((name, e) for name, e in node.items if name in needed)
            fields = tuple(f for f in node.fields if f.name in needed)
            child = self._node(node.child, _reads(tuple(e for _, e in items)))
            return Project(child, items, fields)
        if isinstance(node, Join):
            wanted = needed | _reads(node.conditions)
            return Join(
                node.kind,
                self._node(node.left, wanted & names(node.left)),
                self._node(node.right, wanted & names(node.right)),
                node.conditions,
            )
        if isinstance(node, Aggregate):
            return self._aggregate(node, needed)
        if isinstance(node, UnionAll):
            return self._union(node, needed)
        if isinstance(node, Sort):
            keys = frozenset(key.name for key in node.keys)
            return replace(node, child=self._node(node.child, needed | keys))
        return self._share(node, needed)

    def _aggregate(self, node: Aggregate, needed: frozenset[str]) -> Node:
        calls = tuple(call for call in node.calls if call.out in needed)
        kept = {name for name, _ in node.keys} | {call.out for call in calls}
        reads = {source for _, source in node.keys}
        for call in calls:
            reads |= {name for name in (call.argument, call.condition) if name is not None}
        child = self._node(node.child, frozenset(reads))
        fields = tuple(f for f in node.fields if f.name in kept)
        return Aggregate(child, node.keys, calls, fields)

    def _union(self, node: UnionAll, needed: frozenset[str]) -> Node:
        places = [i for i, f in enumerate(node.fields) if f.name in needed]
        children = []
        for child in node.inputs:
            wanted = [child.fields[i] for i in places]
            found = self._node(child, frozenset(f.name for f in wanted))
            # By position: a child may still offer more (keys), or in another order.
            items = tuple((f.name, column(f.name)) for f in wanted)
            same = [f.name for f in found.fields] == [f.name for f in wanted]
            children.append(found if same else Project(found, items, tuple(wanted)))
        return UnionAll(tuple(children), tuple(node.fields[i] for i in places))

    def _share(self, node: Shared, needed: frozenset[str]) -> Node:
        wanted = self._needed.setdefault(id(node), set())
        wanted |= needed
        if id(node) not in self._shared:
            self._shared[id(node)] = Shared(self._node(node.child, frozenset(wanted)))
        return self._shared[id(node)]


def _reads(expressions: tuple[Expr, ...]) -> frozenset[str]:
    return frozenset[str]().union(*(references(e) for e in expressions))
