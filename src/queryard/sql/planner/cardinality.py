"""How many rows, distinct values and bytes each node of a plan is expected to have."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from queryard.sql.statistics.distinct import remaining
from queryard.sql.statistics.matching import Side, joined, matched_share

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
from .expressions import Expr, bare, references
from .facts import column_facts
from .filters import Filters
from .oracle import Oracle
from .origins import Origin, Scanned, origin_of
from .selectivity import ColumnFacts, Selectivity
from .types import width_bytes

_NOTHING: Mapping[str, ColumnFacts] = {}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Rows, and what is assumed of every column."""

    rows: float
    columns: dict[str, ColumnFacts]
    scans: Mapping[int, Scanned] = dataclasses.field(default_factory=dict)
    """What is left of the tables that its columns come from."""

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
        return Estimate(rows, columns, self.scans)


class Cardinality:
    """Estimates by node; each is computed once."""

    def __init__(self, catalog: CatalogLike, oracle: Oracle) -> None:
        self._catalog = catalog
        self.oracle = oracle
        self._constants: dict[str, Any] = {}
        self._known: dict[int, tuple[Node, Estimate]] = {}
        self.selectivity = Selectivity(self._constant)
        self._filters = Filters(catalog, self.selectivity)
        self._judging = self._filters.judging

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
            share, scans = self._filters.kept(node.conditions, child.columns, child.scans)
            narrowed = self.selectivity.narrowed(node.conditions, child.columns)
            return replace(child.kept(child.rows * share, narrowed), scans=scans)
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
        scan = id(node)
        for field in node.fields:
            name = node.columns[field.name]
            facts = column_facts(known.get(name.lower()), rows, field.type)
            origin = Origin(scan, exp.column(exp.to_identifier(name, quoted=True)))
            columns[field.name] = replace(facts, origin=origin)
        return Estimate(rows, columns, {scan: Scanned(node.table, rows)})

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
            width = width_bytes(field.type)
            origin = origin_of(plain, {n: facts.origin for n, facts in child.columns.items()})
            if origin is not None and field.type == "VARCHAR":
                width = self._judging.width(child.scans[origin.scan], origin) or width
            columns[name] = ColumnFacts(distinct, width_bytes=width, origin=origin)
        return Estimate(child.rows, columns, child.scans)

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
        rows, least = inner, 0.0
        # Every row of a side that is kept comes at least once.
        if node.kind in ("left", "full"):
            rows += left.rows * (1 - self._matched_share(node, left, right))
            least = left.rows
        if node.kind in ("right", "full"):
            rows += right.rows * (1 - self._matched_share(node, left, right, of_right=True))
            least = max(least, right.rows)
        rows = max(rows, least)
        columns = {
            **left.kept(rows).columns,
            **right.kept(rows).columns,
        }
        scans = {**left.scans, **right.scans}
        if node.kind == "inner":
            known = {name: facts for name, facts in joined.items() if name in columns}
            return Estimate(rows, columns, scans).kept(rows, known)
        return Estimate(rows, columns, scans)

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
        pairs_of_keys: list[tuple[Expr, Expr]] = []
        others = []
        known: dict[str, ColumnFacts] = {}
        for condition in node.conditions:
            keys = key_pair(condition, mine)
            if keys is None:
                others.append(condition)
                continue
            one, other = self._side(keys[0], left), self._side(keys[1], right)
            pairs_of_keys.append(keys)
            both = joined(one, other)
            shares.append(min(both.rows / pairs, 1.0))
            known |= _after_join(keys, columns, both)
        share, power = 1.0, 1.0
        for each in sorted(shares):
            share *= each**power
            power /= 2
        if len(shares) > 1:
            # Keys together: combinations that a side has; no more rows than for one key alone.
            mine_, theirs = (list(side) for side in zip(*pairs_of_keys, strict=True))
            one_, other_ = self._combinations(mine_, left), self._combinations(theirs, right)
            if one_ is not None and other_ is not None:
                share = min(max(1 / max(one_, other_, 1.0), math.prod(shares)), min(shares))
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
            sides = self._side(pair[0], left), self._side(pair[1], right)
            one, other = reversed(sides) if of_right else sides
            present = _present(pair[1] if of_right else pair[0], right if of_right else left)
            matched = present * matched_share(one, other)
            share = min(share, matched)
        return max(min(share, 1.0) * (0.9**others), 1e-6)

    def _side(self, key: Expr, estimate: Estimate) -> Side:
        """What is known of a key of a join."""
        facts = _plain(key, estimate.columns)
        if facts is None:
            origin = origin_of(key, {n: known.origin for n, known in estimate.columns.items()})
            facts = ColumnFacts(_distinct(key, estimate.columns), origin=origin)
        rows = estimate.rows * facts.present
        distinct, frequent = facts.distinct, facts.frequent
        if facts.origin is not None:
            scan = estimate.scans[facts.origin.scan]
            if frequent is None:
                frequent = self._judging.frequent(scan, facts.origin)
            if scan.condition:
                # Skewed columns keep fewer of their values than a filter keeps of the rows.
                left = self._judging.distinct(scan, [facts.origin])
                distinct = distinct if left is None else min(distinct, max(left, 1.0))
        spread = None if facts.spread is None else facts.spread.of_rows(rows)
        return Side(rows, max(min(distinct, rows), 1.0), frequent or {}, spread)

    def _combinations(self, keys: Sequence[Expr], side: Estimate) -> float | None:
        """How many combinations of its keys a side of a join has, if they are columns."""
        if any(_plain(key, side.columns) is None for key in keys):
            return None
        return self.groups([key.name for key in keys], side)

    def groups(self, sources: Sequence[str], child: Estimate) -> float:
        """How many groups some columns make: combinations per table, from its sample."""
        by_scan: dict[int, list[str]] = {}
        parts = []
        for source in sources:
            origin = child.columns[source].origin
            if origin is None:
                parts.append(_values(child.columns[source]))
            else:
                by_scan.setdefault(origin.scan, []).append(source)
        for number, names_ in by_scan.items():
            scan = child.scans[number]
            most = math.prod(_values(child.columns[name]) for name in names_)
            origins = [o for name in names_ if (o := child.columns[name].origin) is not None]
            # What joins leave of the rows has fewer of the combinations.
            share = child.rows / scan.left if scan.left > 0 else 1.0
            if len(names_) > 1 or share < 1 or scan.condition:
                found = self._judging.distinct(scan, origins, share)
                most = most if found is None else min(most, max(found, 1.0))
            parts.append(most)
        whole = math.prod(parts)
        rows = max(child.rows, 1.0)
        if len(parts) > 1:
            # Combinations of tables come about by chance.
            whole = remaining(whole, whole, min(1.0, -math.expm1(-rows / max(whole, 1.0))))
        return max(min(whole, rows), 1.0)

    def _aggregate(self, node: Aggregate) -> Estimate:
        child = self.of(node.child)
        groups = self.groups([source for _, source in node.keys], child)
        columns = {
            name: replace(facts, origin=None, frequent=None, spread=spread and spread.of_values)
            for name, source in node.keys
            for facts in (child.columns[source],)
            for spread in (facts.spread,)
        }
        counted = {call.out for call in node.calls if call.function.startswith("count")}
        for field in node.fields:
            if field.name not in columns:
                values = _counts(child.rows, groups) if field.name in counted else groups
                columns[field.name] = ColumnFacts(values, width_bytes=width_bytes(field.type))
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


