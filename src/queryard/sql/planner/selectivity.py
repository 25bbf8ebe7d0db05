"""What share of rows a condition keeps, from what is known of the columns it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sqlglot import exp

from .expressions import Expr, bare, conjuncts, disjuncts, references, text

_GUESS = 0.3
_PATTERN = 0.08
_PREFIX = 0.05
Constant = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What is assumed of a column of an intermediate relation."""

    distinct: float
    low: float | None = None
    high: float | None = None
    null_share: float = 0.0
    width_bytes: float = 8.0


def as_number(value: Any) -> float | None:
    """A value on a line, so that ranges have lengths; None for what has no such order.

    >>> as_number(date(1970, 1, 11)) - as_number(date(1970, 1, 1))
    10.0
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, datetime):
        return value.toordinal() + (value.hour * 60 + value.minute) / 1440
    if isinstance(value, date):
        return float(value.toordinal())
    if isinstance(value, int | float | Decimal):
        return float(value)
    return None


class Selectivity:
    """Shares of rows; `constant` gives the value of an expression without columns."""

    def __init__(self, constant: Constant) -> None:
        self._constant = constant

    def of_all(self, conditions: Iterable[Expr], facts: Mapping[str, ColumnFacts]) -> float:
        """All conditions at once: ranges of one column together, the rest as if independent."""
        lows: dict[str, float] = {}
        highs: dict[str, float] = {}
        share = 1.0
        for condition in (c for whole in conditions for c in conjuncts(whole)):
            bounds = self._bounds(condition, facts)
            if bounds is None:
                share *= self.of(condition, facts)
                continue
            name, low, high = bounds
            lows[name] = max(low, lows.get(name, 0.0))
            highs[name] = min(high, highs.get(name, 1.0))
        for name in lows:
            share *= max(highs[name] - lows[name], 1 / max(facts[name].distinct, 1.0))
        return min(max(share, 1e-9), 1.0)

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
            return max(1 - self.of(condition.this, facts), 0.01)
        bounds = self._bounds(condition, facts)
        if bounds is not None:
            return max(bounds[2] - bounds[1], 1e-6)
        return self._simple(condition, facts)

    def _simple(self, condition: Expr, facts: Mapping[str, ColumnFacts]) -> float:
        if isinstance(condition, exp.EQ):
            counts = [facts[n].distinct for n in references(condition) if n in facts]
            plain = isinstance(bare(condition.this), exp.Column) or isinstance(
                bare(condition.expression), exp.Column
            )
            return 1 / max([*counts, 1.0]) if plain else 0.05
        if isinstance(condition, exp.In) and not condition.args.get("query"):
            inner = bare(condition.this)
            count = len(condition.expressions)
            if isinstance(inner, exp.Column) and inner.name in facts:
                return min(1.0, count / max(facts[inner.name].distinct, 1.0))
            return min(0.5, 0.05 * count)
        if isinstance(condition, exp.Like | exp.ILike):
            pattern = condition.expression
            prefix = isinstance(pattern, exp.Literal) and not pattern.this.startswith("%")
            return _PREFIX if prefix else _PATTERN
        if isinstance(condition, exp.Is):
            inner = bare(condition.this)
            if isinstance(inner, exp.Column) and inner.name in facts:
                return max(facts[inner.name].null_share, 1e-3)
        if isinstance(condition, exp.NEQ):
            return 0.9
        return _GUESS

    def _bounds(
        self, condition: Expr, facts: Mapping[str, ColumnFacts]
    ) -> tuple[str, float, float] | None:
        """A range of one column as shares of its span: (column, from, to)."""
        condition = bare(condition)
        if isinstance(condition, exp.Between):
            inner = bare(condition.this)
            low = self._place(inner, condition.args["low"], facts)
            high = self._place(inner, condition.args["high"], facts)
            return None if low is None or high is None else (inner.name, low, high)
        if not isinstance(condition, exp.LT | exp.LTE | exp.GT | exp.GTE):
            return None
        below = isinstance(condition, exp.LT | exp.LTE)
        left, right = bare(condition.this), bare(condition.expression)
        if not isinstance(left, exp.Column):
            left, right, below = right, left, not below
        place = self._place(left, right, facts)
        if place is None:
            return None
        return (left.name, 0.0, place) if below else (left.name, place, 1.0)

    def _place(self, column: Expr, value: Expr, facts: Mapping[str, ColumnFacts]) -> float | None:
        if not isinstance(column, exp.Column) or references(value):
            return None
        known = facts.get(column.name)
        if known is None or known.low is None or known.high is None:
            return None
        number = as_number(self._constant(text(value)))
        if number is None:
            return None
        if known.high <= known.low:
            return 1.0 if number > known.low else 0.0
        return min(max((number - known.low) / (known.high - known.low), 0.0), 1.0)
