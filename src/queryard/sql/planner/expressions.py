"""Small things one does with sqlglot's expression trees: write, take apart, replace columns.

Inside a plan every column has a name that is unique in the whole plan, so a reference is a bare
identifier and never ambiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from sqlglot import exp

Expr = exp.Expr

_OPERATORS = (exp.Binary, exp.Not, exp.Neg, exp.Between, exp.In)
_NO_PARENTHESES = (exp.Dot, exp.PropertyEQ, exp.Slice, exp.Kwarg)


def parenthesised(tree: Expr) -> Expr:
    """A copy in which every operator stands in parentheses, so that the text shows the tree."""
    copy = tree.copy()
    root = exp.Paren(this=copy)
    for node in list(copy.walk()):
        if (
            isinstance(node, _OPERATORS)
            and not isinstance(node, _NO_PARENTHESES)
            and not isinstance(node.parent, exp.Paren | exp.Escape)
        ):
            parentheses = exp.Paren()
            node.replace(parentheses)
            parentheses.set("this", node)
    inner = root.this
    inner.pop()
    return inner if not isinstance(inner, _OPERATORS) else exp.Paren(this=inner)


def text(expression: Expr) -> str:
    """DuckDB's SQL for an expression or a query, each operator in parentheses.

    >>> import sqlglot
    >>> text(sqlglot.parse_one("not a = b - c - 1"))
    '(NOT (a = ((b - c) - 1)))'
    """
    return parenthesised(expression).sql("duckdb", comments=False)


def column(name: str) -> exp.Column:
    """A reference to a column of the plan."""
    return exp.Column(this=exp.Identifier(this=name, quoted=False))


def references(expression: Expr) -> frozenset[str]:
    """The columns of the plan an expression reads."""
    return frozenset(node.name for node in expression.find_all(exp.Column))


def bare(expression: Expr) -> Expr:
    """The expression without parentheses around it."""
    while isinstance(expression, exp.Paren):
        expression = expression.this
    return expression


def conjuncts(expression: Expr) -> Iterator[Expr]:
    """The conditions joined by AND."""
    expression = bare(expression)
    if isinstance(expression, exp.And):
        yield from conjuncts(expression.this)
        yield from conjuncts(expression.expression)
    else:
        yield expression


def disjuncts(expression: Expr) -> Iterator[Expr]:
    """The conditions joined by OR."""
    expression = bare(expression)
    if isinstance(expression, exp.Or):
        yield from disjuncts(expression.this)
        yield from disjuncts(expression.expression)
    else:
        yield expression


def all_of(conditions: Iterable[Expr]) -> Expr:
    """The conditions joined by AND (at least one)."""
    found: Expr | None = None
    for condition in conditions:
        found = condition.copy() if found is None else exp.And(this=found, expression=condition)
    assert found is not None
    return found


def any_of(conditions: Iterable[Expr]) -> Expr:
    """The conditions joined by OR (at least one)."""
    found: Expr | None = None
    for condition in conditions:
        found = condition.copy() if found is None else exp.Or(this=found, expression=condition)
    assert found is not None
    return found


def rewritten(node: Expr, visit: Callable[[Expr], Expr | None]) -> Expr:
    """A copy in which every topmost node for which `visit` gives something is replaced by it."""
    replacement = visit(node)
    if replacement is not None:
        return replacement

    def mapped(value: Any) -> Any:
        if isinstance(value, exp.Expr):
            return rewritten(value, visit)
        if isinstance(value, list):
            return [mapped(item) for item in value]
        return value

    return type(node)(**{key: mapped(value) for key, value in node.args.items()})


def substituted(expression: Expr, replacements: Mapping[str, Expr]) -> Expr:
    """The expression with columns of the plan replaced by expressions."""

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, exp.Column) and node.name in replacements:
            return replacements[node.name].copy()
        return None

    return rewritten(expression, visit)


def cast(expression: Expr, duckdb_type: str) -> Expr:
    """CAST (expression AS type), with DuckDB's own text for the type."""
    return exp.Cast(this=expression, to=exp.Var(this=duckdb_type))
