"""A bound query, and what ORDER BY and LIMIT say of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from .algebra import Node, Project, Sort
from .errors import NotStageable
from .expressions import Expr


@dataclass(slots=True)
class Bound:
    """A bound query: its columns (visible name, plan's name) in order."""

    node: Node
    columns: list[tuple[str | None, str]]
    ordered: bool = False


def unordered(node: Node) -> Node:
    """The node without an order that is not asked for: a sort of a subquery without LIMIT."""
    if isinstance(node, Sort) and node.limit is None and not node.offset:
        return node.child
    if isinstance(node, Project) and isinstance(node.child, Sort):
        return Project(unordered(node.child), node.items, node.fields)
    return node


def output_column(key: Expr, columns: list[tuple[str | None, str]]) -> str | None:
    """The output column an ORDER BY item names by position or by name."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return columns[int(key.this) - 1][1]
    if isinstance(key, exp.Column) and not key.table:
        found = [c for name, c in columns if name is not None and name.lower() == key.name.lower()]
        if len(set(found)) > 1:
            raise NotStageable(f"ORDER BY {key.name} is ambiguous")
        return found[0] if found else None
    return None


def is_all(ordered: Expr) -> bool:
    """Whether an ORDER BY item is ALL: every output column, from left to right."""
    key = ordered.this
    return isinstance(key, exp.Var) and key.name.upper() == "ALL"


def direction(ordered: Expr) -> str:
    """DESC and NULLS of an ORDER BY item, spelt out."""
    if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
        raise NotStageable("this ORDER BY is not analysed")
    nulls = "NULLS FIRST" if ordered.args.get("nulls_first") else "NULLS LAST"
    return f"{'DESC' if ordered.args.get('desc') else 'ASC'} {nulls}"


def limit_of(query: Expr) -> tuple[int | None, int]:
    """LIMIT and OFFSET, which must be plain numbers."""
    found: list[int | None] = []
    for name in ("limit", "offset"):
        clause = query.args.get(name)
        if clause is None:
            found.append(None)
            continue
        number = clause.args.get("expression")
        if not isinstance(clause, exp.Limit | exp.Offset) or not (
            isinstance(number, exp.Literal) and not number.is_string and number.this.isdigit()
        ):
            raise NotStageable(f"{name.upper()} is not a plain number")
        found.append(int(number.this))
    return found[0], found[1] or 0
