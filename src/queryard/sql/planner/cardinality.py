"""How many rows, distinct values and bytes each node of a plan is expected to have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from .algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    OneRow,
    Project,
    Scan,
    Sort,
    UnionAll,
    names,
)
from .contract import CatalogLike
from .expressions import Expr, bare, references
from .oracle import Oracle
from .selectivity import ColumnFacts, Selectivity, as_number
from .types import width_bytes


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows, and what is assumed of every column."""

    rows: float
    columns: dict[str, ColumnFacts]

    def width_bytes(self, node: Node) -> float:
        return sum(self.columns[field.name].width_bytes for field in node.fields) + 1

    def kept(self, rows: float) -> Estimate:
        """As many of the rows, taken evenly."""
        rows = max(rows, 0.0)
        return Estimate(
            rows,
            {
                name: facts if facts.distinct <= rows else replace(facts, distinct=max(rows, 1.0))
                for name, facts in self.columns.items()
            },
        )


class Cardinality:
    """Estimates by node; each is computed once."""

    def __init__(self, catalog: CatalogLike, oracle: Oracle) -> None:
        self._catalog = catalog
        self.oracle = oracle
        self._constants: dict[str, Any] = {}
        self._known: dict[int, tuple[Node, Estimate]] = {}
        self.selectivity = Selectivity(self._constant)

    def _constant(self, text: str) -> Any:
        if text not in self._constants:
            self._constants[text] = self.oracle.constant(text)
        return self._constants[text]

    def rows(self, node: Node) -> float:
        return self.of(node).rows

    def bytes(self, node: Node) -> float:
        estimate = self.of(node)
        return estimate.rows * estimate.width_bytes(node)

    def of(self, node: Node) -> Estimate:
        """The estimate of a node."""
        found = self._known.get(id(node))
        if found is None:
            found = (node, self._compute(node))
            self._known[id(node)] = found
        return found[1]

    def _compute(self, node: Node) -> Estimate:
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, OneRow):
            return Estimate(1.0, {})
        if isinstance(node, Filter):
            child = self.of(node.child)
            return child.kept(child.rows * self.selectivity.of_all(node.conditions, child.columns))
        if isinstance(node, Project):
            return self._project(node)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, UnionAll):
            return self._union(node)
        if isinstance(node, Sort):
            child = self.of(node.child)
            return child if node.limit is None else child.kept(min(child.rows, float(node.limit)))
        return self.of(node.child)

    def _scan(self, node: Scan) -> Estimate:
        statistics = self._catalog.statistics(node.table)
        rows = float(statistics.rows)
        known = {name.lower(): column for name, column in statistics.columns.items()}
        columns = {}
        for field in node.fields:
            found = known.get(node.columns[field.name].lower())
            columns[field.name] = _facts(found, rows, field.type)
        return Estimate(rows, columns)

    def _project(self, node: Project) -> Estimate:
        child = self.of(node.child)
        columns = {}
        for (name, expression), field in zip(node.items, node.fields, strict=True):
            plain = bare(expression)
            if isinstance(plain, exp.Column):
                columns[name] = child.columns[plain.name]
                continue
            distinct = 1.0
            for source in references(plain):
                distinct = min(distinct * child.columns[source].distinct, max(child.rows, 1.0))
            columns[name] = ColumnFacts(distinct, width_bytes=width_bytes(field.type))
        return Estimate(child.rows, columns)

    def _join(self, node: Join) -> Estimate:
        left, right = self.of(node.left), self.of(node.right)
        columns = {**left.columns, **right.columns}
        if node.kind in ("semi", "anti"):
            share = self._matched_share(node, left, right)
            keys = [c for c in node.conditions if key_pair(c, names(node.left))]
            # A further condition leaves more without a partner than keys alone would say.
            missed = 1 - share * (1.0 if len(keys) == len(node.conditions) else 0.5)
            return left.kept(left.rows * (share if node.kind == "semi" else max(missed, 0.1)))
        rows = left.rows * right.rows * self._pair_share(node, columns)
        if node.kind in ("left", "full"):
            rows = max(rows, left.rows)
        if node.kind in ("right", "full"):
            rows = max(rows, right.rows)
        return Estimate(rows, columns).kept(rows)

    def _pair_share(self, node: Join, columns: dict[str, ColumnFacts]) -> float:
        """The share of pairs that match; further keys count less, as keys go together."""
        left = names(node.left)
        keys, others = [], []
        for condition in node.conditions:
            pair = key_pair(condition, left)
            if pair is None:
                others.append(condition)
                continue
            counts = [_distinct(side, columns) for side in pair]
            keys.append(1 / max(*counts, 1.0))
        share, power = 1.0, 1.0
        for key in sorted(keys):
            share *= key**power
            power /= 2
        return share * (self.selectivity.of_all(others, columns) if others else 1.0)

    def _matched_share(self, node: Join, left: Estimate, right: Estimate) -> float:
        mine = names(node.left)
        share = 1.0
        others = 0
        for condition in node.conditions:
            pair = key_pair(condition, mine)
            if pair is None:
                others += 1
                continue
            ratio = _distinct(pair[1], right.columns) / max(_distinct(pair[0], left.columns), 1.0)
            share = min(share, ratio)
        return max(min(share, 1.0) * (0.9**others), 1e-6)

    def _aggregate(self, node: Aggregate) -> Estimate:
        child = self.of(node.child)
        groups = 1.0
        for _, source in node.keys:
            groups = min(groups * max(child.columns[source].distinct, 1.0), max(child.rows, 1.0))
        columns = {name: child.columns[source] for name, source in node.keys}
        for field in node.fields:
            if field.name not in columns:
                columns[field.name] = ColumnFacts(groups, width_bytes=width_bytes(field.type))
        return Estimate(groups, columns).kept(groups)

    def _union(self, node: UnionAll) -> Estimate:
        parts = [self.of(child) for child in node.inputs]
        columns = {}
        for position, field in enumerate(node.fields):
            facts = [
                part.columns[child.fields[position].name]
                for part, child in zip(parts, node.inputs, strict=True)
            ]
            columns[field.name] = ColumnFacts(
                max(f.distinct for f in facts), width_bytes=max(f.width_bytes for f in facts)
            )
        return Estimate(sum(part.rows for part in parts), columns)


