"""What share of rows a condition keeps, from what is known of the columns it reads.

S_pred of TLS: ranges, equality, IN, BETWEEN, IS NULL and their AND, OR, NOT, from histograms where
there are some, else from ranges and distinct counts. A condition on a null is not true, and neither
is its negation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from queryard.sql.statistics.distinct import remaining
from queryard.sql.statistics.distribution import Distribution, Range
from queryard.sql.statistics.positions import position

from .expressions import Expr, bare, conjuncts, disjuncts, references, text
from .origins import Origin

_GUESS = 0.3
_PATTERN = 0.08
_PREFIX = 0.05
_COMPUTED = 0.05
Constant = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is assumed of a column of an intermediate relation.

    `low` and `high` are positions; `spread` says how the values that are not null lie between them.
    """

    distinct: float
    low: float | None = None
    high: float | None = None
    null_share: float = 0.0
    width_bytes: float = 8.0
    spread: Distribution | None = None
    origin: Origin | None = None
    """What it is over the columns of one table, for questions about a sample of that table."""
    frequent: Mapping[Any, float] | None = None
    """Shares of frequent values, where a join has changed those of the origin."""
    clustered: bool = False
    """Whether rows of equal values lie together in the table."""

    @property
    def present(self) -> float:
        """The share of rows that have a value."""
        return 1 - self.null_share

    def share_at(self, value: float | None) -> float:
        """The share of rows that have one value; None if it is not known which."""
        if self.spread is not None and value is not None and self.spread.rows > 0:
            return self.present * self.spread.rows_at(value) / self.spread.rows
        return self.present / max(self.distinct, 1.0)

    def share_in(self, given: Range) -> float:
        """The share of rows in a range."""
        if given.low > given.high:
            return 0.0
        if self.spread is not None and self.spread.rows > 0:
            return self.present * self.spread.rows_in(given) / self.spread.rows
        if self.low is None or self.high is None:
            return _GUESS
        if self.high <= self.low:
            return self.present if given.low <= self.low <= given.high else 0.0
        covered = min(given.high, self.high) - max(given.low, self.low)
        share = min(max(covered / (self.high - self.low), 0.0), 1.0)
        # Ranges of files may be older than the files: some value may lie there all the same.
        return self.present * max(share, 1 / max(self.distinct, 1.0))

    def within(self, given: Range) -> ColumnFacts:
        """The same for the rows in a range, none of which is null."""
        low = given.low if self.low is None else max(self.low, given.low)
        high = given.high if self.high is None else min(self.high, given.high)
        spread = None if self.spread is None else self.spread.within(given)
        if spread is not None:
            distinct = spread.distinct
        else:
            distinct = self.distinct * min(self.share_in(given) / max(self.present, 1e-9), 1.0)
        return replace(
            self,
            low=low if low > -float("inf") else None,
            high=high if high < float("inf") else None,
            null_share=0.0,
            spread=spread,
            distinct=max(distinct, 1.0),
        )

    def kept(self, rows: float, share: float) -> ColumnFacts:
        """The same for a share of so many rows, taken evenly; above 1, each of them so often."""
        distinct = remaining(self.distinct, rows * self.present, share)
        spread = None if self.spread is None else self.spread.kept(share)
        return replace(self, distinct=max(min(distinct, rows * share), 1.0), spread=spread)


