"""What an expression contains: calls of aggregates, and subqueries."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from .aggregates import AGGREGATES, QUANTILES
from .errors import NotStageable
from .expressions import Expr, bare
from .oracle import function_kinds


def is_subquery(node: Expr) -> bool:
    """Whether the node is a subquery used as a value."""
    if isinstance(node, exp.Any | exp.All):
        raise NotStageable("ANY and ALL are not taken apart")
    in_query = isinstance(node, exp.In) and node.args.get("query") is not None
    return isinstance(node, exp.Query | exp.Exists) or in_query


def has_subquery(node: Expr) -> bool:
    return any(isinstance(inner, exp.Query | exp.Exists) for inner in node.walk())


def aggregate_name(node: Expr) -> str | None:
    """The aggregate's name in DuckDB, if the node is a call of one."""
    if isinstance(node, exp.Filter):
        return aggregate_name(node.this)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return name if name in function_kinds().aggregates else None
    if isinstance(node, exp.AggFunc):
        return node.sql("duckdb").split("(", 1)[0].strip().lower()
    return None


def aggregates_in(node: Expr) -> Iterator[Expr]:
    """The outermost aggregate calls, not looking into subqueries."""
    if aggregate_name(node) is not None:
        yield node
    elif not isinstance(node, exp.Query | exp.Exists):
        for child in node.iter_expressions():
            yield from aggregates_in(child)


def read_call(node: Expr) -> tuple[str, Expr | None, bool, Expr | None]:
    """Function, argument (None for all rows), DISTINCT and FILTER of an aggregate call."""
    condition = None
    if isinstance(node, exp.Filter):
        condition = bare(node.expression.this)
        node = node.this
    name = aggregate_name(node) or ""
    if name not in AGGREGATES and name not in QUANTILES:
        raise NotStageable(f"the aggregate {name} has no exact partial form here")
    arguments = [
        value
        for key, given in node.args.items()
        for value in (given if isinstance(given, list) else [given])
        if isinstance(value, exp.Expr) and not (isinstance(node, exp.Anonymous) and key == "this")
    ]
    if name in QUANTILES:
        return *_quantile(name, arguments), False, condition
    if len(arguments) > 1:
        raise NotStageable(f"{name} of several arguments is not split")
    distinct = bool(arguments) and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = arguments[0].expressions
        if len(arguments) != 1:
            raise NotStageable(f"{name} of several arguments is not split")
    if not arguments or isinstance(arguments[0], exp.Star):
        if AGGREGATES[name] != "count" or distinct:
            raise NotStageable(f"{name}(*) is not split")
        return "count", None, False, condition
    if isinstance(arguments[0], exp.Order | exp.Limit | exp.IgnoreNulls | exp.HavingMax):
        raise NotStageable(f"{name} with ORDER BY depends on the order of rows")
    return AGGREGATES[name], arguments[0], distinct, condition


def _quantile(name: str, arguments: list[Expr]) -> tuple[str, Expr]:
    """The function with its share, and what it is computed of."""
    values, *shares = [bare(argument) for argument in arguments]
    if isinstance(values, exp.Distinct | exp.Order | exp.Star):
        raise NotStageable(f"{name} with DISTINCT, ORDER BY or * is not analysed")
    if name == "median" and not shares:
        return "quantile_cont@0.5", values
    try:
        (share,) = shares
        found = float(share.this) if isinstance(share, exp.Literal) else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise NotStageable(f"{name} without a plain number from 0 to 1 is not analysed")
    return f"quantile_cont@{found!r}", values
