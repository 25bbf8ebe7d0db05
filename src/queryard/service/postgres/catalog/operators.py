"""Operators in expressions: comparisons, arithmetic, logic, patterns, arrays."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from .answers import UnknownCatalogQuery
from .rewriting import Handler, Rewriting
from .scopes import Output, Scope
from .typed import Typed, array_type, text_of
from .types import INTEGERS, element_of

_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_OPERATORS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "=": lambda left, right: exp.EQ(this=left, expression=right),
    "<>": lambda left, right: exp.NEQ(this=left, expression=right),
    "!=": lambda left, right: exp.NEQ(this=left, expression=right),
    "~": lambda left, right: exp.RegexpLike(this=left, expression=right),
    "!~": lambda left, right: exp.Not(this=exp.RegexpLike(this=left, expression=right)),
    "~*": lambda left, right: exp.RegexpILike(this=left, expression=right),
    "!~*": lambda left, right: exp.Not(this=exp.RegexpILike(this=left, expression=right)),
    "~~": lambda left, right: exp.Like(this=left, expression=right),
    "!~~": lambda left, right: exp.Not(this=exp.Like(this=left, expression=right)),
    "||": lambda left, right: exp.DPipe(this=left, expression=right),
}


def _is_all(node: exp.Expr) -> bool:
    """`ALL (array)`: sqlglot takes it for a call."""
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "all"


def _comparison(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    operator = _COMPARISONS[type(node)]
    right = node.expression
    if isinstance(right, exp.Any | exp.All) or _is_all(right):
        return _any_of(on, node.this, operator, right, scope)
    left, other = on.making.beside(on.of(node.this, scope), on.of(right, scope))
    return Typed(f"({left.sql} {operator} {other.sql})", "bool")


def _any_of(
    on: Rewriting, left_node: exp.Expr, operator: str, right: exp.Expr, scope: Scope
) -> Typed:
    """`x = ANY (…)` and `x <> ALL (…)`, of an array or of a query."""
    is_any = isinstance(right, exp.Any)
    inner = right.expressions[0] if _is_all(right) else right.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    left = on.of(left_node, scope)
    if isinstance(inner, exp.Subquery | exp.Query):
        sql, outputs = on.queries(inner, scope)
        left = _beside_outputs(on, left, outputs)
        return Typed(f"({left.sql} {operator} {'ANY' if is_any else 'ALL'} ({sql}))", "bool")
    array = on.of(inner, scope)
    if array.is_open:
        array = on.making.as_type(array, array_type(left.type) or "_text")
    element = element_of(array.type)
    if left.is_open:
        left = on.making.as_type(left, element or "text")
    if (operator, is_any) == ("=", True):
        return Typed(f"list_contains({array.sql}, {left.sql})", "bool")
    if (operator, is_any) == ("<>", False):
        return Typed(f"(NOT list_contains({array.sql}, {left.sql}))", "bool")
    each = f"list_transform({array.sql}, lambda e: {left.sql} {operator} e)"
    return Typed(f"list_{'bool_or' if is_any else 'bool_and'}({each})", "bool")


def _beside_outputs(on: Rewriting, left: Typed, outputs: tuple[Output, ...]) -> Typed:
    if not outputs:
        raise UnknownCatalogQuery("subquery has too few columns", "42601")
    return on.making.as_type(left, outputs[0].type or "text") if left.is_open else left


def _arithmetic(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    left, right = on.making.beside(on.of(node.this, scope), on.of(node.expression, scope))
    type_ = left.type if left.type == right.type else None
    if left.type in INTEGERS and right.type in INTEGERS:
        type_ = "int8" if {"int8", "oid"} & {left.type, right.type} else "int4"
    return Typed(f"({left.sql} {_ARITHMETIC[type(node)]} {right.sql})", type_)


def _div(on: Rewriting, node: exp.Div, scope: Scope) -> Typed:
    left, right = on.making.beside(on.of(node.this, scope), on.of(node.expression, scope))
    whole = left.type in INTEGERS and right.type in INTEGERS
    type_ = "int4" if whole and left.type != "int8" else left.type
    return Typed(f"({left.sql} {'//' if whole else '/'} {right.sql})", type_)


def _neg(on: Rewriting, node: exp.Neg, scope: Scope) -> Typed:
    found = on.of(node.this, scope)
    return Typed(f"(-{found.sql})", found.type)


def _and(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    word = "AND" if isinstance(node, exp.And) else "OR"
    parts = (on.condition(part, scope) for part in node.flatten())
    return Typed(f"({f' {word} '.join(parts)})", "bool")


def _not(on: Rewriting, node: exp.Not, scope: Scope) -> Typed:
    return Typed(f"(NOT {on.condition(node.this, scope)})", "bool")


def _is(on: Rewriting, node: exp.Is, scope: Scope) -> Typed:
    word = "IS NOT" if node.args.get("negate") else "IS"
    left = on.settled(node.this, scope)
    right = on.of(node.expression, scope)
    return Typed(f"({left.sql} {word} {right.sql})", "bool")


def _in(on: Rewriting, node: exp.In, scope: Scope) -> Typed:
    word = "NOT IN" if node.args.get("negate") else "IN"
    left = on.of(node.this, scope)
    query = node.args.get("query")
    if query is not None:
        sql, outputs = on.queries(query, scope)
        left = _beside_outputs(on, left, outputs)
        return Typed(f"({left.sql} {word} ({sql}))", "bool")
    given = [on.of(part, scope) for part in node.expressions]
    if left.is_open:
        left = on.making.as_type(left, on.calls.unified(given)[1] or "text")
    made = (on.making.as_type(one, left.type or "text").sql for one in given)
    return Typed(f"({left.sql} {word} ({', '.join(made)}))", "bool")


def _between(on: Rewriting, node: exp.Between, scope: Scope) -> Typed:
    value = on.settled(node.this, scope)
    low = on.making.as_type(on.of(node.args["low"], scope), value.type or "text")
    high = on.making.as_type(on.of(node.args["high"], scope), value.type or "text")
    return Typed(f"({value.sql} BETWEEN {low.sql} AND {high.sql})", "bool")


def _like(on: Rewriting, node: exp.Expr, scope: Scope, escape: str = "'\\'") -> Typed:
    """LIKE; PostgreSQL escapes with a backslash unless it is told otherwise."""
    word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
    if node.args.get("negate"):
        word = f"NOT {word}"
    left, pattern = on.text(node.this, scope), node.expression
    if isinstance(pattern, exp.Any | exp.All) or _is_all(pattern):
        raise UnknownCatalogQuery("LIKE with ANY or ALL is not understood in catalog queries")
    return Typed(f"({left} {word} {on.text(pattern, scope)} ESCAPE {escape})", "bool")


def _escape(on: Rewriting, node: exp.Escape, scope: Scope) -> Typed:
    inner, negated = node.this, False
    if isinstance(inner, exp.Not):
        inner, negated = inner.this, True
    found = _like(on, inner, scope, on.text(node.expression, scope))
    return Typed(f"(NOT {found.sql})", "bool") if negated else found


def _regexp(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    options = ", 'i'" if isinstance(node, exp.RegexpILike) else ""
    left, right = on.text(node.this, scope), on.text(node.expression, scope)
    return Typed(f"regexp_matches({left}, {right}{options})", "bool")


def _operator(on: Rewriting, node: exp.Operator, scope: Scope) -> Typed:
    """`OPERATOR(pg_catalog.~)` is the operator iton."""
    name = str(node.args["operator"]).removeprefix("pg_catalog.")
    make = _OPERATORS.get(name)
    if make is None:
        raise UnknownCatalogQuery(f"operator {name} is not understood in catalog queries")
    return on.of(make(node.this, node.expression), scope)


def _joined(on: Rewriting, node: exp.DPipe, scope: Scope) -> Typed:
    """`||` joins texts, and arrays."""
    left, right = on.of(node.this, scope), on.of(node.expression, scope)
    array = next((one.type for one in (left, right) if element_of(one.type)), None)
    if array is not None:
        left, right = on.making.as_type(left, array), on.making.as_type(right, array)
        return Typed(f"list_concat({left.sql}, {right.sql})", array)
    texts = (text_of(on.making.settled(one)) for one in (left, right))
    return Typed(f"({' || '.join(texts)})", "text")


def _contains(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    name = "list_has_any" if isinstance(node, exp.ArrayOverlaps) else "list_has_all"
    left, right = on.making.beside(on.of(node.this, scope), on.of(node.expression, scope))
    return Typed(f"{name}({left.sql}, {right.sql})", "bool")


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.And: _and,
    exp.ArrayContainsAll: _contains,
    exp.ArrayOverlaps: _contains,
    exp.Between: _between,
    exp.DPipe: _joined,
    exp.Div: _div,
    exp.Escape: _escape,
    exp.ILike: _like,
    exp.In: _in,
    exp.Is: _is,
    exp.Like: _like,
    exp.Neg: _neg,
    exp.Not: _not,
    exp.Operator: _operator,
    exp.Or: _and,
    exp.RegexpILike: _regexp,
    exp.RegexpLike: _regexp,
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
}
