"""Moves conditions and semi joins as near to the tables as they may go, and orders inner joins.

A semi or anti join keeps or drops rows of its left side by their own values, so it moves like a
condition; where it is not expected to drop much it stays above the joins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from .algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Shared,
    Sort,
    UnionAll,
    names,
)
from .builder import Builder
from .cardinality import Cardinality
from .conditions import factored, implied_within, rejects_nulls
from .expressions import Expr, bare, cast, column, references, substituted
from .join_order import ordered

_SELECTIVE = 0.5


@dataclass(frozen=True, slots=True)
class Existence:
    """A semi or anti join without its left side."""

    kind: Literal["semi", "anti"]
    right: Node
    conditions: tuple[Expr, ...]

    def reads(self) -> frozenset[str]:
        """The columns of the left side it depends on."""
        found = frozenset[str]().union(*(references(c) for c in self.conditions))
        return found - names(self.right)

    def substituted(self, replacements: Mapping[str, Expr]) -> Existence:
        return replace(
            self, conditions=tuple(substituted(c, replacements) for c in self.conditions)
        )


class Pushdown:
    """One optimisation of a plan."""

    def __init__(self, builder: Builder, cardinality: Cardinality) -> None:
        self._builder = builder
        self._cardinality = cardinality
        self._shared: dict[int, Shared] = {}

    def run(self, node: Node) -> Node:
        return self._push(node, (), ())

    def with_semi_join(self, node: Node, right: Node, conditions: Sequence[Expr]) -> Node:
        """The rows of an optimised node that have a partner, dropped as early as they may be."""
        return self._push(node, (), [Existence("semi", right, tuple(conditions))])

    def _push(self, node: Node, conditions: Sequence[Expr], semis: Sequence[Existence]) -> Node:
        """The node with conditions and semi joins applied, as deep as they may."""
        if isinstance(node, Filter):
            return self._push(node.child, [*factored(node.conditions), *conditions], semis)
        if isinstance(node, Project):
            return self._project(node, conditions, semis)
        if isinstance(node, Aggregate):
            return self._aggregate(node, conditions, semis)
        if isinstance(node, UnionAll):
            return self._union(node, conditions, semis)
        if isinstance(node, Sort):
            return self._sort(node, conditions, semis)
        if isinstance(node, Shared):
            return self._above(self._once(node), conditions, semis)
        if isinstance(node, Join):
            return self._join(node, conditions, semis)
        return self._above(node, conditions, semis)

    def _above(self, node: Node, conditions: Sequence[Expr], semis: Sequence[Existence]) -> Node:
        node = self._builder.filter(node, conditions)
        for semi in semis:
            node = self._builder.join(semi.kind, node, semi.right, semi.conditions)
        return node

    def _once(self, node: Shared) -> Shared:
        if id(node) not in self._shared:
            self._shared[id(node)] = Shared(self._push(node.child, (), ()))
            self._shared[id(self._shared[id(node)])] = self._shared[id(node)]
        return self._shared[id(node)]

    def _project(
        self, node: Project, conditions: Sequence[Expr], semis: Sequence[Existence]
    ) -> Node:
        types = {field.name: field.type for field in node.fields}
        sources = {
            # A cast keeps the type that a literal would otherwise take from its surroundings.
            name: expression if _is_column(expression) else cast(expression.copy(), types[name])
            for name, expression in node.items
        }
        child = self._push(
            node.child,
            [substituted(c, sources) for c in conditions],
            [semi.substituted(sources) for semi in semis],
        )
        return Project(child, node.items, node.fields)

    def _aggregate(
        self, node: Aggregate, conditions: Sequence[Expr], semis: Sequence[Existence]
    ) -> Node:
        keys = {name: column(source) for name, source in node.keys}
        below = [c for c in conditions if references(c) and references(c) <= keys.keys()]
        above = [c for c in conditions if c not in below]
        semis_below = [s for s in semis if s.reads() and s.reads() <= keys.keys()]
        child = self._push(
            node.child,
            [substituted(c, keys) for c in below],
            [semi.substituted(keys) for semi in semis_below],
        )
        grouped = Aggregate(child, node.keys, node.calls, node.fields)
        return self._above(grouped, above, [s for s in semis if s not in semis_below])

    def _union(
        self, node: UnionAll, conditions: Sequence[Expr], semis: Sequence[Existence]
    ) -> Node:
        children = []
        for child in node.inputs:
            own = {f.name: column(c.name) for f, c in zip(node.fields, child.fields, strict=True)}
            children.append(self._push(child, [substituted(c, own) for c in conditions], ()))
        return self._above(UnionAll(tuple(children), node.fields), (), semis)

    def _sort(self, node: Sort, conditions: Sequence[Expr], semis: Sequence[Existence]) -> Node:
        if node.limit is None and not node.offset:
            return replace(node, child=self._push(node.child, conditions, semis))
        return self._above(replace(node, child=self._push(node.child, (), ())), conditions, semis)

    # ------------------------------------------------------------------ joins

    def _join(self, node: Join, conditions: Sequence[Expr], semis: Sequence[Existence]) -> Node:
        if node.kind == "right":
            node = Join("left", node.right, node.left, node.conditions)
        if node.kind == "left":
            return self._left(node, conditions, semis)
        if node.kind == "full":
            whole = Join("full", self.run(node.left), self.run(node.right), node.conditions)
            return self._above(whole, conditions, semis)
        return self._inner(node, conditions, semis)

    def _left(self, node: Join, conditions: Sequence[Expr], semis: Sequence[Existence]) -> Node:
        left, right = names(node.left), names(node.right)
        if any(rejects_nulls(c, right) for c in conditions):
            inner = Join("inner", node.left, node.right, node.conditions)
            return self._push(inner, conditions, semis)
        on = list(factored(node.conditions))
        below = [c for c in conditions if references(c) and references(c) <= left]
        semis_below = [s for s in semis if s.reads() and s.reads() <= left]
        within_right = [c for c in on if references(c) and references(c) <= right]
        whole = Join(
            "left",
            self._push(node.left, below, semis_below),
            self._push(node.right, within_right, ()),
            tuple(c for c in on if c not in within_right),
        )
        return self._above(
            whole,
            [c for c in conditions if c not in below],
            [s for s in semis if s not in semis_below],
        )

    def _inner(self, node: Join, conditions: Sequence[Expr], semis: Sequence[Existence]) -> Node:
        relations: list[Node] = []
        every: list[Expr] = list(conditions)
        tests: list[Existence] = []
        self._flatten(node, relations, every, tests)
        every = _each_once(factored(every))
        tests += semis
        mine: list[list[Expr]] = [[] for _ in relations]
        rest: list[Expr] = []
        for condition in every:
            found = _owner(references(condition), relations)
            if found is None:
                rest.append(condition)
                for place, relation in enumerate(relations):
                    implied = implied_within(condition, names(relation))
                    if implied is not None:
                        mine[place].append(implied)
            else:
                mine[found].append(condition)
        own_tests, later = self._placed(tests, relations, mine)
        children = [
            self._push(relation, mine[i], own_tests[i]) for i, relation in enumerate(relations)
        ]
        joined = ordered(children, rest, self._builder, self._cardinality)
        return self._above(joined, (), later)

    def _flatten(
        self, node: Node, relations: list[Node], conditions: list[Expr], tests: list[Existence]
    ) -> None:
        """Take apart inner joins, filters and semi joins, which all commute."""
        if isinstance(node, Filter):
            conditions += node.conditions
            self._flatten(node.child, relations, conditions, tests)
        elif isinstance(node, Join) and node.kind == "inner":
            conditions += node.conditions
            self._flatten(node.left, relations, conditions, tests)
            self._flatten(node.right, relations, conditions, tests)
        elif isinstance(node, Join) and node.kind in ("semi", "anti"):
            tests.append(self._existence(node, conditions))
            self._flatten(node.left, relations, conditions, tests)
        elif isinstance(node, Join) and node.kind in ("left", "right"):
            self._flatten_outer(node, relations, conditions, tests)
        else:
            relations.append(node)

    def _flatten_outer(
        self, node: Join, relations: list[Node], conditions: list[Expr], tests: list[Existence]
    ) -> None:
        """An outer join is an inner one if a condition removes its padded rows anyway."""
        optional = node.right if node.kind == "left" else node.left
        padded = names(optional)
        if any(rejects_nulls(c, padded) for c in conditions):
            inner = Join("inner", node.left, node.right, node.conditions)
            self._flatten(inner, relations, conditions, tests)
        else:
            relations.append(node)

    def _existence(self, node: Join, conditions: list[Expr]) -> Existence:
        right = names(node.right)
        on = list(factored(node.conditions))
        within = [c for c in on if references(c) and references(c) <= right]
        between = tuple(c for c in on if c not in within)
        assert node.kind in ("semi", "anti")
        return Existence(node.kind, self._push(node.right, within, ()), between)

    def _placed(
        self, tests: Sequence[Existence], relations: Sequence[Node], mine: Sequence[Sequence[Expr]]
    ) -> tuple[list[list[Existence]], list[Existence]]:
        """Semi joins by the relation they belong to, and those better done after the joins."""
        own: list[list[Existence]] = [[] for _ in relations]
        later: list[Existence] = []
        for test in tests:
            place = _owner(test.reads(), relations)
            if place is None:
                later.append(test)
                continue
            relation = self._builder.filter(relations[place], mine[place])
            kept = Join(test.kind, relation, test.right, test.conditions)
            before, after = self._cardinality.rows(relation), self._cardinality.rows(kept)
            if len(relations) == 1 or after <= _SELECTIVE * before:
                own[place].append(test)
            else:
                later.append(test)
        return own, later


def _owner(reads: frozenset[str], relations: Sequence[Node]) -> int | None:
    """The relation that is read, if it is one; constants belong to the first."""
    if not reads:
        return 0
    return next((i for i, relation in enumerate(relations) if reads <= names(relation)), None)


def _each_once(conditions: Iterable[Expr]) -> list[Expr]:
    found: list[Expr] = []
    for condition in conditions:
        if condition not in found:
            found.append(condition)
    return found


def _is_column(expression: Expr) -> bool:
    return isinstance(bare(expression), exp.Column)
