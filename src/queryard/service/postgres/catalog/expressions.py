"""Expressions of PostgreSQL turned into those of DuckDB, with their types."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from . import calling, operators, values
from .answers import UnknownCatalogQuery
from .calls import Calls
from .rewriting import Handler, Queries
from .scopes import Scope
from .typed import Making, Typed, text_of

_HANDLERS: dict[type[exp.Expr], Handler] = {
    **values.HANDLERS,
    **operators.HANDLERS,
    **calling.HANDLERS,
}


class Expressions:
    """Rewrites expressions; queries within them are given to `queries`."""

    def __init__(self, making: Making, queries: Queries) -> None:
        self.making = making
        self.queries = queries
        self.calls = Calls(making)

    def of(self, node: exp.Expr, scope: Scope) -> Typed:
        """An expression, with its type; its text stands for itself in any place."""
        handler = _HANDLERS.get(type(node))
        if handler is None:
            raise UnknownCatalogQuery(f"{type(node).__name__} is not understood in catalog queries")
        return handler(self, node, scope)

    def settled(self, node: exp.Expr, scope: Scope) -> Typed:
        """An expression whose type nothing else decides."""
        return self.making.settled(self.of(node, scope))

    def condition(self, node: exp.Expr, scope: Scope) -> str:
        """An expression that is true or false."""
        return self.making.as_type(self.of(node, scope), "bool").sql

    def text(self, node: exp.Expr, scope: Scope) -> str:
        """An expression as text."""
        return text_of(self.making.as_type(self.of(node, scope), "text"))

    def order(self, parts: Sequence[exp.Expr], scope: Scope) -> str:
        """The keys of an ORDER BY. Absent values come last, or first where it goes down."""
        return ", ".join(self.ordered(part, self.settled(part.this, scope).sql) for part in parts)

    @staticmethod
    def ordered(part: exp.Expr, key: str) -> str:
        direction = "DESC" if part.args.get("desc") else "ASC"
        nulls = "FIRST" if part.args.get("nulls_first") else "LAST"
        return f"{key} {direction} NULLS {nulls}"