def key_pair(condition: Expr, left: frozenset[str]) -> tuple[Expr, Expr] | None:
    """The two sides of an equality between the inputs of a join, the left one first."""
    condition = bare(condition)
    if not isinstance(condition, exp.EQ):
        return None
    one, other = bare(condition.this), bare(condition.expression)
    mine, theirs = references(one), references(other)
    if not mine or not theirs:
        return None
    if mine <= left and not theirs & left:
        return one, other
    if theirs <= left and not mine & left:
        return other, one
    return None


def _distinct(expression: Expr, columns: dict[str, ColumnFacts]) -> float:
    counts = [columns[name].distinct for name in references(expression) if name in columns]
    return max(counts, default=1.0)


def _facts(found: Any, rows: float, found_type: str) -> ColumnFacts:
    """Facts from a column's statistics, with guesses where they say nothing."""
    width = width_bytes(found_type)
    if found is None:
        return ColumnFacts(_guessed_distinct(rows, None, None, found_type), width_bytes=width)
    low, high = as_number(found.min), as_number(found.max)
    distinct = found.distinct
    if not distinct:
        distinct = _guessed_distinct(rows, low, high, found_type)
    return ColumnFacts(
        min(float(distinct), max(rows, 1.0)),
        low,
        high,
        float(found.null_share or 0.0),
        float(found.average_width_bytes or width),
    )


def _guessed_distinct(rows: float, low: float | None, high: float | None, found_type: str) -> float:
    """Whole numbers and days fill their span; of the rest a tenth of the rows differ."""
    if (
        low is not None
        and high is not None
        and found_type
        in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DATE", "UINTEGER", "UBIGINT")
    ):
        return max(min(rows, high - low + 1), 1.0)
    return max(rows / 10, 1.0)
