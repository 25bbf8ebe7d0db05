"""Binds one SELECT: names as DuckDB resolves them, WHERE, grouping, DISTINCT, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from . import subqueries
from .aggregates import Call
from .algebra import Node, Sort, SortKey
from .bound import Bound, direction, is_all, limit_of, output_column, unordered
from .calls import aggregate_name, aggregates_in, has_subquery, is_subquery, read_call
from .context import Context
from .errors import NotStageable
from .expressions import Expr, bare, column, conjuncts, references, rewritten
from .from_clause import bind_from
from .scope import Scope
from .select_list import StarColumn, select_items

_REFUSED = ("laterals", "windows", "qualify", "sample", "connect", "pivots", "cluster", "sort")


class SelectBinder:
    """One SELECT on its way to a node.

    `source()` binds FROM and WHERE. Conditions that read columns of the `outer` scope are kept
    apart in `correlated`, for the step that turns the subquery into a join. `bind()` does the rest.
    """

    def __init__(self, context: Context, select: exp.Select, outer: Scope | None = None) -> None:
        self.context = context.subquery_context(select)
        self.builder = context.builder
        self.select = select
        self.outer = outer
        self.correlated: list[Expr] = []
        for name in _REFUSED:
            if select.args.get(name):
                raise NotStageable(f"SELECT with {name} is not split")
        if select.args.get("kind") or select.args.get("operation_modifiers"):
            raise NotStageable("SELECT AS is not split")
        source = bind_from(select, self.context)
        self.node: Node = source.node
        self.scope = source.scope
        self._ordered = source.ordered
        self.items = select_items(select, self.scope)
        self._aliases = {
            name.lower(): item
            for name, item, explicit in self.items
            if name is not None and explicit
        }
        self._expanding: list[str] = []
        self._groups: list[tuple[Expr, str]] = []
        self._calls: dict[tuple[str, Expr | None, bool, Expr | None], str] = {}

    def inner(self, select: exp.Select) -> SelectBinder:
        """A subquery of this SELECT, bound up to WHERE."""
        found = SelectBinder(self.context, select, outer=self.scope)
        found.source()
        return found

    # ------------------------------------------------------------------ names

    def resolve(self, node: exp.Column, through: Callable[[Expr], Expr]) -> Expr:
        """A column as DuckDB finds it: of FROM, then an alias of the list, then of outside."""
        if node.args.get("db") or node.args.get("catalog"):
            raise NotStageable(f"{node.sql('duckdb')} is not analysed (a field of a struct?)")
        name, table = node.name, node.table
        if table:
            found = self.scope.qualified(table, name)
            if found is None and self.outer is not None and not self.scope.has_relation(table):
                found = self.outer.qualified(table, name)
            if found is None:
                raise NotStageable(f"the column {node.sql('duckdb')} is not found")
            return column(found)
        found = self.scope.unqualified(name)
        if found is not None:
            return column(found)
        if self.scope.has_relation(name):
            raise NotStageable(f"{name} as a whole row is not analysed")
        outside = self.outer.unqualified(name) if self.outer is not None else None
        alias = self._aliases.get(name.lower())
        if alias is not None:
            if outside is not None or name.lower() in self._expanding:
                raise NotStageable(f"the name {name!r} can mean two things")
            self._expanding.append(name.lower())
            try:
                return exp.Paren(this=through(alias))
            finally:
                self._expanding.pop()
        if outside is None:
            raise NotStageable(f"the column {name!r} is not found where it is expected")
        return column(outside)

    def scalar(self, node: Expr) -> Expr:
        """An expression over the rows of FROM (before grouping)."""

        def visit(inner: Expr) -> Expr | None:
            if isinstance(inner, StarColumn):
                return column(inner.this.name)
            if isinstance(inner, exp.Column):
                return self.resolve(inner, self.scalar)
            if aggregate_name(inner) is not None:
                raise NotStageable("an aggregate where rows are not grouped yet")
            if is_subquery(inner):
                return subqueries.value(self, inner, self.scalar)
            return None

        return rewritten(node, visit)

    # ------------------------------------------------------------------ FROM and WHERE

    def source(self) -> None:
        """Apply WHERE; conditions over outer columns go to `correlated`."""
        where = self.select.args.get("where")
        if where is None:
            return
        conditions = list(conjuncts(where.this))
        plain = [c for c in conditions if not has_subquery(c)]
        bound = [self.scalar(condition) for condition in plain]
        self.keep(bound)
        for condition in conditions:
            if has_subquery(condition):
                subqueries.condition(self, condition, self.scalar)

    def keep(self, conditions: Sequence[Expr]) -> None:
        """Filter by conditions, or put them aside where they read the outer query."""
        available = frozenset(field.name for field in self.node.fields)
        inner = [c for c in conditions if references(c) <= available]
        self.correlated += [c for c in conditions if not references(c) <= available]
        self.node = self.builder.filter(self.node, inner)

    # ------------------------------------------------------------------ grouping

    @property
    def is_grouped(self) -> bool:
        """Whether the query aggregates, with or without GROUP BY."""
        return bool(self.select.args.get("group")) or any(
            True for root in self._roots() for _ in aggregates_in(root)
        )

    @property
    def is_plain(self) -> bool:
        """Whether rows of FROM and WHERE come out one by one, all of them."""
        clauses = ("group", "having", "limit", "offset", "order", "distinct")
        return not self.is_grouped and not any(self.select.args.get(name) for name in clauses)

    def _roots(self) -> Iterator[Expr]:
        yield from (item for _, item, _ in self.items)
        having, order = self.select.args.get("having"), self.select.args.get("order")
        if having is not None:
            yield having.this
        if order is not None:
            yield from (ordered.this for ordered in order.expressions if not is_all(ordered))

    def group(self, keys: Sequence[Expr]) -> list[str]:
        """Aggregate by bound key expressions; the names of the keys in the new node."""
        calls: list[tuple[str, str, Expr | None, bool, Expr | None]] = []
        for root in self._roots():
            for node in aggregates_in(root):
                if has_subquery(node):
                    raise NotStageable("a subquery within an aggregate")
                function, argument, distinct, condition = read_call(node)
                bound = None if argument is None else self.scalar(argument)
                kept = None if condition is None else self.scalar(condition)
                if (function, bound, distinct, kept) not in self._calls:
                    out = self.builder.fresh()
                    self._calls[function, bound, distinct, kept] = out
                    calls.append((out, function, bound, distinct, kept))
        wanted = [*keys]
        wanted += [
            e for _, _, argument, _, kept in calls for e in (argument, kept) if e is not None
        ]
        self.node, columns = self.builder.extended(self.node, wanted)
        place = dict(zip(map(id, wanted), columns, strict=True))
        names = [self.builder.fresh() for _ in keys]
        self._groups = [(bare(key), name) for key, name in zip(keys, names, strict=True)]
        self.node = self.builder.aggregate(
            self.node,
            [(name, place[id(key)]) for name, key in zip(names, keys, strict=True)],
            [
                Call(
                    out,
                    function,
                    None if argument is None else place[id(argument)],
                    distinct,
                    None if kept is None else place[id(kept)],
                )
                for out, function, argument, distinct, kept in calls
            ],
        )
        return names

    def grouped(self, node: Expr) -> Expr:
        """An expression over groups: keys, aggregates, constants and what is made of them."""

        def visit(inner: Expr) -> Expr | None:
            if aggregate_name(inner) is not None:
                function, argument, distinct, condition = read_call(inner)
                bound = None if argument is None else self.scalar(argument)
                kept = None if condition is None else self.scalar(condition)
                return column(self._calls[function, bound, distinct, kept])
            if isinstance(inner, exp.Query | exp.Exists) or is_subquery(inner):
                return subqueries.value(self, inner, self.grouped)
            found = self._group_of(inner)
            if found is not None:
                return found
            if isinstance(inner, StarColumn):
                raise NotStageable("a column that is neither grouped nor aggregated")
            if isinstance(inner, exp.Column):
                if inner.table or self.scope.unqualified(inner.name) is not None:
                    raise NotStageable(f"{inner.sql('duckdb')} is neither grouped nor aggregated")
                return self.resolve(inner, self.grouped)
            return None

        return rewritten(node, visit)

    def _group_of(self, node: Expr) -> Expr | None:
        if not self._groups or isinstance(node, exp.Literal | exp.Paren):
            return None
        if has_subquery(node) or any(True for _ in aggregates_in(node)):
            return None
        if isinstance(node, exp.Identifier | exp.Var | exp.DataType | exp.Where | exp.Distinct):
            return None
        if (
            isinstance(node, exp.Column)
            and not node.table
            and (self.scope.unqualified(node.name) is None)
        ):
            return None
        try:
            bound = bare(self.scalar(node))
        except NotStageable:
            return None
        return next((column(name) for key, name in self._groups if key == bound), None)

    def _group_keys(self) -> list[Expr]:
        group = self.select.args.get("group")
        if group is None:
            return []
        for name, value in group.args.items():
            if value and name not in ("expressions", "all"):
                raise NotStageable("grouping sets are not split")
        if group.args.get("all"):
            chosen = [i for _, i, _ in self.items if not any(True for _ in aggregates_in(i))]
            if any(has_subquery(item) for item in chosen):
                raise NotStageable("GROUP BY ALL with a subquery in the list")
            keys = _unlike([self.scalar(item) for item in chosen])
            if keys and not any(references(key) for key in keys):
                raise NotStageable("GROUP BY ALL over nothing but constants")
            return keys
        return _unlike([self._group_key(key) for key in group.expressions])

    def _group_key(self, key: Expr) -> Expr:
        if isinstance(key, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple):
            raise NotStageable("grouping sets are not split")
        if isinstance(key, exp.Literal) and not key.is_string:
            return self.scalar(self.items[int(key.this) - 1][1])
        if isinstance(key, exp.Column):
            return self.scalar(key)
        if any(
            not c.table and self.scope.unqualified(c.name) is None for c in key.find_all(exp.Column)
        ):
            raise NotStageable("an alias within an expression of GROUP BY")
        return self.scalar(key)

    # ------------------------------------------------------------------ the whole

    def bind(self) -> Bound:
        """The complete query as a node."""
        self.source()
        if self.correlated:
            raise NotStageable("a correlated subquery in a place where it is not taken apart")
        return self.finish()

    def finish(self) -> Bound:
        """Everything after WHERE."""
        expression: Callable[[Expr], Expr] = self.scalar
        order = self.select.args.get("order")
        grouped = self.is_grouped
        if self._ordered:
            if order is None and not grouped and not self.select.args.get("distinct"):
                raise NotStageable("the order of a subquery shows in the result")
            self.node = unordered(self.node)
        if grouped:
            self.group(self._group_keys())
            expression = self.grouped
        having = self.select.args.get("having")
        if having is not None:
            if not grouped:
                raise NotStageable("HAVING without groups")
            self._check_having(having.this)
            for condition in conjuncts(having.this):
                subqueries.condition(self, condition, self.grouped)
        outputs = [(self.builder.fresh(), expression(item)) for _, item, _ in self.items]
        visible = [(name, out) for (name, _, _), (out, _) in zip(self.items, outputs, strict=True)]
        bound = self._ordered_output(visible, outputs, expression)
        if self.correlated:
            raise NotStageable("a correlated subquery in a place where it is not taken apart")
        return bound

    def _check_having(self, having: Expr) -> None:
        for node in having.find_all(exp.Column):
            alias = self._aliases.get(node.name.lower())
            both = not node.table and self.scope.unqualified(node.name) is not None
            if alias is not None and both and alias != node:
                raise NotStageable(f"{node.name!r} in HAVING can mean two things")

    def _ordered_output(
        self,
        visible: list[tuple[str | None, str]],
        outputs: list[tuple[str, Expr]],
        expression: Callable[[Expr], Expr],
    ) -> Bound:
        order = self.select.args.get("order")
        distinct = self.select.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            raise NotStageable("DISTINCT ON keeps whichever row comes first")
        keys, hidden = [], list[tuple[str, Expr]]()
        for ordered in order.expressions if order else ():
            way = direction(ordered)
            if is_all(ordered):
                keys += [SortKey(out, way) for _, out in visible]
                continue
            found = output_column(ordered.this, visible)
            if found is None:
                found = self._hidden_key(ordered.this, expression, outputs, hidden)
            keys.append(SortKey(found, way))
        if hidden and distinct is not None:
            raise NotStageable("ORDER BY something that DISTINCT has removed")
        self.node = self.builder.project(self.node, [*outputs, *hidden])
        if distinct is not None:
            fresh = {out: self.builder.fresh() for out, _ in outputs}
            self.node = self.builder.aggregate(
                self.node, [(new, old) for old, new in fresh.items()], ()
            )
            visible = [(name, fresh[out]) for name, out in visible]
            keys = [SortKey(fresh[key.name], key.direction) for key in keys]
        limit, offset = limit_of(self.select)
        if keys or limit is not None or offset:
            self.node = Sort(self.node, tuple(keys), limit, offset)
        if hidden:
            shown = [(self.builder.fresh(), column(out)) for _, out in visible]
            self.node = self.builder.project(self.node, shown)
            visible = [(n, out) for (n, _), (out, _) in zip(visible, shown, strict=True)]
        return Bound(self.node, visible, bool(keys))

    def _hidden_key(
        self,
        key: Expr,
        expression: Callable[[Expr], Expr],
        outputs: list[tuple[str, Expr]],
        hidden: list[tuple[str, Expr]],
    ) -> str:
        """A sort key that is no output column by name: one by value, or a further column."""
        if has_subquery(key):
            raise NotStageable("a subquery in ORDER BY")
        for node in key.find_all(exp.Column):
            alias = self._aliases.get(node.name.lower())
            both = not node.table and self.scope.unqualified(node.name) is not None
            if alias is not None and both and alias != node:
                raise NotStageable(f"{node.name!r} in ORDER BY can mean two things")
        bound = expression(key)
        if not references(bound):
            raise NotStageable("ORDER BY a constant expression")
        for out, output in outputs:
            if bare(output) == bare(bound):
                return out
        hidden.append((self.builder.fresh(), bound))
        return hidden[-1][0]


def _unlike(keys: list[Expr]) -> list[Expr]:
    """Each key once."""
    found: list[Expr] = []
    for key in keys:
        if all(bare(key) != bare(other) for other in found):
            found.append(key)
    return found
