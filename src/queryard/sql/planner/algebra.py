"""The logical plan: a tree of relational operators over columns with unique names.

A node used in two places is wrapped in `Shared`, computed once, and read under fresh names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .aggregates import Call
from .expressions import Expr
from .oracle import Field

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti"]


@dataclass(eq=False, slots=True)
class Scan:
    """A table; `columns` maps the plan's names to the table's."""

    table: str
    columns: dict[str, str]
    fields: tuple[Field, ...]


@dataclass(eq=False, slots=True)
class OneRow:
    """A single row without columns: SELECT without FROM."""

    fields: tuple[Field, ...] = ()


@dataclass(eq=False, slots=True)
class Filter:
    """The rows for which all conditions are true."""

    child: Node
    conditions: tuple[Expr, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.child.fields


@dataclass(eq=False, slots=True)
class Project:
    """New columns from those of the child."""

    child: Node
    items: tuple[tuple[str, Expr], ...]
    fields: tuple[Field, ...]


@dataclass(eq=False, slots=True)
class Join:
    """Pairs of rows for which all conditions hold; semi and anti joins keep the left columns."""

    kind: JoinKind
    left: Node
    right: Node
    conditions: tuple[Expr, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        if self.kind in ("semi", "anti"):
            return self.left.fields
        return self.left.fields + self.right.fields


@dataclass(eq=False, slots=True)
class Aggregate:
    """Groups of equal keys (renamed columns of the child) and aggregates over each."""

    child: Node
    keys: tuple[tuple[str, str], ...]
    calls: tuple[Call, ...]
    fields: tuple[Field, ...]


@dataclass(eq=False, slots=True)
class UnionAll:
    """All rows of all inputs; columns correspond by position and have equal types."""

    inputs: tuple[Node, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class SortKey:
    """A column, and the direction as text (`DESC NULLS FIRST`)."""

    name: str
    direction: str

    def text(self) -> str:
        return f"{self.name} {self.direction}".rstrip()


@dataclass(eq=False, slots=True)
class Sort:
    """Rows in order, or some of them; without keys any rows will do."""

    child: Node
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.child.fields


@dataclass(eq=False, slots=True)
class Shared:
    """Something computed once and read in several places."""

    child: Node

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.child.fields


Node = Scan | OneRow | Filter | Project | Join | Aggregate | UnionAll | Sort | Shared


def names(node: Node) -> frozenset[str]:
    """The columns a node offers."""
    return frozenset(field.name for field in node.fields)


def inputs(node: Node) -> tuple[Node, ...]:
    """What a node reads."""
    if isinstance(node, Join):
        return (node.left, node.right)
    if isinstance(node, UnionAll):
        return node.inputs
    if isinstance(node, Scan | OneRow):
        return ()
    return (node.child,)