def _after_join(
    keys: tuple[Expr, Expr], columns: Mapping[str, ColumnFacts], both: Side
) -> dict[str, ColumnFacts]:
    """What is known of keys that are columns, in the rows that a join makes."""
    known = {}
    for side in keys:
        facts = _plain(side, columns)
        if facts is not None and (both.spread is not None or both.frequent):
            known[side.name] = replace(
                facts,
                distinct=max(both.distinct, 1.0),
                spread=both.spread,
                null_share=0.0,
                frequent=both.frequent,
            )
    return known


def _counts(rows: float, groups: float) -> float:
    """About how many different counts groups have: around the mean, and their sum is the rows."""
    mean = rows / max(groups, 1.0)
    return max(min(groups, math.sqrt(2 * rows), 2 * (mean + 6 * math.sqrt(mean) + 1)), 1.0)


def _present(key: Expr, estimate: Estimate) -> float:
    facts = _plain(key, estimate.columns)
    return 1.0 if facts is None else facts.present


def _values(facts: ColumnFacts) -> float:
    """Groups of one column; its nulls are one."""
    return max(facts.distinct, 1.0) + (1.0 if facts.null_share > 0 else 0.0)


def _plain(side: Expr, columns: Mapping[str, ColumnFacts]) -> ColumnFacts | None:
    """What is known of a side of a condition that is a column by itself."""
    return columns.get(side.name) if isinstance(side, exp.Column) else None


def _distinct(expression: Expr, columns: dict[str, ColumnFacts]) -> float:
    counts = [columns[name].distinct for name in references(expression) if name in columns]
    return max(counts, default=1.0)
