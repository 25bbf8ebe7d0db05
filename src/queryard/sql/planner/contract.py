"""What the planner needs to know of tables; `queryard.sql.catalog` offers all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from queryard.core.errors import QueryardError

from .errors import NotStageable


class ColumnLike(Protocol):
    """A column: its name and DuckDB's text for its type."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...


class SplitLike(Protocol):
    """A piece of a table; `relation` goes behind FROM, `frame` is registered under that name.

    `places` are machines that hold it, as far as the catalog says.
    """

    @property
    def bytes(self) -> float: ...
    @property
    def rows(self) -> float | None: ...
    @property
    def relation(self) -> str: ...
    @property
    def frame(self) -> Any: ...
    @property
    def places(self) -> tuple[str, ...]: ...


class TableStatisticsLike(Protocol):
    """What is known of a table."""

    @property
    def rows(self) -> float: ...
    @property
    def bytes(self) -> float: ...
    @property
    def columns(self) -> Mapping[str, Any]: ...


class TableLike(Protocol):
    """A table that can be read in splits."""

    @property
    def name(self) -> str: ...
    @property
    def schema(self) -> str: ...
    @property
    def columns(self) -> Sequence[ColumnLike]: ...
    @property
    def bytes(self) -> float: ...
    @property
    def rows(self) -> float | None: ...
    @property
    def elsewhere(self) -> str: ...
    @property
    def fingerprint(self) -> str: ...
    def splits(self, target_bytes: float) -> Sequence[SplitLike]: ...
    def row_group_splits(self) -> Sequence[SplitLike]: ...


class CatalogLike(Protocol):
    """Tables by name (or schema.name), and what is known of them."""

    def __getitem__(self, name: str) -> TableLike: ...
    def statistics(self, name: str) -> TableStatisticsLike: ...


def find_table(catalog: CatalogLike, parts: Sequence[str]) -> tuple[str, TableLike]:
    """The table of a (qualified) name and the name the catalog has for it."""
    if len(parts) == 2 and parts[0].lower() == "main":
        parts = parts[1:]
    key = ".".join(parts)
    try:
        return key, catalog[key]
    except QueryardError as error:
        raise NotStageable(str(error)) from error
