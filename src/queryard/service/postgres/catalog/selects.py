"""Whole queries: WITH, SELECT, UNION, VALUES."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from .answers import UnknownCatalogQuery
from .expressions import Expressions
from .naming import output_name
from .parsing import parse
from .relations import Relation
from .rewriting import folded
from .scopes import Output, Scope
from .sources import Sources
from .typed import Making, Statement, Typed, named


@dataclass(frozen=True, slots=True)
class Plan:
    """A catalog query for DuckDB.

    The types of its parameters are in `parameters`. `settings` is a query for the arguments of
    every `set_config`, if there are any.
    """

    statement: Statement
    outputs: tuple[Output, ...]
    parameters: tuple[str, ...]
    relations: tuple[Relation, ...]
    settings: Statement | None


def planned(sql: str, given: dict[int, str]) -> Plan:
    """The plan of a catalog query; `given` are the types of parameters that a client has named.

    >>> planned("SELECT oid FROM pg_class WHERE relname = $1", {}).statement.sql
    'SELECT "pg_class"."oid" AS "oid" FROM "pg_catalog.pg_class" AS "pg_class" WHERE \
("pg_class"."relname" = CAST($p1 AS VARCHAR))'
    """
    making = Making(given)
    made, outputs = _Rewriter(making).query(parse(sql), Scope())
    if not outputs:
        raise UnknownCatalogQuery("a catalog query of no columns is not answered")
    count = max(making.parameters, default=0)
    types = tuple(making.parameters.get(number) or "text" for number in range(1, count + 1))
    settings = None
    if making.settings:
        parts = (part.sql for arguments in making.settings for part in arguments)
        settings = making.finished(f"SELECT {', '.join(parts)}")
    return Plan(
        making.finished(made),
        outputs,
        types,
        tuple(making.relations.values()),
        settings,
    )


class _Rewriter:
    def __init__(self, making: Making) -> None:
        self._making = making
        self._expressions = Expressions(making, self.query)
        self._sources = Sources(making, self._expressions, self.query)

    def query(self, query: exp.Expr, around: Scope) -> tuple[str, tuple[Output, ...]]:
        """A query as text, with its columns."""
        node = query
        while isinstance(node, exp.Subquery) and not _has_modifiers(node):
            node = node.this
        scope = Scope(around)
        prefix = self._with(node, scope)
        if isinstance(node, exp.Select):
            sql, outputs = self._select(node, scope)
        elif isinstance(node, exp.SetOperation):
            sql, outputs = self._set_operation(node, scope)
        elif isinstance(node, exp.Values):
            sql, outputs = self._values(node, scope)
        elif isinstance(node, exp.Subquery):
            inner, outputs = self.query(node.this, scope)
            sql = f"({inner})" + self._tail(node, scope, outputs)
        else:
            raise UnknownCatalogQuery(f"{type(node).__name__} is not understood as a query here")
        return prefix + sql, outputs

    def _with(self, node: exp.Expr, scope: Scope) -> str:
        found = node.args.get("with_")
        if found is None:
            return ""
        recursive = bool(found.args.get("recursive"))
        made = []
        for part in found.expressions:
            alias = part.args["alias"]
            name, names = folded(alias.this), [folded(column) for column in alias.columns]
            if recursive and isinstance(part.this, exp.SetOperation):
                # The first branch says which columns there are; the second may use them.
                _, outputs = self.query(part.this.this, scope)
                scope.tables[name] = _renamed(outputs, names)
            sql, outputs = self.query(part.this, scope)
            scope.tables[name] = _renamed(outputs, names)
            listed = ", ".join(named(column.name) for column in scope.tables[name])
            made.append(f"{named(name)}({listed}) AS ({sql})")
        return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(made)} "

    def _select(self, node: exp.Select, scope: Scope) -> tuple[str, tuple[Output, ...]]:
        for unknown in ("into", "locks", "qualify", "connect", "pivots", "laterals", "windows"):
            if node.args.get(unknown):
                raise UnknownCatalogQuery(f"{unknown.upper()} is not understood in catalog queries")
        parts = []
        source = node.args.get("from_")
        if source is not None:
            joins = node.args.get("joins") or ()
            parts.append(f"FROM {self._sources.of(source.this, joins, scope)}")
        where = node.args.get("where")
        if where is not None:
            parts.append(f"WHERE {self._expressions.condition(where.this, scope)}")
        columns, outputs = self._columns(node.expressions, scope)
        group = node.args.get("group")
        if group is not None:
            parts.append(f"GROUP BY {self._grouped(group, scope, node.expressions)}")
        having = node.args.get("having")
        if having is not None:
            parts.append(f"HAVING {self._expressions.condition(having.this, scope)}")
        distinct = ""
        if node.args.get("distinct") is not None:
            distinct = "DISTINCT "
            on = node.args["distinct"].args.get("on")
            if on is not None:
                keys = (self._expressions.settled(key, scope).sql for key in on.expressions)
                distinct = f"DISTINCT ON ({', '.join(keys)}) "
        # PostgreSQL knows queries of no columns, as in EXISTS (SELECT FROM …); DuckDB does not.
        listed = ", ".join(columns) or "1"
        sql = " ".join((f"SELECT {distinct}{listed}", *parts))
        return sql + self._tail(node, scope, outputs), outputs

    def _columns(self, nodes: list[exp.Expr], scope: Scope) -> tuple[list[str], tuple[Output, ...]]:
        texts: list[str] = []
        outputs: list[Output] = []
        for node in nodes:
            star = isinstance(node, exp.Star)
            if star or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
                table = "" if star else folded(node.args.get("table"))
                for output, sql in scope.all_columns(table):
                    outputs.append(output)
                    texts.append(f"{sql} AS {named(output.name)}")
                continue
            inner = node.this if isinstance(node, exp.Alias) else node
            found = self._making.settled(self._expressions.of(inner, scope))
            outputs.append(Output(output_name(node), found.type))
            texts.append(f"{found.sql} AS {named(outputs[-1].name)}")
        return texts, tuple(outputs)

    def _grouped(self, group: exp.Group, scope: Scope, columns: list[exp.Expr]) -> str:
        """The keys of GROUP BY: numbers of columns, columns of FROM, or else names of columns."""
        for unknown in ("grouping_sets", "cube", "rollup", "all"):
            if group.args.get(unknown):
                raise UnknownCatalogQuery(f"{unknown} is not understood in catalog queries")
        keys = []
        for key in group.expressions:
            if isinstance(key, exp.Literal) and not key.is_string:
                keys.append(str(key.this))
            elif _is_plain(key) and scope.column(folded(key.this)) is None:
                keys.append(named(folded(key.this)))
            else:
                keys.append(self._expressions.settled(key, scope).sql)
        return ", ".join(keys)

    def _tail(self, node: exp.Expr, scope: Scope, outputs: tuple[Output, ...]) -> str:
        """ORDER BY, LIMIT, OFFSET."""
        parts = []
        order = node.args.get("order")
        if order is not None:
            keys = (
                self._expressions.ordered(part, self._order_key(part.this, scope, outputs))
                for part in order.expressions
            )
            parts.append(f" ORDER BY {', '.join(keys)}")
        for name in ("limit", "offset"):
            found = node.args.get(name)
            if found is None:
                continue
            count = found.args.get("expression") or found.args.get("count")
            if count is None:
                raise UnknownCatalogQuery(f"{name.upper()} of this form is not understood here")
            if isinstance(count, exp.Null) or count.name.upper() == "ALL":
                continue
            value = self._making.as_type(self._expressions.of(count, scope), "int8")
            parts.append(f" {name.upper()} {value.sql}")
        return "".join(parts)

    def _order_key(self, key: exp.Expr, scope: Scope, outputs: tuple[Output, ...]) -> str:
        """A key of ORDER BY: the number of a column, the name of one, or an expression."""
        if isinstance(key, exp.Literal) and not key.is_string:
            return str(key.this)
        if _is_plain(key):
            places = [
                place for place, output in enumerate(outputs, 1) if output.name == folded(key.this)
            ]
            if places:
                return str(places[0])
        return self._expressions.settled(key, scope).sql

    def _set_operation(
        self, node: exp.SetOperation, scope: Scope
    ) -> tuple[str, tuple[Output, ...]]:
        left, outputs = self.query(node.this, scope)
        right, others = self.query(node.expression, scope)
        if len(outputs) != len(others):
            raise UnknownCatalogQuery(
                "the queries of a UNION must have the same number of columns", "42601"
            )
        word = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}[type(node)]
        all_ = "" if node.args.get("distinct") else " ALL"
        outputs = tuple(
            Output(one.name, one.type if one.type is not None else other.type)
            for one, other in zip(outputs, others, strict=True)
        )
        return f"({left}) {word}{all_} ({right})" + self._tail(node, scope, outputs), outputs

    def _values(self, node: exp.Values, scope: Scope) -> tuple[str, tuple[Output, ...]]:
        rows: list[list[Typed]] = []
        for row in node.expressions:
            parts = row.expressions if isinstance(row, exp.Tuple) else [row]
            rows.append([self._expressions.of(part, scope) for part in parts])
        columns = [self._expressions.calls.unified(column) for column in zip(*rows, strict=True)]
        lines = zip(*(made for made, _ in columns), strict=True)
        texts = (f"({', '.join(one.sql for one in line)})" for line in lines)
        outputs = tuple(
            Output(f"column{place}", type_) for place, (_, type_) in enumerate(columns, 1)
        )
        names = ", ".join(named(output.name) for output in outputs)
        return f"SELECT * FROM (VALUES {', '.join(texts)}) AS given({names})", outputs


def _renamed(outputs: tuple[Output, ...], names: list[str]) -> tuple[Output, ...]:
    return (
        *(Output(name, old.type) for name, old in zip(names, outputs, strict=False)),
        *outputs[len(names) :],
    )


def _is_plain(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and not node.args.get("table")


def _has_modifiers(node: exp.Subquery) -> bool:
    return any(node.args.get(name) is not None for name in ("order", "limit", "offset", "with_"))
