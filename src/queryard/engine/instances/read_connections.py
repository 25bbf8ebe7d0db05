"""Further connections of the session's instance, for reads of the databases that it writes.

While this process writes a database file no second instance may open it, so what reads it runs in
the writing instance as well. DuckDB keeps such reads apart from what is not committed yet. They run
beside one another and beside the statement on the session's own connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Set

from queryard.sql.catalog import Catalog

from .attached import Attached, SearchPath
from .instance import Connection, Instance
from .settings import Settings, apply
from .views import FileTable, OwnViews, unusable


class ReadConnection:
    """A connection, where it looks for tables, and its own views of files."""

    def __init__(self, instance: Instance, settings: Settings = ()) -> None:
        self.connection = Connection(instance)
        # One with settings is of no use to the next read.
        self.is_kept = not settings
        apply(self.connection, settings)
        self.search_path = SearchPath()
        self.views = OwnViews()

    def prepare(
        self,
        attached: Attached,
        catalog: Catalog,
        files: Mapping[str, FileTable],
        names: Set[str],
    ) -> dict[str, Exception]:
        """Make what must be there before a statement that names these; `files` are tables."""
        self.search_path.follow(self.connection, attached, catalog)
        plain = {key: table for key, table in files.items() if not table.schema}
        errors = self.views.make(self.connection, plain, names)
        return {**errors, **unusable(catalog.unusable, names)}


class ReadConnections:
    """The further connections of one instance, kept for the next read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[ReadConnection] = []
        self._taken: set[ReadConnection] = set()
        # What to do once the readers that had begun by then have ended.
        self._later: list[tuple[set[ReadConnection], Callable[[], None]]] = []
        self._closed = False

    def take(self, instance: Instance, settings: Settings = ()) -> ReadConnection:
        with self._lock:
            reuses = bool(self._idle) and not settings
            reader = self._idle.pop() if reuses else ReadConnection(instance, settings)
            self._taken.add(reader)
            return reader

    def give_back(self, reader: ReadConnection) -> None:
        with self._lock:
            self._taken.discard(reader)
            if self._closed or not reader.is_kept:
                reader.connection.close()
            else:
                self._idle.append(reader)
            for waited_for, _ in self._later:
                waited_for.discard(reader)
            due = [act for waited_for, act in self._later if not waited_for]
            self._later = [(waited_for, act) for waited_for, act in self._later if waited_for]
        for act in due:
            act()

    def after_all(self, act: Callable[[], None]) -> None:
        """Do something once all reads that are under way have ended."""
        with self._lock:
            if self._taken:
                self._later.append((set(self._taken), act))
                return
        act()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for reader in self._idle:
                reader.connection.close()
            self._idle.clear()
