"""Calls of functions and of aggregates in expressions, and queries within them."""

from __future__ import annotations

from sqlglot import exp

from .answers import UnknownCatalogQuery
from .rewriting import Handler, Rewriting
from .scopes import Scope
from .typed import Typed, array_type, quoted

_SESSION: dict[type[exp.Expr], str] = {
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentRole: "current_role",
    exp.CurrentSchema: "current_schema",
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
}


def _plain_call(node: exp.Expr) -> exp.Anonymous:
    if isinstance(node, exp.Dot):
        node = node.expression
    if not isinstance(node, exp.Anonymous):
        raise UnknownCatalogQuery(f"{node.sql()} is no aggregate function", "42809")
    return node


def _subquery(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    sql, outputs = on.queries(node, scope)
    if len(outputs) != 1:
        raise UnknownCatalogQuery("subquery must return only one column", "42601")
    return Typed(f"({sql})", outputs[0].type)


def _exists(on: Rewriting, node: exp.Exists, scope: Scope) -> Typed:
    sql, _ = on.queries(node.this, scope)
    return Typed(f"(EXISTS ({sql}))", "bool")


def _call(on: Rewriting, node: exp.Anonymous, scope: Scope, after: str = "") -> Typed:
    name = str(node.this).lower()
    parts = list(node.expressions)
    if name == "array" and len(parts) == 1 and isinstance(parts[0], exp.Query | exp.Subquery):
        found = _subquery(on, parts[0], scope)
        return Typed(f"ARRAY{found.sql}", array_type(found.type))
    order = ""
    distinct = False
    if parts and isinstance(parts[-1], exp.Order):
        order = on.order(parts[-1].expressions, scope)
        parts[-1] = parts[-1].this
    if parts and isinstance(parts[0], exp.Distinct):
        distinct = True
        parts[:1] = parts[0].expressions
    given = [
        Typed("*", "int4") if isinstance(part, exp.Star) else on.of(part, scope) for part in parts
    ]
    return on.calls.call(name, given, distinct=distinct, order=order, after=after)


def _filtered(on: Rewriting, node: exp.Filter, scope: Scope) -> Typed:
    condition = on.condition(node.expression.this, scope)
    return _call(on, _plain_call(node.this), scope, f" FILTER (WHERE {condition})")


def _window(on: Rewriting, node: exp.Window, scope: Scope) -> Typed:
    parts = []
    by = node.args.get("partition_by")
    if by:
        keys = ", ".join(on.settled(part, scope).sql for part in by)
        parts.append(f"PARTITION BY {keys}")
    order = node.args.get("order")
    if order is not None:
        parts.append(f"ORDER BY {on.order(order.expressions, scope)}")
    if node.args.get("spec") is not None or node.args.get("alias") is not None:
        raise UnknownCatalogQuery("frames of windows are not understood in catalog queries")
    return _call(on, _plain_call(node.this), scope, f" OVER ({' '.join(parts)})")


def _trim(on: Rewriting, node: exp.Trim, scope: Scope) -> Typed:
    position = str(node.args.get("position") or "BOTH").upper()
    name = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}[position]
    parts = [node.this] if node.expression is None else [node.this, node.expression]
    return Typed(f"{name}({', '.join(on.text(part, scope) for part in parts)})", "text")


def _substring(on: Rewriting, node: exp.Substring, scope: Scope) -> Typed:
    parts = [on.text(node.this, scope)]
    parts += (
        on.making.as_type(on.of(node.args[name], scope), "int4").sql
        for name in ("start", "length")
        if node.args.get(name) is not None
    )
    return Typed(f"substring({', '.join(parts)})", "text")


def _position(on: Rewriting, node: exp.StrPosition, scope: Scope) -> Typed:
    text, part = on.text(node.this, scope), on.text(node.args["substr"], scope)
    return Typed(f"strpos({text}, {part})::INTEGER", "int4")


def _extract(on: Rewriting, node: exp.Extract, scope: Scope) -> Typed:
    value = on.settled(node.expression, scope)
    return Typed(f"date_part({quoted(node.this.name.lower())}, {value.sql})", "numeric")


def _session(on: Rewriting, node: exp.Expr, scope: Scope) -> Typed:
    """`current_user` and its kin, which are called without parentheses."""
    return on.calls.call(_SESSION[type(node)], ())


HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Anonymous: _call,
    exp.Exists: _exists,
    exp.Extract: _extract,
    exp.Filter: _filtered,
    exp.Select: _subquery,
    exp.StrPosition: _position,
    exp.Subquery: _subquery,
    exp.Substring: _substring,
    exp.Trim: _trim,
    exp.Union: _subquery,
    exp.Window: _window,
    **dict.fromkeys(_SESSION, _session),
}
