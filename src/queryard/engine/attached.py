"""Database files that instances have attached, so that no two of one process write to one.

DuckDB locks a file against other processes only; two instances of one process that both write
to it lose data. Any number of them may read it.
"""

from __future__ import annotations

import threading
from collections.abc import Set
from pathlib import Path

from queryard.sql.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.quoting import identifier, literal

from .errors import NotAllowed
from .instance import Connection

_lock = threading.Lock()
# Resolved path -> whoever reads it, and whoever writes it.
_readers: dict[Path, set[int]] = {}
_writers: dict[Path, int] = {}


class Claims:
    """The files one instance has attached."""

    def __init__(self) -> None:
        self._held: set[Path] = set()

    def claim(self, path: str, writes: bool) -> None:
        """Enter that a file is about to be attached; an error if it is in use elsewhere."""
        place = Path(path).resolve()
        with _lock:
            others = _readers.get(place, set()) - {id(self)}
            if _writers.get(place, id(self)) != id(self) or (writes and others):
                use = "written" if place in _writers else "read"
                raise NotAllowed(
                    f"{place} is {use} by another session of this process, and two of them would "
                    "lose data; close that one first, or use it for this as well"
                )
            if writes:
                _writers[place] = id(self)
            _readers.setdefault(place, set()).add(id(self))
            self._held.add(place)

    def keep_only(self, paths: set[str]) -> None:
        """Enter which files are still attached."""
        self._release(self._held - {Path(path).resolve() for path in paths})

    def release(self) -> None:
        self._release(set(self._held))

    def _release(self, places: set[Path]) -> None:
        with _lock:
            for place in places:
                self._held.discard(place)
                _readers.get(place, set()).discard(id(self))
                if not _readers.get(place):
                    _readers.pop(place, None)
                if _writers.get(place) == id(self):
                    del _writers[place]


class Attached:
    """The databases of the catalog that one instance has attached, each when it is first named."""

    def __init__(self, claims: Claims | None = None, writes: bool = False) -> None:
        self.claims = claims or Claims()
        self._writes = writes
        self._aliases: set[str] = set()

    def attach(
        self, connection: Connection, catalog: Catalog, names: Set[str] | None = None
    ) -> None:
        """Attach what is not attached yet: all, or what some names may mean."""
        mode = "" if self._writes else " (READ_ONLY)"
        missing = [
            database
            for database in catalog.databases
            if database.alias not in self._aliases
            and (names is None or not names.isdisjoint(_names_in(catalog, database.alias)))
        ]
        if not missing:
            return
        for database in missing:
            alias = identifier(database.alias)
            self.claims.claim(database.path, self._writes)
            connection.run(f"ATTACH {literal(database.path)} AS {alias}{mode}")
            self._aliases.add(database.alias)
        # Tables of a single database file go by their bare names.
        bare = {
            table.database.alias
            for table in catalog.tables.values()
            if isinstance(table, DatabaseTable) and not table.schema
        } & self._aliases
        if bare:
            path = ",".join([*(f"{identifier(alias)}.main" for alias in sorted(bare)), "memory"])
            connection.run(f"SET search_path = {literal(path)}")


def _names_in(catalog: Catalog, alias: str) -> set[str]:
    """The database, and its tables."""
    return {alias.lower()} | {
        table.name.lower()
        for table in catalog.tables.values()
        if isinstance(table, DatabaseTable) and table.database.alias == alias
    }
