"""What the parts of a query ask of the query around them, and of the SELECT they stand in.

Queries contain queries: the binder of a whole query calls those of its clauses, and they call it
for the queries within. These protocols are what the callee sees of its caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sqlglot import exp

from .algebra import Node, Scan
from .bound import Bound
from .builder import Builder
from .expressions import Expr
from .scope import Scope


class Context(Protocol):
    """What queries at one level have in common: the tables and the CTEs they can see."""

    @property
    def builder(self) -> Builder: ...

    def scan(self, parts: Sequence[str]) -> Scan:
        """A table by the parts of its name."""
        ...

    def cte(self, name: str) -> Bound | None:
        """A reference to a CTE, if there is one of this name."""
        ...

    def query(self, query: Expr) -> Bound:
        """Any query that does not refer to an outer one."""
        ...

    def subquery_context(self, query: Expr) -> Context:
        """The context for the clauses of a SELECT that has CTEs of its own."""
        ...


class Selecting(Protocol):
    """One SELECT on its way to a node, as its subqueries see it (see `SelectBinder`)."""

    node: Node

    @property
    def context(self) -> Context: ...

    @property
    def builder(self) -> Builder: ...

    @property
    def select(self) -> exp.Select: ...

    @property
    def scope(self) -> Scope: ...

    @property
    def correlated(self) -> list[Expr]: ...

    @property
    def items(self) -> Sequence[tuple[str | None, Expr, bool]]: ...

    @property
    def is_grouped(self) -> bool: ...

    @property
    def is_plain(self) -> bool: ...

    def inner(self, select: exp.Select) -> Selecting:
        """A subquery of this SELECT, bound up to WHERE."""
        ...

    def scalar(self, node: Expr) -> Expr: ...

    def grouped(self, node: Expr) -> Expr: ...

    def keep(self, conditions: Sequence[Expr]) -> None: ...

    def group(self, keys: Sequence[Expr]) -> list[str]: ...

    def finish(self) -> Bound: ...
