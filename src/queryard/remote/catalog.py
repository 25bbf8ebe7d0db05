"""The tables of a server, as far as a shell shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError, unknown_name
from queryard.sql.catalog.model import Column
from queryard.sql.catalog.quoting import split_name


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A table that a token may read."""

    key: str
    told: Mapping[str, Any]

    @property
    def name(self) -> str:
        return split_name(self.key)[-1]

    @property
    def schema(self) -> str:
        return ".".join(split_name(self.key)[:-1])

    @property
    def columns(self) -> tuple[Column, ...]:
        """Raises why they are not known."""
        if self.told["columns"] is None:
            raise QueryardError(str(self.told["error"]))
        return tuple(Column(each["name"], each["type"]) for each in self.told["columns"])

    def described(self) -> dict[str, Any]:
        """As plain data."""
        found = {name: self.told[name] for name in ("name", "kind", "rows", "bytes", "files")}
        columns = self.told["columns"]
        found |= {"rows_exact": True, "columns": None if columns is None else len(columns)}
        return found if columns is not None else {**found, "error": self.told["error"]}


class RemoteCatalog:
    """The tables of a server by name, as of when they were first asked for."""

    skipped: tuple[tuple[str, str], ...] = ()

    def __init__(self, ask: Callable[[], list[dict[str, Any]]]) -> None:
        self._ask = ask
        self._tables: dict[str, RemoteTable] | None = None

    @property
    def tables(self) -> Mapping[str, RemoteTable]:
        if self._tables is None:
            self._tables = {told["name"]: RemoteTable(told["name"], told) for told in self._ask()}
        return self._tables

    def refresh(self) -> tuple[str, ...]:
        """Ask again; the names of tables that have changed."""
        before = {} if self._tables is None else self._tables
        self._tables = None
        now = self.tables
        return tuple(
            key for key in sorted(before.keys() | now.keys()) if before.get(key) != now.get(key)
        )

    def _find(self, name: str) -> RemoteTable | None:
        wanted = [part.lower() for part in split_name(name)]
        for table in self.tables.values():
            if [part.lower() for part in split_name(table.key)] == wanted:
                return table
        return None

    def __contains__(self, name: str) -> bool:
        return self._find(name) is not None

    def __getitem__(self, name: str) -> RemoteTable:
        found = self._find(name)
        if found is None:
            raise QueryardError(unknown_name("table", name, self.tables))
        return found

    def described(self) -> list[dict[str, Any]]:
        """One entry per table."""
        return [table.described() for _, table in sorted(self.tables.items())]

    def described_columns(self, name: str) -> dict[str, Any]:
        """One table, with one entry per column."""
        table = self[name]
        columns = [{"name": column.name, "type": column.type} for column in table.columns]
        return {
            **table.described(),
            "statistics": "analysed",  # what is known of columns stays on the server
            "sampled_rows": None,
            "locations": [],
            "columns": columns,
        }
