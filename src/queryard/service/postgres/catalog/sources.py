"""What stands in FROM: relations of the catalogs, queries, functions, and joins of these."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from .answers import DataBesideCatalogs, UnknownCatalogQuery, UnknownRelation
from .expressions import Expressions
from .relations import Relation, relations
from .rewriting import Queries, folded
from .scopes import Output, Scope, Source
from .settings import SETTINGS_ROWS
from .typed import Making, named, record_fields
from .types import held_as

# Functions that give rows of several columns. There are none of these things here.
_WITHOUT_ROWS = {
    "pg_options_to_table": "option_name text, option_value text",
    "pg_partition_ancestors": "relid regclass",
    "pg_partition_tree": "relid regclass, parentrelid regclass, isleaf bool, level int4",
}
_KEYWORDS = (
    Output("word", "text"),
    Output("catcode", "char"),
    Output("barelabel", "bool"),
    Output("catdesc", "text"),
    Output("baredesc", "text"),
)


class Sources:
    """Rewrites FROM, and says to a scope what is in it."""

    def __init__(self, making: Making, expressions: Expressions, queries: Queries) -> None:
        self._making = making
        self._expressions = expressions
        self._queries = queries

    def of(self, first: exp.Expr, joins: Sequence[exp.Join], scope: Scope) -> str:
        """The text of a FROM; its sources are added to the scope, from left to right."""
        return " ".join((self._one(first, scope), *(self._join(joined, scope) for joined in joins)))

    def _one(self, node: exp.Expr, scope: Scope) -> str:
        for unknown in ("pivots", "sample"):
            if node.args.get(unknown):
                what = "TABLESAMPLE" if unknown == "sample" else "PIVOT"
                raise UnknownCatalogQuery(f"{what} is not understood in catalog queries")
        joins = node.args.get("joins") or ()
        if joins and not isinstance(node, exp.Select):
            return f"({self.of(_without_joins(node), joins, scope)})"
        if isinstance(node, exp.Lateral):
            inner = node.this
            inner.set("alias", node.args.get("alias"))
            return f"LATERAL {self._one(inner, scope)}"
        if isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table | exp.Subquery) and not node.args.get("alias"):
                return self._one(node.this, scope)
            sql, outputs = self._queries(node.this, scope)
            return self._derived(sql, outputs, node, scope)
        if isinstance(node, exp.Values):
            sql, outputs = self._queries(node, scope)
            return self._derived(sql, outputs, node, scope)
        if isinstance(node, exp.Unnest):
            return self._unnest(node, scope)
        if isinstance(node, exp.Table):
            if isinstance(node.this, exp.Func):
                return self._function(node, scope)
            if node.this is not None:
                return self._table(node, scope)
        raise UnknownCatalogQuery(f"{type(node).__name__} in FROM is not understood here")

    # ---- joins

    def _join(self, node: exp.Join, scope: Scope) -> str:
        if node.args.get("method"):
            raise UnknownCatalogQuery("NATURAL joins are not understood in catalog queries")
        side, kind = (str(node.args.get(key) or "").upper() for key in ("side", "kind"))
        before = len(scope.sources)
        on, using = node.args.get("on"), node.args.get("using")
        made = self._one(node.this, scope)
        if not side and not kind and on is None and not using:
            # A comma. What it joins may name what stands before it, as in DuckDB.
            return f"CROSS JOIN {made}"
        word = " ".join(part for part in (side, kind if kind != "OUTER" else "", "JOIN") if part)
        if using:
            names = [folded(name) for name in using]
            before_it = Scope(sources=scope.sources[:before], merged=dict(scope.merged))
            for name in names:
                left = before_it.column(name)
                scope.merged[name] = left.type if left is not None else None
            return f"{word} {made} USING ({', '.join(map(named, names))})"
        if on is None:
            return f"{word} {made}"
        return f"{word} {made} ON {self._expressions.condition(on, scope)}"

    # ---- relations and queries

    def _table(self, node: exp.Table, scope: Scope) -> str:
        name, schema = folded(node.this), folded(node.args.get("db"))
        if not schema:
            columns = scope.table(name)
            if columns is not None:
                return self._added(named(name), columns, node, scope, name)
        found = relation_of(schema, name)
        if found.name == "pg_settings":
            names, values = self._making.value("names"), self._making.value("values")
            sql = f"({SETTINGS_ROWS.format(names=names, values=values)})"
        else:
            self._making.relations[found.key] = found
            sql = named(found.key)
        columns = tuple(Output(column.name, column.type) for column in found.columns)
        return self._added(sql, columns, node, scope, name, found)

    def _derived(self, sql: str, outputs: tuple[Output, ...], node: exp.Expr, scope: Scope) -> str:
        return self._added(f"({sql})", outputs, node, scope, "unnamed_subquery")

    def _added(
        self,
        sql: str,
        columns: tuple[Output, ...],
        node: exp.Expr,
        scope: Scope,
        name: str,
        relation: Relation | None = None,
    ) -> str:
        alias = node.args.get("alias")
        called = folded(alias.this) if alias is not None and alias.this is not None else name
        names = [folded(column) for column in alias.columns] if alias is not None else []
        columns = (
            *(Output(new, old.type) for new, old in zip(names, columns, strict=False)),
            *columns[len(names) :],
        )
        source = Source(called, columns)
        if relation is not None:
            source.schema, source.oid = relation.schema, relation.oid
        scope.sources.append(source)
        listed = f"({', '.join(named(column.name) for column in columns)})" if names else ""
        return f"{sql} AS {named(called)}{listed}"

    # ---- functions

    def _unnest(self, node: exp.Unnest, scope: Scope) -> str:
        arrays = [self._expressions.of(part, scope) for part in node.expressions]
        outputs, parts = [], []
        alias = node.args.get("alias")
        called = folded(alias.this) if alias is not None and alias.this is not None else "unnest"
        for place, array in enumerate(arrays):
            made = self._expressions.calls.call("unnest", [array])
            name = called if len(arrays) == 1 else f"unnest{place}"
            outputs.append(Output(name, made.type))
            parts.append(f"{made.sql} AS {named(name)}")
        offset = node.args.get("offset")
        if offset:
            name = folded(offset) if isinstance(offset, exp.Identifier) else "ordinality"
            outputs.append(Output(name, "int8"))
            longest = f"greatest({', '.join(f'len({array.sql})' for array in arrays)})"
            parts.append(f"unnest(generate_series(1, {longest})) AS {named(name)}")
        return self._added(f"(SELECT {', '.join(parts)})", tuple(outputs), node, scope, "unnest")

    def _function(self, node: exp.Table, scope: Scope) -> str:
        call = node.this
        name = str(call.this).lower()
        ordinality = bool(node.args.get("ordinality"))
        if name in _WITHOUT_ROWS:
            outputs = [Output(*column.split()) for column in _WITHOUT_ROWS[name].split(", ")]
            if ordinality:
                outputs.append(Output("ordinality", "int8"))
            listed = ", ".join(
                f"CAST(NULL AS {held_as(column.type or 'text')}) AS {named(column.name)}"
                for column in outputs
            )
            return self._added(f"(SELECT {listed} WHERE false)", tuple(outputs), node, scope, name)
        if name == "pg_get_keywords":
            return self._added('"keywords"', _KEYWORDS, node, scope, name)
        made = self._expressions.of(call, scope)
        fields = record_fields(made.type)
        if fields:
            # One column per field of the record, as PostgreSQL has it.
            listed = ", ".join(f"r.{named(field)} AS {named(field)}" for field in fields)
            outputs = [Output(field, type_) for field, type_ in fields.items()]
            sql = f"(SELECT {listed} FROM (SELECT {made.sql} AS r))"
            return self._added(sql, tuple(outputs), node, scope, name)
        alias = node.args.get("alias")
        called = folded(alias.this) if alias is not None and alias.this is not None else name
        parts = [f"{made.sql} AS {named(called)}"]
        outputs = [Output(called, made.type)]
        if ordinality:
            if not made.sql.startswith("unnest("):
                parts.append("1::BIGINT AS ordinality")
            else:
                parts.append("row_number() OVER ()::BIGINT AS ordinality")
            outputs.append(Output("ordinality", "int8"))
        return self._added(f"(SELECT {', '.join(parts)})", tuple(outputs), node, scope, name)


def _without_joins(node: exp.Expr) -> exp.Expr:
    plain = node.copy()
    plain.set("joins", None)
    return plain


def relation_of(schema: str, name: str) -> Relation:
    """A relation of the catalogs by name, or the error that says why there is none."""
    found = relations().get((schema or "pg_catalog", name))
    if found is None:
        known = f"{schema}.{name}" if schema else name
        if schema not in ("", "pg_catalog", "information_schema"):
            raise DataBesideCatalogs(known)
        if not schema:
            raise UnknownRelation(name)
        raise UnknownCatalogQuery(f'relation "{known}" does not exist', "42P01")
    if found.rows == "refused":
        raise UnknownCatalogQuery(f"{found.key} is not offered by this server")
    return found
