"""What the parts of the rewriting of expressions share: how they call each other, and names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sqlglot import exp

from .calls import Calls
from .scopes import Output, Scope
from .typed import Making, Typed


class Queries(Protocol):
    """What rewrites a query within an expression."""

    def __call__(self, query: exp.Expr, around: Scope) -> tuple[str, tuple[Output, ...]]: ...


class Rewriting(Protocol):
    """What rewrites an expression, for those that rewrite the parts of one."""

    making: Making
    calls: Calls
    queries: Queries

    def of(self, node: exp.Expr, scope: Scope) -> Typed:
        """An expression, with its type; its text stands for itself in any place."""

    def settled(self, node: exp.Expr, scope: Scope) -> Typed:
        """An expression whose type nothing else decides."""

    def condition(self, node: exp.Expr, scope: Scope) -> str:
        """An expression that is true or false."""

    def text(self, node: exp.Expr, scope: Scope) -> str:
        """An expression as text."""

    def order(self, parts: Sequence[exp.Expr], scope: Scope) -> str:
        """The keys of an ORDER BY."""


Handler = Callable[[Rewriting, Any, Scope], Typed]
"""Rewrites one kind of expression."""


def folded(identifier: exp.Expr | str | None) -> str:
    """A name as PostgreSQL understands it: in lower case unless it is quoted."""
    if identifier is None:
        return ""
    if isinstance(identifier, str):
        return identifier.lower()
    if isinstance(identifier, exp.Identifier):
        name = str(identifier.this)
        return name if identifier.args.get("quoted") else name.lower()
    return identifier.name.lower()


def type_text(to: exp.Expr) -> str:
    """The name of a type as it was written."""
    if isinstance(to, exp.ObjectIdentifier | exp.PseudoType):
        return str(to.this)
    return to.sql(dialect="postgres")
