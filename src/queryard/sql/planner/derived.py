"""How many values an expression can have, where that follows from its form."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sqlglot import exp

from .expressions import Expr, bare, references
from .selectivity import ColumnFacts

_DAY_S = 86_400.0
# Parts of a date that come round again.
_PARTS = {"quarter": 4.0, "month": 12.0, "week": 53.0, "day": 31.0, "hour": 24.0, "minute": 60.0}
_PARTS |= {"second": 60.0, "dayofweek": 7.0, "dow": 7.0, "isodow": 7.0, "doy": 366.0}
# Lengths of periods in days.
_PERIODS = {"year": 365.25, "quarter": 91.3, "month": 30.4, "week": 7.0, "day": 1.0}
_PERIODS |= {"decade": 3652.5, "hour": 1 / 24, "minute": 1 / 1440, "second": 1 / 86_400}
_NAMED = {exp.Year: "year", exp.Quarter: "quarter", exp.Month: "month", exp.Day: "day"}
_NAMED |= {exp.Hour: "hour", exp.Minute: "minute", exp.DayOfWeek: "dayofweek", exp.Week: "week"}


def distinct_values(
    expression: Expr, columns: Mapping[str, ColumnFacts], types: Mapping[str, str], rows: float
) -> float:
    """About how many different values an expression has over some rows."""
    most = max(rows, 1.0)
    possible = 1.0
    for source in references(expression):
        possible = min(possible * columns[source].distinct, most)
    return max(min(possible, _by_form(bare(expression), columns, types)), 1.0)


def _by_form(
    expression: Expr, columns: Mapping[str, ColumnFacts], types: Mapping[str, str]
) -> float:
    """The most that the form of an expression allows."""
    unit = _unit(expression)
    if unit is not None:
        whole, name = unit
        most = math.inf if whole else _PARTS.get(name, math.inf)
        if (whole or name == "year") and name in _PERIODS:
            most = min(most, _periods(expression, _PERIODS[name], columns, types))
        return most
    if isinstance(expression, exp.Case):
        results = [case.args["true"] for case in expression.args["ifs"]]
        results.append(expression.args.get("default") or exp.Null())
        if not any(references(each) for each in results):
            return float(len({each.sql() for each in results}))
    if isinstance(expression, exp.Mod) and isinstance(bare(expression.expression), exp.Literal):
        try:
            return abs(float(bare(expression.expression).this)) or math.inf
        except ValueError:
            return math.inf
    if isinstance(expression, exp.Predicate | exp.Connector | exp.Not):
        return 3.0  # true, false, null
    return math.inf


def _unit(expression: Expr) -> tuple[bool, str] | None:
    """Whether it is a whole period or a part of one, and which."""
    for kind, name in _NAMED.items():
        if isinstance(expression, kind):
            return False, name
    if isinstance(expression, exp.Extract):
        return False, str(expression.this.name).lower()
    if isinstance(expression, exp.TimestampTrunc | exp.DateTrunc):
        return True, str(expression.args["unit"].name).lower()
    return None


def _periods(
    expression: Expr, days: float, columns: Mapping[str, ColumnFacts], types: Mapping[str, str]
) -> float:
    """How many periods the only column of an expression spans."""
    sources = list(references(expression))
    if len(sources) != 1:
        return math.inf
    facts = columns[sources[0]]
    if facts.low is None or facts.high is None:
        return math.inf
    length = days if types.get(sources[0]) == "DATE" else days * _DAY_S
    return math.floor((facts.high - facts.low) / length) + 1.0
