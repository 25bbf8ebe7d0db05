"""A catalog as one client sees it: the granted tables, and nothing of any other.

Tables are granted by name or by pattern, and a pattern counts for tables that come later as well.
Databases are granted as a whole, since an instance that has attached one reads all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from .catalog import Catalog
from .database import DatabaseTable
from .metadata import MetadataReader
from .model import AttachedDatabase, CatalogError, Table
from .survey import Allowed, always_look

if TYPE_CHECKING:
    from queryard.sql.statistics.judge import Judge
    from queryard.sql.statistics.model import TableStatistics
    from queryard.sql.statistics.samples import TableSample


@dataclass(frozen=True)
class Grants:
    """Names and patterns of tables, in lower case.

    >>> grants = Grants(frozenset({"orders", "sales.*"}))
    >>> [grants.table(name) for name in ("Orders", "sales.2024", "salaries")]
    [True, True, False]
    >>> grants.database("sales"), grants.database("orders")
    (True, False)
    """

    patterns: frozenset[str]

    def table(self, key: str) -> bool:
        """Whether a table that is no part of a database is granted."""
        return any(fnmatchcase(key.lower(), pattern) for pattern in self.patterns)

    def database(self, alias: str) -> bool:
        """Whether all that a database has, or will have, is granted."""
        whole = f"{alias.lower()}."
        return any(
            pattern.endswith("*") and fnmatchcase(whole, pattern) for pattern in self.patterns
        )


@dataclass(frozen=True)
class _Seen:
    """What is granted of one state of the whole catalog."""

    version: int
    tables: Mapping[str, Table]
    databases: tuple[AttachedDatabase, ...]
    unusable: Mapping[str, CatalogError]


class GrantedCatalog(Catalog):
    """A view of a catalog; what becomes of the whole is seen here at once.

    What is known of tables (statistics, samples) is that of the whole catalog. Tables are added and
    removed there.
    """

    def __init__(
        self, whole: Catalog, patterns: frozenset[str] | None, hides_places: bool = False
    ) -> None:
        """`patterns` of None grant all tables. With `hides_places` no error names a file."""
        self._whole = whole
        self._grants = Grants(frozenset({"*"}) if patterns is None else patterns)
        self._hides_places = hides_places
        self.place = None
        self.statistics_folder = whole.statistics_folder
        self.keeps_statistics = whole.keeps_statistics
        self.settings = {}
        self._seen: _Seen | None = None
        self._check()

    def _check(self) -> None:
        """Refuse grants of single tables of a database."""
        granted = {database.alias for database in self.databases}
        for table in self._whole.tables.values():
            if (
                isinstance(table, DatabaseTable)
                and table.database.alias not in granted
                and self._grants.table(table.key)
            ):
                alias = table.database.alias
                raise CatalogError(
                    f"the grant of {table.key}: it lies in the database {alias}, which can be "
                    f"granted as a whole only; write {alias}.*"
                )

    @property
    def version(self) -> int:
        return self._whole.version

    @property
    def shape(self) -> int:
        return self._whole.shape

    def _now(self) -> _Seen:
        version = self._whole.version
        if self._seen is None or self._seen.version != version:
            self._seen = self._look_through(version)
        return self._seen

    def _look_through(self, version: int) -> _Seen:
        whole, grants = self._whole, self._grants
        databases = tuple(each for each in whole.databases if grants.database(each.alias))
        aliases = {each.alias for each in databases}
        tables = {
            key: table
            for key, table in whole.tables.items()
            if (
                table.database.alias in aliases
                if isinstance(table, DatabaseTable)
                else grants.table(key)
            )
        }
        unusable = {
            name: self._told(name, error)
            for name, error in whole.unusable.items()
            if grants.table(name)
        }
        return _Seen(version, MappingProxyType(tables), databases, MappingProxyType(unusable))

    def _told(self, name: str, error: CatalogError) -> CatalogError:
        if not self._hides_places:
            return error
        told = CatalogError(f"table {name} cannot be used; the operator of the server sees why")
        told.__cause__ = error
        return told

    # --- tables ----------------------------------------------------------------------------------

    @property
    def tables(self) -> Mapping[str, Table]:
        return self._now().tables

    @property
    def databases(self) -> tuple[AttachedDatabase, ...]:
        return self._now().databases

    @property
    def unusable(self) -> Mapping[str, CatalogError]:
        return self._now().unusable

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        return ()

    @property
    def broken(self) -> Mapping[str, str]:
        return MappingProxyType({name: str(error) for name, error in self.unusable.items()})

    def find(self, *parts: str) -> Table | None:
        found = self._whole.find(*parts)
        return found if found is not None and self.tables.get(found.key) is found else None

    def add(self, name: str, value: object) -> None:
        raise CatalogError(f"table {name}: a client cannot add tables for all; its host can")

    def remove(self, name: str) -> None:
        raise CatalogError(f"table {name}: a client cannot remove tables of all; its host can")

    def refresh(
        self, names: Set[str] | None = None, allowed: Allowed = always_look
    ) -> tuple[str, ...]:
        before = self.tables
        changed = self._whole.refresh(names, allowed)
        return tuple(key for key in changed if key in before or key in self.tables)

    # --- what is known of them: the same for all clients -----------------------------------------

    @property
    def metadata(self) -> MetadataReader:
        return self._whole.metadata

    def statistics(self, name: str) -> TableStatistics:
        return self._whole.statistics(self[name].key)

    def keep_statistics(self, name: str, found: TableStatistics) -> None:
        self._whole.keep_statistics(self[name].key, found)

    def learned(self, key: str) -> int:
        return self._whole.learned(key)

    def sample(self, name: str) -> TableSample | None:
        return self._whole.sample(self[name].key)

    def keep_sample(self, name: str, found: TableSample) -> None:
        self._whole.keep_sample(self[name].key, found)

    @cached_property
    def judge(self) -> Judge:
        return self._whole.judge
