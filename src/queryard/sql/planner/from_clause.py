"""Binds FROM: tables, CTEs, derived tables and joins become nodes and a scope."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from .algebra import JoinKind, Node, OneRow
from .context import Context
from .errors import NotStageable
from .expressions import Expr, column, conjuncts, rewritten
from .scope import Scope, Visible


@dataclass(slots=True)
class Source:
    """A bound relation; `ordered` if it is a subquery with an order that may be relied on."""

    node: Node
    scope: Scope
    ordered: bool = False


def bind_from(select: exp.Select, context: Context) -> Source:
    """All of FROM. Relations between commas are joined last, as the comma binds weakest."""
    clause = select.args.get("from_")
    if clause is None:
        if select.args.get("joins"):
            raise NotStageable("joins without FROM")
        return Source(OneRow(), Scope())
    if select.args.get("laterals"):
        raise NotStageable("lateral joins see the row to their left")
    return _bind_joined(clause.this, select.args.get("joins") or [], context)


def _bind_joined(first: Expr, joins: Iterable[exp.Join], context: Context) -> Source:
    groups = [_bind_relation(first, context)]
    for join in joins:
        if _is_comma(join):
            groups.append(_bind_relation(join.this, context))
        else:
            groups[-1] = _bind_join(groups[-1], join, context)
    source = groups[0]
    for other in groups[1:]:
        node = context.builder.join("inner", source.node, other.node, ())
        source = Source(node, source.scope.beside(other.scope))
    return source


def _is_comma(join: exp.Join) -> bool:
    return not any(
        join.args.get(name) for name in ("side", "kind", "method", "on", "using", "global_")
    )


def _bind_relation(relation: Expr, context: Context) -> Source:
    nested = relation.args.get("joins") or []
    if isinstance(relation, exp.Table):
        source = _bind_table(relation, context)
    elif isinstance(relation, exp.Subquery):
        source = _bind_subquery(relation, context)
    else:
        raise NotStageable(f"{type(relation).__name__} in FROM is not split")
    for join in nested:
        if _is_comma(join):
            raise NotStageable("a comma within a parenthesised join")
        source = _bind_join(source, join, context)
    return source


def _bind_table(table: exp.Table, context: Context) -> Source:
    for name in ("laterals", "pivots", "sample", "when", "version", "only"):
        if table.args.get(name):
            raise NotStageable(f"a table with {name} is not split")
    if not isinstance(table.this, exp.Identifier):
        raise NotStageable("table functions are not split")
    parts = [part.name for part in table.parts]
    alias = table.alias or parts[-1]
    bound = context.cte(parts[0]) if len(parts) == 1 else None
    if bound is not None:
        columns = [Visible(alias, name, c) for name, c in bound.columns]
        source = Source(bound.node, Scope(columns), bound.ordered)
    else:
        node = context.scan(parts)
        columns = [Visible(alias, name, c) for c, name in node.columns.items()]
        source = Source(node, Scope(columns))
    return _renamed(source, table.args.get("alias"))


def _bind_subquery(subquery: exp.Subquery, context: Context) -> Source:
    for name in ("with_", "pivots", "sample", "order", "limit", "offset", "laterals"):
        if subquery.args.get(name):
            raise NotStageable(f"a subquery with {name} outside its parentheses is not split")
    if isinstance(subquery.this, exp.Table):
        if subquery.args.get("alias"):
            raise NotStageable("a named parenthesised join is not analysed")
        return _bind_relation(subquery.this, context)
    bound = context.query(subquery.this)
    alias = subquery.alias or None
    columns = [Visible(alias, name, c) for name, c in bound.columns]
    return _renamed(Source(bound.node, Scope(columns), bound.ordered), subquery.args.get("alias"))


def _renamed(source: Source, alias: exp.TableAlias | None) -> Source:
    """With the column names of `AS t(a, b)`."""
    given = [identifier.name for identifier in (alias.args.get("columns") or [])] if alias else []
    columns = [
        Visible(v.qualifier, given[i] if i < len(given) else v.name, v.column)
        for i, v in enumerate(source.scope.columns)
    ]
    known = [v.name.lower() for v in columns if v.name]
    if len(known) != len(set(known)):
        raise NotStageable("a subquery has two columns of the same name")
    return Source(source.node, Scope(columns), source.ordered)


_KINDS: dict[tuple[str, str], JoinKind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("", "SEMI"): "semi",
    ("", "ANTI"): "anti",
}


def _bind_join(left: Source, join: exp.Join, context: Context) -> Source:
    kind = _KINDS.get((join.side.upper(), join.kind.upper()))
    method = (join.args.get("method") or "").upper()
    if kind is None or method not in ("", "NATURAL"):
        raise NotStageable(f"{method or join.side} {join.kind} joins are not split")
    right = _bind_relation(join.this, context)
    if kind in ("semi", "anti"):
        visible = Scope(left.scope.columns + right.scope.columns)
    else:
        visible = left.scope.beside(right.scope)
    using = [identifier.name for identifier in join.args.get("using") or []]
    if method == "NATURAL":
        using = [
            v.name
            for v in left.scope.star()
            if v.name and right.scope.unqualified(v.name) is not None
        ]
    if using:
        return _bind_using(kind, left, right, visible, using, context)
    on = join.args.get("on")
    conditions = [_bind_condition(c, visible) for c in conjuncts(on)] if on is not None else []
    node = context.builder.join(kind, left.node, right.node, conditions)
    return Source(node, left.scope if kind in ("semi", "anti") else visible)


def _bind_using(
    kind: JoinKind,
    left: Source,
    right: Source,
    visible: Scope,
    using: list[str],
    context: Context,
) -> Source:
    pairs = []
    for name in using:
        mine, other = left.scope.unqualified(name), right.scope.unqualified(name)
        if mine is None or other is None:
            raise NotStageable(f"USING ({name}) names no column of both sides")
        pairs.append((name, mine, other))
    conditions = [exp.EQ(this=column(a), expression=column(b)) for _, a, b in pairs]
    node: Node = context.builder.join(kind, left.node, right.node, conditions)
    if kind in ("semi", "anti"):
        return Source(node, left.scope)
    if kind in ("inner", "left"):
        return Source(node, visible.merged((name, a, b, a) for name, a, b in pairs))
    types = {field.name: field.type for field in node.fields}
    if any(types[a] != types[b] for _, a, b in pairs):
        raise NotStageable("an outer join USING columns of different types")
    common = [exp.Coalesce(this=column(a), expressions=[column(b)]) for _, a, b in pairs]
    node, both = context.builder.extended(node, common)
    return Source(
        node,
        visible.merged((name, a, b, c) for (name, a, b), c in zip(pairs, both, strict=True)),
    )


def _bind_condition(condition: Expr, scope: Scope) -> Expr:
    """A condition of ON: columns of both sides, no subqueries."""

    def visit(node: Expr) -> Expr | None:
        if isinstance(node, exp.Query | exp.Exists | exp.AggFunc):
            raise NotStageable("subqueries and aggregates in ON are not taken apart")
        if not isinstance(node, exp.Column):
            return None
        name = node.name
        if node.args.get("db"):
            raise NotStageable(f"{node.sql('duckdb')} is not analysed")
        found = scope.qualified(node.table, name) if node.table else scope.unqualified(name)
        if found is None:
            raise NotStageable(f"the column {node.sql('duckdb')} is not found in ON")
        return column(found)

    return rewritten(condition, visit)
