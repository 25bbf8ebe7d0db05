"""Binds a whole query: CTEs, set operations, ORDER BY and LIMIT around SELECTs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from .aggregates import Call
from .algebra import Aggregate, Filter, Node, Project, Scan, Shared, Sort, SortKey, inputs
from .bound import Bound, direction, is_all, limit_of, output_column, unordered
from .builder import Builder
from .contract import CatalogLike, find_table
from .errors import NotStageable
from .expressions import Expr, cast, column
from .select import SelectBinder


@dataclass(slots=True)
class _Cte:
    query: Expr
    names: list[str]
    context: QueryBinder
    bound: Bound | None = None


@dataclass(slots=True)
class QueryBinder:
    """Binds the queries at one level, which can see the same tables and CTEs."""

    builder: Builder
    catalog: CatalogLike
    ctes: Mapping[str, _Cte] = field(default_factory=dict)

    def scan(self, parts: Sequence[str]) -> Scan:
        """A table by the parts of its name."""
        key, table = find_table(self.catalog, parts)
        return self.builder.scan(key, table)

    def cte(self, name: str) -> Bound | None:
        """A reference to a CTE, if there is one of this name."""
        found = self.ctes.get(name.lower())
        if found is None:
            return None
        if found.bound is None:
            bound = found.context.query(found.query)
            for i, given in enumerate(found.names):
                bound.columns[i] = (given, bound.columns[i][1])
            if _cheap(bound.node):
                return bound  # reading the table again costs no more than keeping the rows
            found.bound = replace(bound, node=Shared(bound.node))
        bound = found.bound
        node = self.builder.renamed(bound.node)
        fresh = {
            old.name: new.name for old, new in zip(bound.node.fields, node.fields, strict=True)
        }
        return Bound(node, [(name, fresh[c]) for name, c in bound.columns], bound.ordered)

    def query(self, query: Expr) -> Bound:
        """Any query that does not refer to an outer one."""
        context = self._with_ctes(query)
        if isinstance(query, exp.Subquery):
            _only_parentheses(query)
            return context.query(query.this)
        if isinstance(query, exp.SetOperation):
            return context._set_operation(query)
        if isinstance(query, exp.Select):
            return SelectBinder(context, query).bind()
        raise NotStageable(f"{type(query).__name__} is not split")

    def _with_ctes(self, query: Expr) -> QueryBinder:
        clause = query.args.get("with_")
        if clause is None:
            return self
        if clause.args.get("recursive"):
            raise NotStageable("recursive queries need all rows of a step before the next")
        context = self
        for cte in clause.expressions:
            names = [c.name for c in cte.args["alias"].args.get("columns") or []]
            entry = _Cte(cte.this, names, context)
            context = replace(context, ctes={**context.ctes, cte.alias.lower(): entry})
        return context

    def subquery_context(self, query: Expr) -> QueryBinder:
        """The context for the clauses of a SELECT that has CTEs of its own."""
        return self._with_ctes(query)

    # ------------------------------------------------------------------ set operations

    def _set_operation(self, query: exp.SetOperation) -> Bound:
        if query.args.get("by_name"):
            raise NotStageable("UNION BY NAME is not analysed")
        _check_precedence(query)
        left, right = self.query(query.this), self.query(query.expression)
        sides = [self._only_columns(side) for side in (left, right)]
        if isinstance(query, exp.Union):
            node: Node = self.builder.union_all(sides)
            if query.args.get("distinct"):
                node = self._distinct(node)
        else:
            if not query.args.get("distinct"):
                raise NotStageable("EXCEPT ALL and INTERSECT ALL count equal rows")
            node = self._compared(sides, isinstance(query, exp.Intersect))
        visible = [name for name, _ in left.columns]
        columns = [(name, f.name) for name, f in zip(visible, node.fields, strict=True)]
        node, ordered = self._sorted(query, node, columns)
        return Bound(node, columns, ordered)

    def _only_columns(self, bound: Bound) -> Node:
        node = unordered(bound.node)
        return self.builder.project(
            node, [(self.builder.fresh(), column(c)) for _, c in bound.columns]
        )

    def _distinct(self, node: Node) -> Aggregate:
        keys = [(self.builder.fresh(), f.name) for f in node.fields]
        return self.builder.aggregate(node, keys, ())

    def _compared(self, sides: list[Node], in_both: bool) -> Node:
        """INTERSECT and EXCEPT: groups of equal rows that are on both sides, or the left only."""
        marked = []
        for number, side in enumerate(sides):
            items = [(self.builder.fresh(), column(f.name)) for f in side.fields]
            mark = cast(exp.Literal.number(number), "INTEGER")
            marked.append(self.builder.project(side, [*items, (self.builder.fresh(), mark)]))
        union = self.builder.union_all(marked)
        *values, side_field = union.fields
        low, high = self.builder.fresh(), self.builder.fresh()
        calls = [Call(low, "min", side_field.name), Call(high, "max", side_field.name)]
        keys = [(self.builder.fresh(), f.name) for f in values]
        grouped = self.builder.aggregate(union, keys, calls)
        wanted = exp.EQ(this=column(low), expression=exp.Literal.number(0))
        last = exp.EQ(this=column(high), expression=exp.Literal.number(1 if in_both else 0))
        kept = self.builder.filter(grouped, [wanted, last])
        return self.builder.project(kept, [(self.builder.fresh(), column(k)) for k, _ in keys])

    def _sorted(
        self, query: Expr, node: Node, columns: list[tuple[str | None, str]]
    ) -> tuple[Node, bool]:
        limit, offset = limit_of(query)
        order = query.args.get("order")
        keys = []
        for ordered in order.expressions if order else ():
            if is_all(ordered):
                keys += [SortKey(out, direction(ordered)) for _, out in columns]
                continue
            found = output_column(ordered.this, columns)
            if found is None:
                raise NotStageable("ORDER BY of a set operation by an expression")
            keys.append(SortKey(found, direction(ordered)))
        if keys or limit is not None or offset:
            node = Sort(node, tuple(keys), limit, offset)
        return node, bool(keys)


def _check_precedence(query: exp.SetOperation) -> None:
    """Refuse chains where the grouping depends on precedence: INTERSECT binds tighter."""
    if isinstance(query.expression, exp.SetOperation):
        raise NotStageable("nested set operations without parentheses")
    inner = query.this
    if isinstance(inner, exp.SetOperation) and (
        isinstance(query, exp.Intersect) or isinstance(inner, exp.Intersect)
    ):
        raise NotStageable("INTERSECT among other set operations without parentheses")


def _only_parentheses(query: exp.Subquery) -> None:
    for name, value in query.args.items():
        if value and name not in ("this", "alias"):
            raise NotStageable(f"a parenthesised query with {name} is not analysed")


def _cheap(node: Node) -> bool:
    plain = isinstance(node, Scan | Filter | Project)
    return plain and all(_cheap(child) for child in inputs(node))
