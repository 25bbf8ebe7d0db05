"""How many rows, distinct values and bytes each node of a plan is expected to have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from queryard.sql.statistics.positions import position

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
from .derived import distinct_values
from .distribution import Distribution
from .expressions import Expr, bare, references
from .oracle import Oracle
from .selectivity import ColumnFacts, Selectivity
from .types import width_bytes

_NOTHING: Mapping[str, ColumnFacts] = {}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows, and what is assumed of every column."""

    rows: float
    columns: dict[str, ColumnFacts]

    def width_bytes(self, node: Node) -> float:
        return sum(self.columns[field.name].width_bytes for field in node.fields) + 1

    def kept(self, rows: float, known: Mapping[str, ColumnFacts] = _NOTHING) -> Estimate:
        """As many of the rows, taken evenly; of some columns more is `known`."""
        rows = max(rows, 0.0)
        share = rows / self.rows if self.rows > 0 else 1.0
        columns = {name: facts.kept(self.rows, share) for name, facts in self.columns.items()}
        for name, facts in known.items():
            spread = facts.spread
            if spread is not None and spread.rows > 0:
                spread = spread.kept(rows * facts.present / spread.rows)
            distinct = max(min(facts.distinct, rows), 1.0)
            columns[name] = replace(facts, distinct=distinct, spread=spread)
        return Estimate(rows, columns)


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
            share = self.selectivity.of_all(node.conditions, child.columns)
            narrowed = self.selectivity.narrowed(node.conditions, child.columns)
            return child.kept(child.rows * share, narrowed)
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
        types = {field.name: field.type for field in node.child.fields}
        columns = {}
        for (name, expression), field in zip(node.items, node.fields, strict=True):
            plain = bare(expression)
            if isinstance(plain, exp.Column):
                columns[name] = child.columns[plain.name]
                continue
            distinct = distinct_values(plain, child.columns, types, child.rows)
            columns[name] = ColumnFacts(distinct, width_bytes=width_bytes(field.type))
        return Estimate(child.rows, columns)

    def _join(self, node: Join) -> Estimate:
        left, right = self.of(node.left), self.of(node.right)
        if node.kind in ("semi", "anti"):
            share = self._matched_share(node, left, right)
            keys = [c for c in node.conditions if key_pair(c, names(node.left))]
            # A further condition leaves more without a partner than keys alone would say.
            missed = 1 - share * (1.0 if len(keys) == len(node.conditions) else 0.5)
            return left.kept(left.rows * (share if node.kind == "semi" else max(missed, 0.1)))
        share, joined = self._pair_share(node, left, right)
        inner = left.rows * right.rows * share
        rows = inner
        if node.kind in ("left", "full"):
            rows += left.rows * (1 - self._matched_share(node, left, right))
        if node.kind in ("right", "full"):
            rows += right.rows * (1 - self._matched_share(node, left, right, of_right=True))
        columns = {
            **left.kept(rows).columns,
            **right.kept(rows).columns,
        }
        if node.kind == "inner":
            known = {name: facts for name, facts in joined.items() if name in columns}
            return Estimate(rows, columns).kept(rows, known)
        return Estimate(rows, columns)

    def _pair_share(
        self, node: Join, left: Estimate, right: Estimate
    ) -> tuple[float, dict[str, ColumnFacts]]:
        """The share of pairs that match, and what is then known of the keys.

        Further keys count less, as keys go together.
        """
        mine = names(node.left)
        columns = {**left.columns, **right.columns}
        pairs = max(left.rows * right.rows, 1e-9)
        shares: list[float] = []
        others = []
        known: dict[str, ColumnFacts] = {}
        for condition in node.conditions:
            keys = key_pair(condition, mine)
            if keys is None:
                others.append(condition)
                continue
            one, other = (_plain(side, columns) for side in keys)
            if one is not None and other is not None and one.spread and other.spread:
                spread = one.spread.joined(other.spread)
                shares.append(min(spread.rows / pairs, 1.0))
                distinct = max(spread.distinct, 1.0)
                for side, facts in zip(keys, (one, other), strict=True):
                    known[side.name] = replace(
                        facts, distinct=distinct, spread=spread, null_share=0.0
                    )
            else:
                counts = [_distinct(side, columns) for side in keys]
                shares.append(1 / max(*counts, 1.0))
        share, power = 1.0, 1.0
        for each in sorted(shares):
            share *= each**power
            power /= 2
        return share * (self.selectivity.of_all(others, columns) if others else 1.0), known

    def _matched_share(
        self, node: Join, left: Estimate, right: Estimate, of_right: bool = False
    ) -> float:
        """The share of rows of the left side (or the right) that have a partner."""
        mine = names(node.left)
        share = 1.0
        others = 0
        for condition in node.conditions:
            pair = key_pair(condition, mine)
            if pair is None:
                others += 1
                continue
            sides = (pair[0], left.columns), (pair[1], right.columns)
            (one, ours), (other, theirs) = reversed(sides) if of_right else sides
            first, second = _plain(one, ours), _plain(other, theirs)
            if first is not None and second is not None and first.spread and second.spread:
                matched = first.present * first.spread.matched_share(second.spread)
            else:
                matched = _distinct(other, theirs) / max(_distinct(one, ours), 1.0)
            share = min(share, matched)
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
        for place, field in enumerate(node.fields):
            facts = [
                part.columns[child.fields[place].name]
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


def _plain(side: Expr, columns: Mapping[str, ColumnFacts]) -> ColumnFacts | None:
    """What is known of a side of a condition that is a column by itself."""
    return columns.get(side.name) if isinstance(side, exp.Column) else None


def _distinct(expression: Expr, columns: dict[str, ColumnFacts]) -> float:
    counts = [columns[name].distinct for name in references(expression) if name in columns]
    return max(counts, default=1.0)


def _facts(found: Any, rows: float, found_type: str) -> ColumnFacts:
    """Facts from a column's statistics, with guesses where they say nothing."""
    width = width_bytes(found_type)
    if found is None:
        return ColumnFacts(_guessed_distinct(rows, None, None, found_type), width_bytes=width)
    low, high = position(found.min), position(found.max)
    distinct = found.distinct
    if not distinct:
        distinct = _guessed_distinct(rows, low, high, found_type)
    null_share = float(found.null_share or 0.0)
    spread = None
    if found.histogram is not None:
        spread = Distribution.of(found.histogram, rows * (1 - null_share))
    return ColumnFacts(
        min(float(distinct), max(rows, 1.0)),
        low,
        high,
        null_share,
        float(found.average_width_bytes or width),
        spread,
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
