"""What the catalog views are made of: plain facts about the tables that a client may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KeyKind = Literal["primary", "unique", "foreign", "check"]


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column; `type` is in DuckDB's own words."""

    name: str
    type: str
    not_null: bool = False
    default: str | None = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """A constraint of a table: a key, a reference to one, or a condition on its rows."""

    kind: KeyKind
    name: str
    columns: tuple[str, ...]
    references: tuple[str, str] | None = None
    """Of a foreign key: schema and name of the table that it refers to."""
    referenced: tuple[str, ...] = ()
    condition: str = ""
    """Of a check: what must hold, as SQL."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table or view, with what is known of it."""

    schema: str
    name: str
    columns: tuple[ColumnFacts, ...]
    keys: tuple[KeyFacts, ...] = ()
    rows: float | None = None
    bytes: float | None = None
    view: bool = False
    definition: str | None = None
    """Of a view: its SELECT, where that is known."""
    comment: str | None = None
    writable: bool = False


@dataclass(frozen=True, slots=True)
class CatalogFacts:
    """All that a client may know. `schema` is the one that tables without a schema are in.

    `searched` are the schemas that names without one are looked for in.
    """

    tables: tuple[TableFacts, ...]
    database: str = "memory"
    schema: str = "main"
    user: str = "queryard"
    tenant: str = "default"
    searched: tuple[str, ...] = ("main",)
