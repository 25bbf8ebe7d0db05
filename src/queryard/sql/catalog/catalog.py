"""All tables of a session, by name, and what is known of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from queryard.core.errors import unknown_name

from .advice import passed_over
from .database import DatabaseTable
from .declare import Contents
from .file_table import FileTable
from .frames import is_frame
from .locations import filesystem, scheme_of
from .metadata import MetadataReader
from .model import AttachedDatabase, CatalogError, Table
from .quoting import split_name

if TYPE_CHECKING:
    from queryard.sql.statistics.model import TableStatistics

_RENAME = "rename one, or name the tables in a catalog file"


class Catalog:
    """Tables by name. SQL does not tell upper from lower case, and neither does a look-up.

    Made by `open_catalog`. `refresh` looks at the files again; until then the catalog stands still.
    """

    def __init__(
        self,
        read: Callable[[], Contents],
        statistics_folder: Path | None = None,
        declare: Callable[[str, object], Contents] | None = None,
        metadata: MetadataReader | None = None,
    ) -> None:
        self.metadata = metadata
        """What looks at files for this catalog, and no other."""
        self._read = read
        self._declare = declare
        # Names given later, which stand before those that were there.
        self._added: dict[str, Callable[[], Contents]] = {}
        self._changing = threading.RLock()
        self.statistics_folder = statistics_folder
        """Where `analyze` keeps what it finds; None for the cache of the user."""
        self._statistics: dict[str, tuple[str, TableStatistics]] = {}
        self._take(self._contents())

    def add(self, name: str, value: object) -> None:
        """Name another table: a place or a frame, as in the `tables` of `open_catalog`.

        It takes the place of a table that already has the name.
        """
        if self._declare is None:
            raise CatalogError(f"table {name!r}: nothing can be added to this catalog")
        found = self._declare(name, value)
        declare = self._declare
        # A frame is taken over once, files are listed anew with every refresh.
        again = (lambda: found) if is_frame(value) else (lambda: declare(name, value))
        with self._changing:
            before = self._added.get(name.lower())
            self._added[name.lower()] = again
            try:
                self.refresh()
            except CatalogError:
                if before is None:
                    del self._added[name.lower()]
                else:
                    self._added[name.lower()] = before
                raise

    def remove(self, name: str) -> None:
        """Forget a table that was added."""
        with self._changing:
            if self._added.pop(name.lower(), None) is None:
                raise CatalogError(unknown_name("added table", name, self._added))
            self.refresh()

    def _contents(self) -> Contents:
        contents = self._read()
        for read in self._added.values():
            more = read()
            names = {table.key.lower() for table in more.tables}
            contents.tables = [t for t in contents.tables if t.key.lower() not in names]
            contents.add(more)
        return contents

    @property
    def tables(self) -> Mapping[str, Table]:
        """Every table by its key: `name`, or `schema.name`."""
        return MappingProxyType(self._tables)

    @property
    def databases(self) -> tuple[AttachedDatabase, ...]:
        """To be attached READ_ONLY by the instance that reads their tables."""
        return self._databases

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """What looked like data and is no table: the place and the reason."""
        return self._skipped

    @property
    def ambiguous(self) -> Mapping[str, CatalogError]:
        """Names, in lower case, that two tables bear, with what is to be said to their users."""
        return MappingProxyType(self._ambiguous)

    @property
    def filesystems(self) -> tuple[Any, ...]:
        """The fsspec file systems the tables need.

        Every connection that reads them must `register_filesystem` each.
        """
        uris = (file.uri for table in self._tables.values() for file in table.files)
        return tuple(
            filesystem(scheme) for scheme in sorted({scheme_of(uri) for uri in uris} - {""})
        )

    def __getitem__(self, name: str) -> Table:
        found = self.find(*split_name(name)) or self._by_name.get((name.lower(),))
        if found is None and split_name(name)[-1].lower() in self._ambiguous:
            raise self._ambiguous[split_name(name)[-1].lower()]
        if found is None:
            message = unknown_name("table", name, self._tables)
            for place, reason in self._skipped:
                message += f"; {passed_over(place, reason)}"
            raise CatalogError(message)
        return found

    def find(self, *parts: str) -> Table | None:
        """The table of a name in parts, without their quotes: `find("sales", "orders")`."""
        return self._by_name.get(tuple(part.lower() for part in parts))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            self.find(*split_name(name)) is not None or (name.lower(),) in self._by_name
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def statistics(self, name: str) -> TableStatistics:
        """The best that is known now, without reading data.

        What `analyze` found, if no file has changed since; else what Parquet footers say; else a
        guess from sizes.
        """
        from queryard.sql.statistics.known import known_statistics

        table = self[name]
        with self._changing:
            held = self._statistics.get(table.key)
            if held is not None and held[0] == table.fingerprint:
                return held[1]
            found = known_statistics(table, self.statistics_folder)
            self._statistics[table.key] = (table.fingerprint, found)
            return found

    def keep_statistics(self, name: str, found: TableStatistics) -> None:
        """Use these for as long as the files of the table stay as they are."""
        table = self[name]
        with self._changing:
            self._statistics[table.key] = (table.fingerprint, found)

    def refresh(self) -> tuple[str, ...]:
        """Look at all places again; the keys of tables that are new, changed or gone."""
        with self._changing:
            before = self._tables
            contents = self._contents()
            # What has not changed stays the same object: it knows its footers already.
            contents.tables = [_unchanged(before.get(t.key), t) or t for t in contents.tables]
            self._take(contents)
            keys = sorted(before.keys() | self._tables.keys())
            return tuple(key for key in keys if before.get(key) is not self._tables.get(key))

    def _take(self, contents: Contents) -> None:
        tables: dict[str, Table] = {}
        by_name: dict[tuple[str, ...], Table] = {}
        ambiguous: dict[tuple[str, ...], str] = {}
        for table in contents.tables:
            parts = (*(table.schema.split(".") if table.schema else ()), table.name)
            name = tuple(part.lower() for part in parts)
            if name in by_name:
                # Only whoever uses the name needs to know.
                ambiguous[name] = f"{_place(by_name[name])} and {_place(table)}; {_RENAME}"
            else:
                by_name[name] = tables[table.key] = table
        for name in ambiguous:
            del tables[by_name.pop(name).key]
        self._synonyms(by_name, contents)
        self._tables = tables
        self._by_name = by_name
        self._databases = tuple(contents.databases)
        self.settings = contents.settings
        twice = [(".".join(name), f"means both {both}") for name, both in ambiguous.items()]
        self._skipped = (*contents.skipped, *twice)
        self._ambiguous = {
            name[-1]: CatalogError(f"two tables are called {'.'.join(name)!r}: {both}")
            for name, both in ambiguous.items()
        }
        seen: dict[str, str] = {}
        for database in contents.databases:
            if (other := seen.setdefault(database.alias.lower(), database.path)) != database.path:
                raise CatalogError(
                    f"two databases are called {database.alias!r}: {other} and {database.path}"
                )

    @staticmethod
    def _synonyms(by_name: dict[tuple[str, ...], Table], contents: Contents) -> None:
        """Tables of a database also go by all their parts: `shop.main.orders`."""
        for table in contents.tables:
            if isinstance(table, DatabaseTable):
                alias = table.database.alias.lower()
                full = (alias, table.inner_schema.lower(), table.name.lower())
                by_name.setdefault(full, table)
                if table.inner_schema == "main":
                    by_name.setdefault((alias, table.name.lower()), table)


def _unchanged(old: Table | None, new: Table) -> Table | None:
    """The old table, if the new one is no other."""
    if old is None or type(old) is not type(new):
        return None
    if isinstance(old, FileTable) and isinstance(new, FileTable) and old.options != new.options:
        return None
    # Rows and tables may have changed although the file of a database has not yet.
    if isinstance(old, DatabaseTable) and (old.columns, old.rows) != (new.columns, new.rows):
        return None
    return old if old.fingerprint == new.fingerprint else None


def _place(table: Table) -> str:
    return table.files[0].uri if table.files else "a frame"
