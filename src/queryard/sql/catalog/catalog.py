"""All tables of a session, by name, and what is known of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from queryard.core.errors import unknown_name

from .advice import passed_over
from .contents import Contents
from .database import DatabaseTable
from .declare import declare
from .entries import declared
from .file_table import FileTable
from .frames import is_frame
from .locations import filesystem, scheme_of
from .metadata import MetadataReader
from .model import AttachedDatabase, CatalogError, Table
from .quoting import split_name
from .survey import Allowed, Survey, always_look

if TYPE_CHECKING:
    from queryard.sql.statistics.judge import Judge
    from queryard.sql.statistics.model import TableStatistics
    from queryard.sql.statistics.samples import TableSample

_RENAME = "rename one, or name the tables in a catalog file"


class Catalog:
    """Tables by name. SQL does not tell upper from lower case, and neither does a look-up.

    Made by `open_catalog`. `refresh` looks at the files again; until then the catalog stands still.
    """

    def __init__(
        self,
        survey: Survey,
        read: Callable[[], Contents],
        statistics_folder: Path | None = None,
        place: Path | None = None,
    ) -> None:
        self.place = place
        """The folder or file it was opened on; None if there are only tables by name."""
        self._survey = survey
        self._read = read
        # Names given later, which stand before those that were there.
        self._added: dict[str, Callable[[], Contents]] = {}
        # One look at a time; questions about what is known do not wait for it.
        self._looking = threading.RLock()
        self._changing = threading.RLock()
        self.statistics_folder = statistics_folder
        """Where `analyze` keeps what it finds; None for the cache of the user."""
        self.keeps_statistics = True
        """Whether what is found is written there; else it is known for as long as the catalog."""
        self._statistics: dict[str, tuple[str, TableStatistics]] = {}
        self._samples: dict[str, tuple[Table, TableSample | None]] = {}
        self._learned: dict[str, int] = {}
        self._tables: dict[str, Table] = {}
        self._known = Contents()
        self._version = 0
        self._shape = 0
        self._take(self._look(None, survey.clock(), always_look))

    @property
    def metadata(self) -> MetadataReader:
        """What looks at files for this catalog, and no other."""
        return self._survey.metadata

    @property
    def version(self) -> int:
        """Another number whenever a table is new, changed or gone."""
        return self._version

    @property
    def shape(self) -> int:
        """Another number whenever a table is new, gone, or may have other columns."""
        return self._shape

    def add(self, name: str, value: object) -> None:
        """Name another table: a place or a frame, as in the `tables` of `open_catalog`.

        It takes the place of a table that already has the name.
        """
        survey = self._survey
        # What is wrong with it is told now; what becomes of its files later is no error.
        found = declare(name, value, None, survey.metadata)
        again = (lambda: found) if is_frame(value) else (lambda: declared(name, value, survey))
        with self._looking:
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
        with self._looking:
            if self._added.pop(str(name).lower(), None) is None:
                raise CatalogError(unknown_name("added table", name, self._added))
            self.refresh()

    def _contents(self) -> Contents:
        contents = self._read()
        for read in self._added.values():
            more = read()
            names = {table.key.lower() for table in more.tables} | {
                name.lower() for name in more.broken
            }
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
    def broken(self) -> Mapping[str, str]:
        """Names that were given to data that cannot be used, with the reason."""
        return MappingProxyType(self._known.broken)

    @property
    def unusable(self) -> Mapping[str, CatalogError]:
        """Names, in lower case, that mean no table or two, with what is to be said of them."""
        return MappingProxyType(self._unusable)

    @property
    def filesystems(self) -> tuple[Any, ...]:
        """The fsspec file systems the tables need.

        Every connection that reads them must `register_filesystem` each.
        """
        uris = (file.uri for table in self.tables.values() for file in table.files)
        return tuple(
            filesystem(scheme) for scheme in sorted({scheme_of(uri) for uri in uris} - {""})
        )

    def __getitem__(self, name: str) -> Table:
        name = str(name)
        found = self.find(*split_name(name)) or self.find(name)
        for part in reversed(split_name(name)) if found is None else ():
            if part.lower() in self.unusable:
                raise self.unusable[part.lower()]
        if found is None:
            message = unknown_name("table", name, self.tables)
            for place, reason in self.skipped:
                message += f"; {passed_over(place, reason)}"
            raise CatalogError(message)
        return found

    def find(self, *parts: str) -> Table | None:
        """The table of a name in parts, without their quotes: `find("sales", "orders")`."""
        return self._by_name.get(tuple(part.lower() for part in parts))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            self.find(*split_name(name)) is not None or self.find(name) is not None
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

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
            self._learned[table.key] = self._learned.get(table.key, 0) + 1

    def learned(self, key: str) -> int:
        """Another number whenever more is known of a table: what was made of less is then old."""
        return self._learned.get(key, 0)

    def sample(self, name: str) -> TableSample | None:
        """The sample of a table that is there now, if its files are as they were."""
        from queryard.sql.statistics.known import known_sample

        table = self[name]
        with self._changing:
            held = self._samples.get(table.key)
        if held is not None and held[0] is table:
            return held[1]
        found = known_sample(table, self.statistics_folder)
        with self._changing:
            if self._samples.get(table.key) is held:  # else a newer one was kept meanwhile
                self._samples[table.key] = (table, found)
            return self._samples[table.key][1]

    def keep_sample(self, name: str, found: TableSample) -> None:
        """Use this sample for as long as the files of the table stay as they are."""
        table = self[name]
        if table.fingerprint != found.version:
            return  # its files have changed since it was drawn
        with self._changing:
            self._samples[table.key] = (table, found)
            self._learned[table.key] = self._learned.get(table.key, 0) + 1

    @cached_property
    def judge(self) -> Judge:
        """Answers what share of a table a condition keeps, from the samples that are there."""
        from queryard.sql.statistics.judge import Judge

        return Judge(self.sample)

    def refresh(
        self, names: Set[str] | None = None, allowed: Allowed = always_look
    ) -> tuple[str, ...]:
        """Look at all places again; the keys of tables that are new, changed or gone.

        With `names`, in lower case, only places are looked at that these may mean. `allowed` says
        how old what is known may be.
        """
        asked_s = self._survey.clock()
        with self._looking:
            contents = self._look(names, asked_s, allowed)
            if contents == self._known:
                return ()
            with self._changing:
                before = self._tables
                self._take(contents)
                keys = sorted(before.keys() | self._tables.keys())
                return tuple(key for key in keys if before.get(key) is not self._tables.get(key))

    def check(self) -> None:
        """Raise what is wrong with the places, and the file that names them, as they are now."""
        with self._looking:
            held = self._survey.let_go()
            try:
                self._look(None, self._survey.clock(), always_look)
            finally:
                self._survey.hold(held)

    def reread(self) -> tuple[str, ...]:
        """As `refresh`, with the file that names the tables as it is now, be it held or not."""
        with self._looking:
            held = self._survey.let_go()
            try:
                return self.refresh()
            except BaseException:
                self._survey.hold(held)
                raise

    def _look(self, names: Set[str] | None, asked_s: float, allowed: Allowed) -> Contents:
        return self._survey.look(self._contents, names, asked_s, allowed)

    def _take(self, contents: Contents) -> None:
        self._known = contents
        before = self._tables
        databases, repeated = _different_aliases(contents.databases)
        paths = {database.path for database in databases}
        tables: dict[str, Table] = {}
        by_name: dict[tuple[str, ...], Table] = {}
        ambiguous: dict[tuple[str, ...], str] = {}
        for found in contents.tables:
            if isinstance(found, DatabaseTable) and found.database.path not in paths:
                continue
            # What has not changed stays the same object: it knows its footers already.
            table = _unchanged(before.get(found.key), found) or found
            parts = (*(table.schema.split(".") if table.schema else ()), table.name)
            name = tuple(part.lower() for part in parts)
            if name in by_name:
                # An error only for queries that use the name.
                ambiguous[name] = f"{_place(by_name[name])} and {_place(table)}; {_RENAME}"
            else:
                by_name[name] = tables[table.key] = table
        for name in ambiguous:
            del tables[by_name.pop(name).key]
        self._synonyms(by_name, contents)
        self._tables = tables
        self._by_name = by_name
        self._databases = tuple(databases)
        self.settings = contents.settings
        twice = [(".".join(name), f"means both {both}") for name, both in ambiguous.items()]
        faulty = [(name, f"cannot be used: {why}") for name, why in contents.broken.items()]
        self._skipped = (*contents.skipped, *repeated, *faulty, *twice)
        self._unusable = {
            split_name(name)[-1].lower(): CatalogError(why) for name, why in contents.broken.items()
        } | {
            name[-1]: CatalogError(f"two tables are called {'.'.join(name)!r}: {both}")
            for name, both in ambiguous.items()
        }
        if not _alike(before, tables):
            self._shape += 1
        # The last, so that none sees a new number with what was there before.
        self._version += 1

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
    if not isinstance(old, FileTable) or not isinstance(new, FileTable):
        return None
    same = type(old) is type(new) and old.options == new.options and old.files == new.files
    return old if same else None


def _alike(before: Mapping[str, Table], after: Mapping[str, Table]) -> bool:
    """Whether tables differ at most in the rows of databases that were not looked at again."""
    return before.keys() == after.keys() and all(
        table is before[key]
        or (isinstance(table, DatabaseTable) and table.columns is before[key].columns)
        for key, table in after.items()
    )


def _different_aliases(
    databases: Iterable[AttachedDatabase],
) -> tuple[list[AttachedDatabase], list[tuple[str, str]]]:
    """The first of each name, and the others with what is wrong with them."""
    found: dict[str, AttachedDatabase] = {}
    repeated = []
    for database in databases:
        first = found.setdefault(database.alias.lower(), database)
        if first.path != database.path:
            reason = f"bears the name {database.alias!r}, as {first.path} does; {_RENAME}"
            repeated.append((database.path, reason))
    return list(found.values()), repeated


def _place(table: Table) -> str:
    return table.files[0].uri if table.files else "a frame"
