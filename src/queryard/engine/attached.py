"""Database files that instances have attached, so that no two of one process write to one.

DuckDB locks a file against other processes only; two instances of one process that both write
to it lose data. Any number of them may read it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Set
from pathlib import Path

from queryard.sql.catalog import Catalog
from queryard.sql.catalog.database import DatabaseTable
from queryard.sql.catalog.model import AttachedDatabase
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

    def claim(self, path: str, writes: bool) -> bool:
        """Enter that a file is about to be attached; an error if it is in use elsewhere.

        Returns whether it was not entered before.
        """
        place = Path(path).resolve()
        with _lock:
            others = _readers.get(place, set()) - {id(self)}
            if _writers.get(place, id(self)) != id(self) or (writes and others):
                use = "written" if place in _writers else "read"
                raise NotAllowed(
                    f"{place} is {use} elsewhere in this process, and a second one that writes, or "
                    "reads what is written, would lose data; close that session first, or use it "
                    "for this as well"
                )
            if writes:
                _writers[place] = id(self)
            _readers.setdefault(place, set()).add(id(self))
            is_new = place not in self._held
            self._held.add(place)
            return is_new

    def holds(self, path: str) -> bool:
        """Whether a file is entered."""
        return Path(path).resolve() in self._held

    def keep_only(self, paths: set[str]) -> None:
        """Enter which files are still attached."""
        self._release(self._held - {Path(path).resolve() for path in paths})

    def release_one(self, path: str) -> None:
        """A file was not attached after all."""
        self._release({Path(path).resolve()})

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
    """The databases of the catalog that one instance has attached, each when it is first named.

    One that was replaced by another file since is attached anew, unless we write to it ourselves.
    """

    def __init__(self, claims: Claims | None = None, writes: bool = False) -> None:
        self.claims = claims or Claims()
        self._writes = writes
        # By alias, the file as it was.
        self._files: dict[str, tuple[int, ...]] = {}

    def attach(
        self, connection: Connection, catalog: Catalog, names: Set[str] | None = None
    ) -> None:
        """Attach what is not attached yet: all, or what some names may mean."""
        wanted = [
            database
            for database in catalog.databases
            if names is None or not names.isdisjoint(_names_in(catalog, database.alias))
        ]
        changed = False
        for database in wanted:
            file = _state_of(database.path)
            held = self._files.get(database.alias)
            if held is not None and (self._writes or held == file):
                continue
            if held is None and self.claims.holds(database.path):
                continue  # a statement of the user's has attached it, under a name of its own
            if held is not None:
                connection.run("USE memory")
                connection.run(f"DETACH {identifier(database.alias)}")
                del self._files[database.alias]
            self._attach(connection, database)
            self._files[database.alias] = file
            changed = True
        if changed:
            self._search(connection, catalog)

    def _attach(self, connection: Connection, database: AttachedDatabase) -> None:
        mode = "" if self._writes else " (READ_ONLY)"
        is_new = self.claims.claim(database.path, self._writes)
        try:
            alias = identifier(database.alias)
            connection.run(f"ATTACH {literal(database.path)} AS {alias}{mode}")
        except BaseException:
            if is_new:
                self.claims.release_one(database.path)
            raise

    def _search(self, connection: Connection, catalog: Catalog) -> None:
        """Tables of a single database file go by their bare names."""
        bare = {
            table.database.alias
            for table in catalog.tables.values()
            if isinstance(table, DatabaseTable) and not table.schema
        } & self._files.keys()
        if bare:
            path = ",".join([*(f"{identifier(alias)}.main" for alias in sorted(bare)), "memory"])
            connection.run(f"SET search_path = {literal(path)}")


def _state_of(path: str) -> tuple[int, ...]:
    """What a file is like: another one, or another state of it, is like something else."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _names_in(catalog: Catalog, alias: str) -> set[str]:
    """The database, and its tables."""
    return {alias.lower()} | {
        table.name.lower()
        for table in catalog.tables.values()
        if isinstance(table, DatabaseTable) and table.database.alias == alias
    }
