"""The catalog's tables on a session's connection: files as views, frames as copies."""

from __future__ import annotations

from collections.abc import Mapping, Set

from queryard.sql.catalog import Catalog
from queryard.sql.catalog.frames import FrameTable
from queryard.sql.catalog.quoting import identifier

from ..instances.instance import Connection
from ..instances.views import FileTable, Views
from .frames import copy_in


class ShownTables:
    """What was made of them so far, each when it was first named."""

    def __init__(self) -> None:
        self._views = Views()
        # Key -> fingerprint of the frame, and the name of its copy.
        self._frames: dict[str, tuple[str, str]] = {}

    def make(
        self,
        connection: Connection,
        catalog: Catalog,
        files: Mapping[str, FileTable],
        names: Set[str],
        made: Set[str],
    ) -> dict[str, Exception]:
        """Make those with these names, but for what the client has `made` in their place.

        Returns by table why one could not be made.
        """
        # Views that are gone make room for frames of the same name.
        errors = self._views.make(connection, files, names - made)
        self._drop_unregistered(connection, catalog)
        for key, table in catalog.tables.items():
            name = table.name.lower()
            if isinstance(table, FrameTable) and name in names and name not in made:
                self._copy(connection, key, table)
        return errors

    def forget(self) -> None:
        """They are gone: with the instance, or with a transaction that was rolled back."""
        self._views = Views()
        self._frames.clear()

    def _drop_unregistered(self, connection: Connection, catalog: Catalog) -> None:
        """Drop the copies of frames that are registered no more."""
        for key, (_, place) in list(self._frames.items()):
            if not isinstance(catalog.tables.get(key), FrameTable):
                connection.run(f"DROP TABLE IF EXISTS {place}")
                del self._frames[key]

    def _copy(self, connection: Connection, key: str, table: FrameTable) -> None:
        if self._frames.get(key, ("", ""))[0] == table.fingerprint:
            return
        if table.schema:
            connection.run(f"CREATE SCHEMA IF NOT EXISTS memory.{identifier(table.schema)}")
        schema = identifier(table.schema or "main")
        place = f"memory.{schema}.{identifier(table.name)}"
        copy_in(connection, place, table.frame)
        self._frames[key] = (table.fingerprint, place)
