"""The order of inner joins: always the pair that gives the fewest rows next (greedy, bushy).

Fegaras, "A New Heuristic for Optimizing Large Queries" (1998). Equalities are closed under
transitivity first, so that a join may use a condition that was not written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from .algebra import Join, Node, names
from .builder import Builder
from .cardinality import Cardinality, key_pair
from .expressions import Expr, bare, column, references


def ordered(
    relations: Sequence[Node],
    conditions: Sequence[Expr],
    builder: Builder,
    cardinality: Cardinality,
) -> Node:
    """One node that joins all relations under all conditions."""
    parts = list(relations)
    left = list(conditions)
    classes = _Classes(conditions, relations)
    while len(parts) > 1:
        best: tuple[tuple[float, float, int, int], Join] | None = None
        for i, one in enumerate(parts):
            for j in range(i + 1, len(parts)):
                joined = _joined(one, parts[j], left, classes, builder)
                rank = _rank(joined, cardinality)
                if best is None or (*rank, i, j) < best[0]:
                    best = ((*rank, i, j), joined)
        assert best is not None
        (_, _, i, j), chosen = best
        parts[i] = chosen
        del parts[j]
        left = [c for c in left if c not in chosen.conditions]
    return builder.filter(parts[0], left)


def _rank(joined: Join, cardinality: Cardinality) -> tuple[float, float]:
    """Pairs without a condition come last, unless one side is a single row."""
    rows = cardinality.rows(joined)
    sides = [cardinality.rows(joined.left), cardinality.rows(joined.right)]
    linked = any(key_pair(c, names(joined.left)) for c in joined.conditions)
    if not linked and min(sides) > 1:
        return (float("inf"), rows)
    if not linked and not joined.conditions:
        return (float("inf"), 0.0)
    return (rows, sum(sides))


def _joined(
    one: Node, other: Node, conditions: Sequence[Expr], classes: _Classes, builder: Builder
) -> Join:
    mine, theirs = names(one), names(other)
    both = mine | theirs
    spanning = [
        c
        for c in conditions
        if references(c) <= both and references(c) & mine and references(c) & theirs
    ]
    return builder.join("inner", one, other, [*spanning, *classes.missing(mine, theirs, spanning)])


class _Classes:
    """Columns that the conditions make equal, by type."""

    def __init__(self, conditions: Sequence[Expr], relations: Sequence[Node]) -> None:
        types = {field.name: field.type for node in relations for field in node.fields}
        self._groups: list[set[str]] = []
        for condition in conditions:
            pair = _columns(condition)
            if pair is None or types[pair[0]] != types[pair[1]]:
                continue
            touched = [group for group in self._groups if group & set(pair)]
            merged = set(pair).union(*touched)
            self._groups = [g for g in self._groups if g not in touched] + [merged]

    def missing(
        self, mine: frozenset[str], theirs: frozenset[str], given: Sequence[Expr]
    ) -> Iterator[Expr]:
        """Equalities between two sides that follow from others, where none is given."""
        known = [_columns(c) for c in given]
        for group in self._groups:
            left, right = sorted(group & mine), sorted(group & theirs)
            if left and right and not any(pair and set(pair) <= group for pair in known):
                yield exp.EQ(this=column(left[0]), expression=column(right[0]))


def _columns(condition: Expr) -> tuple[str, str] | None:
    condition = bare(condition)
    if not isinstance(condition, exp.EQ):
        return None
    one, other = bare(condition.this), bare(condition.expression)
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        return one.name, other.name
    return None
