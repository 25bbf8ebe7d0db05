"""The names that PostgreSQL gives to columns of a query that have none."""

from __future__ import annotations

from sqlglot import exp

from .rewriting import folded, type_text
from .typed import known_type

_CALLED: dict[type[exp.Expr], str] = {
    exp.Array: "array",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentRole: "current_role",
    exp.CurrentSchema: "current_schema",
    exp.CurrentTimestamp: "current_timestamp",
    exp.CurrentUser: "current_user",
    exp.Exists: "exists",
    exp.Extract: "extract",
    exp.SessionUser: "session_user",
    exp.StrPosition: "position",
    exp.Substring: "substring",
}


def output_name(node: exp.Expr) -> str:
    """The name of a column of a result, if it has no alias.

    >>> from .parsing import parse
    >>> query = parse("SELECT a.b, lower(x), x::text, '1'::int, 1 + 1, CASE WHEN x THEN 1 END")
    >>> [output_name(column) for column in query.expressions]
    ['b', 'lower', 'x', 'int4', '?column?', 'case']
    """
    return _name(node)[0] or "?column?"


def _name(node: exp.Expr | None) -> tuple[str, bool]:
    """A name, and whether it is a good one: that of a cast or a CASE gives way to a better one."""
    if node is None:
        return "", False
    kind = type(node)
    if kind in _CALLED:
        return _CALLED[kind], True
    if isinstance(node, exp.Trim):
        return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(
            str(node.args.get("position")).upper(), "btrim"
        ), True
    if isinstance(node, exp.Alias):
        return folded(node.args["alias"]), True
    if isinstance(node, exp.Column):
        return folded(node.this), True
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower(), True
    if isinstance(node, exp.Dot):
        if isinstance(node.expression, exp.Func):
            return _name(node.expression)
        return folded(node.expression), True
    if isinstance(node, exp.Cast):
        inner, good = _name(node.this)
        return (inner, True) if good else (known_type(type_text(node.args["to"])), False)
    if isinstance(node, exp.Case):
        inner, good = _name(node.args.get("default"))
        return (inner, True) if good else ("case", False)
    if isinstance(node, exp.Paren | exp.Collate | exp.Bracket | exp.Filter | exp.Window):
        return _name(node.this)
    if isinstance(node, exp.Subquery):
        return _name(node.this)
    if isinstance(node, exp.Select) and node.expressions:
        return _name(node.expressions[0])
    return "", False