class Selectivity:
    """Shares of rows; `constant` gives the value of an expression without columns."""

    def __init__(self, constant: Constant) -> None:
        self._constant = constant

    def of_all(self, conditions: Iterable[Expr], facts: Mapping[str, ColumnFacts]) -> float:
        """All conditions at once: ranges of one column together, the rest as if independent."""
        ranges, others = self._parted(conditions, facts)
        share = 1.0
        for name, given in ranges.items():
            share *= facts[name].share_in(given)
        for condition in others:
            share *= self.of(condition, facts)
        return min(max(share, 1e-9), 1.0)

    def is_plain(self, condition: Expr, facts: Mapping[str, ColumnFacts]) -> bool:
        """Whether a condition compares a column on an axis with constants."""
        condition = bare(condition)
        if isinstance(condition, exp.EQ):
            sides = (condition.this, condition.expression)
            on_axis = any(_on_axis(side, facts) is not None for side in sides)
            return on_axis and any(self._position(side) is not None for side in sides)
        if isinstance(condition, exp.In) and not condition.args.get("query"):
            values = [self._position(value) for value in condition.expressions]
            return _on_axis(condition.this, facts) is not None and None not in values
        return self._range(condition, facts) is not None

    def narrowed(
        self, conditions: Iterable[Expr], facts: Mapping[str, ColumnFacts]
    ) -> dict[str, ColumnFacts]:
        """What the conditions say of the columns whose values they bound."""
        ranges, _ = self._parted(conditions, facts)
        return {name: facts[name].within(given) for name, given in ranges.items()}

    def of(self, condition: Expr, facts: Mapping[str, ColumnFacts]) -> float:
        """One condition."""
        condition = bare(condition)
        if isinstance(condition, exp.And):
            return self.of_all([condition], facts)
        if isinstance(condition, exp.Or):
            missed = 1.0
            for part in disjuncts(condition):
                missed *= 1 - self.of_all([part], facts)
            return 1 - missed
        if isinstance(condition, exp.Not):
            return self._negated(bare(condition.this), facts)
        bounds = self._range(condition, facts)
        if bounds is not None:
            return max(facts[bounds[0]].share_in(bounds[1]), 1e-9)
        return self._simple(condition, facts)

    def _negated(self, condition: Expr, facts: Mapping[str, ColumnFacts]) -> float:
        share = self.of(condition, facts)
        if isinstance(condition, exp.Is):
            return max(1 - share, 0.0)
        present = 1.0
        for name in references(condition):
            if name in facts:
                present = min(present, facts[name].present)
        return max(present - share, 0.0)

    def _simple(self, condition: Expr, facts: Mapping[str, ColumnFacts]) -> float:
        if isinstance(condition, exp.EQ):
            return self._equal(condition.this, condition.expression, facts)
        if isinstance(condition, exp.NEQ):
            equal = exp.EQ(this=condition.this, expression=condition.expression)
            return self._negated(equal, facts)
        if isinstance(condition, exp.In) and not condition.args.get("query"):
            shares = [self._equal(condition.this, one, facts) for one in condition.expressions]
            return min(sum(shares), 1.0)
        if isinstance(condition, exp.Like | exp.ILike):
            pattern = condition.expression
            prefix = isinstance(pattern, exp.Literal) and not pattern.this.startswith("%")
            return _PREFIX if prefix else _PATTERN
        if isinstance(condition, exp.Is) and isinstance(condition.expression, exp.Null):
            inner = bare(condition.this)
            if isinstance(inner, exp.Column) and inner.name in facts:
                return facts[inner.name].null_share
        return _GUESS

    def _equal(self, one: Expr, other: Expr, facts: Mapping[str, ColumnFacts]) -> float:
        one, other = bare(one), bare(other)
        if not isinstance(one, exp.Column):
            one, other = other, one
        if not isinstance(one, exp.Column) or one.name not in facts:
            return _COMPUTED
        if not references(other):
            return facts[one.name].share_at(self._position(other))
        known = [facts[name] for name in (one.name, *references(other)) if name in facts]
        present = min(each.present for each in known)
        return present / max(*(each.distinct for each in known), 1.0)

    # --- ranges ----------------------------------------------------------------------------------

    def _parted(
        self, conditions: Iterable[Expr], facts: Mapping[str, ColumnFacts]
    ) -> tuple[dict[str, Range], list[Expr]]:
        """The range that conditions leave of each column, and all other conditions."""
        ranges: dict[str, Range] = {}
        others = []
        for condition in (c for whole in conditions for c in conjuncts(whole)):
            bounds = self._range(condition, facts)
            if bounds is None:
                others.append(condition)
            else:
                name, given = bounds
                ranges[name] = ranges.get(name, Range()) & given
        return ranges, others

    def _range(self, condition: Expr, facts: Mapping[str, ColumnFacts]) -> tuple[str, Range] | None:
        """The range that a condition leaves of a column on an axis."""
        condition = bare(condition)
        if isinstance(condition, exp.Between):
            name = _on_axis(condition.this, facts)
            low, high = (self._position(condition.args[end]) for end in ("low", "high"))
            if name is None or low is None or high is None:
                return None
            return name, Range(low, high)
        if not isinstance(condition, exp.LT | exp.LTE | exp.GT | exp.GTE):
            return None
        below = isinstance(condition, exp.LT | exp.LTE)
        belongs = isinstance(condition, exp.LTE | exp.GTE)
        left, right = condition.this, condition.expression
        if not isinstance(bare(left), exp.Column):
            left, right, below = right, left, not below
        name, value = _on_axis(left, facts), self._position(right)
        if name is None or value is None:
            return None
        if below:
            return name, Range(high=value, with_high=belongs)
        return name, Range(low=value, with_low=belongs)

    def _position(self, value: Expr) -> float | None:
        if references(value):
            return None
        found = self._constant(text(value))
        return None if isinstance(found, bool) else position(found)


def _on_axis(column: Expr, facts: Mapping[str, ColumnFacts]) -> str | None:
    """The name of a column whose values have known positions."""
    column = bare(column)
    if not isinstance(column, exp.Column):
        return None
    known = facts.get(column.name)
    if known is None or known.low is None or known.high is None:
        return None
    return str(column.name)
