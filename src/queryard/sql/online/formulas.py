"""What is computed of estimates, as plain data that can be evaluated on many rows at once.

A formula is a name and what it applies to: `("/", ("column", "c17"), ("number", 2.0))`. Columns are
aggregates of the grouping, and what DuckDB computes of keys alone. Numbers are DOUBLE, and nothing
is rounded: what leaving out a file changes is less than what rounding hides.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

from sqlglot import exp

from queryard.sql.planner.expressions import Expr, cast, references, text

from .errors import NotOnline

Formula = tuple[Any, ...]
"""A name, then formulas, a number or the name of a column."""

Kind = Literal["number", "condition"]

_ARITHMETIC: dict[type[Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "/",
    exp.Pow: "power",
}
_OF_ONE: dict[type[Expr], str] = {
    exp.Neg: "negative",
    exp.Abs: "abs",
    exp.Sqrt: "sqrt",
    exp.Ln: "ln",
    exp.Exp: "exp",
}
_OF_SEVERAL: dict[type[Expr], str] = {
    exp.Coalesce: "coalesce",
    exp.Greatest: "greatest",
    exp.Least: "least",
}
_COMPARISONS: dict[type[Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
}
_LOGIC: dict[type[Expr], str] = {exp.And: "and", exp.Or: "or"}
# What is taken as it is without them.
_ROUNDING = (exp.Round, exp.Floor, exp.Ceil, exp.Trunc)
_TRANSPARENT = (exp.Paren, exp.Cast, exp.TryCast, *_ROUNDING)


class Formulas:
    """Formulas over the aggregates of a grouping.

    `known` has the SQL of what DuckDB computes of keys: the columns k0, k1, … of each group.
    """

    def __init__(self, aggregates: Collection[str]) -> None:
        self.known: list[str] = []
        self._aggregates = aggregates

    def number(self, node: Expr) -> Formula:
        """The formula of a number."""
        formula, kind = self._made(node, "number")
        return formula if kind == "number" else ("as number", formula)

    def condition(self, node: Expr) -> Formula:
        """The formula of a condition."""
        formula, kind = self._made(node, "condition")
        return formula if kind == "condition" else ("<>", formula, ("number", 0.0))

    def _made(self, node: Expr, wanted: Kind) -> tuple[Formula, Kind]:
        if isinstance(node, exp.Column) and node.name in self._aggregates:
            return ("column", node.name), "number"
        if not references(node) & set(self._aggregates):
            return self._of_keys(node, wanted), wanted
        kind = type(node)
        if kind in _TRANSPARENT:
            return self._made(node.this, wanted)
        if kind in _ARITHMETIC:
            return self._numbers(_ARITHMETIC[kind], node.this, node.expression)
        if kind in _OF_ONE:
            return self._numbers(_OF_ONE[kind], node.this)
        if kind in _OF_SEVERAL:
            return self._numbers(_OF_SEVERAL[kind], node.this, *node.expressions)
        if kind is exp.Nullif:
            return self._numbers("nullif", node.this, node.expression)
        if kind in (exp.Case, exp.If):
            return self._case(node), "number"
        return self._condition(node), "condition"

    def _condition(self, node: Expr) -> Formula:
        kind = type(node)
        if kind in _COMPARISONS:
            name = _COMPARISONS[kind]
            return name, self.number(node.this), self.number(node.expression)
        if kind in _LOGIC:
            return _LOGIC[kind], self.condition(node.this), self.condition(node.expression)
        if kind is exp.Not:
            return "not", self.condition(node.this)
        if kind is exp.Is and isinstance(node.expression, exp.Null):
            return "is null", self.number(node.this)
        if kind is exp.Between:
            value = self.number(node.this)
            low, high = self.number(node.args["low"]), self.number(node.args["high"])
            return "and", (">=", value, low), ("<=", value, high)
        if kind is exp.In and node.expressions:
            value = self.number(node.this)
            found: Formula | None = None
            for each in node.expressions:
                equal = ("=", value, self.number(each))
                found = equal if found is None else ("or", found, equal)
            assert found is not None
            return found
        if kind is exp.Mod:
            raise NotOnline("the remainder of an estimate tells nothing")
        raise NotOnline(f"{_named(node)} of an estimate has no interval here")

    def _numbers(self, name: str, *nodes: Expr) -> tuple[Formula, Kind]:
        return (name, *(self.number(node) for node in nodes)), "number"

    def _case(self, node: Expr) -> Formula:
        """CASE, as `("if", condition, value, otherwise)` within each other."""
        if isinstance(node, exp.If):
            cases: Sequence[Expr] = [node]
            default = node.args.get("false")
        else:
            cases, default = node.args["ifs"], node.args.get("default")
        found: Formula = ("null",) if default is None else self.number(default)
        compared = None if isinstance(node, exp.If) else node.args.get("this")
        for case in reversed(cases):
            condition = (
                self.condition(case.this)
                if compared is None
                else ("=", self.number(compared), self.number(case.this))
            )
            found = ("if", condition, self.number(case.args["true"]), found)
        return found

    def _of_keys(self, node: Expr, wanted: Kind) -> Formula:
        if isinstance(node, exp.Null):
            return ("null",)
        if wanted == "number" and isinstance(node, exp.Literal) and not node.is_string:
            return "number", float(node.this)
        sql = text(cast(node.copy(), "DOUBLE" if wanted == "number" else "BOOLEAN"))
        if sql not in self.known:
            self.known.append(sql)
        return "column", f"k{self.known.index(sql)}"


def columns_of(formula: Formula) -> frozenset[str]:
    """The columns that a formula names.

    >>> sorted(columns_of(("/", ("column", "c17"), ("+", ("column", "k0"), ("number", 1.0)))))
    ['c17', 'k0']
    """
    name, *given = formula
    if name == "column":
        return frozenset(given)
    return frozenset[str]().union(*(columns_of(each) for each in given if isinstance(each, tuple)))


def _named(node: Expr) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.key
    return f"{name}(…)"
