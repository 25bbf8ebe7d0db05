"""The items of a SELECT list as they are written, stars spelt out."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from .errors import NotStageable
from .expressions import Expr, column
from .scope import Scope

Item = tuple[str | None, Expr, bool]
"""The name (None: DuckDB makes one), the expression, and whether the name was given by AS."""


class StarColumn(exp.Expression):
    """A column that a star already stands for, in the middle of an unbound tree."""


def select_items(select: exp.Select, scope: Scope) -> list[Item]:
    """All items, in order; `scope` says what stars stand for."""
    items: list[Item] = []
    for item in select.expressions:
        if isinstance(item, exp.Alias):
            items.append((item.alias, item.this, True))
        elif isinstance(item, exp.Star) or isinstance(item.this, exp.Star):
            if isinstance(item, exp.Star | exp.Column):
                items += _star(item, scope)
            else:
                items.append((None, item, False))
        elif isinstance(item, exp.Column):
            items.append((item.name, item, False))
        else:
            items.append((None, item, False))
    return items


def _star(item: Expr, scope: Scope) -> Iterator[Item]:
    star = item if isinstance(item, exp.Star) else item.this
    for name, value in star.args.items():
        if value and name not in ("except_", "this"):
            raise NotStageable(f"* with {name} is not analysed")
    if item.args.get("db"):
        raise NotStageable("a star with a schema is not analysed")
    found = scope.star()
    if isinstance(item, exp.Column):
        found = scope.star_of(item.table)
    excluded = {e.name.lower() for e in star.args.get("except_") or ()}
    for visible in found:
        if visible.name is None or visible.name.lower() not in excluded:
            yield visible.name, StarColumn(this=column(visible.column)), False
