"""Catalog views of the clients of a listener, made once per user and state of the tables."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping

from ..served import ServedClient
from .catalog.from_catalog import facts_of
from .catalog.queries import CatalogQueries
from .texts import Text

KEPT = 64


class Catalogs:
    """Catalog queries by what they show; any thread may ask."""

    def __init__(self, *, redacts: bool = False) -> None:
        self._redacts = redacts
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, CatalogQueries] = OrderedDict()

    def known(
        self, client: ServedClient, database: str, searched: tuple[str, ...] = ("main",)
    ) -> CatalogQueries | None:
        """Those of a client, if they were made since its tables have changed; in a moment.

        `searched` are the schemas that names without one are looked for in.
        """
        key = _key(client, database, searched)
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
            return found

    def of(
        self, client: ServedClient, database: str, searched: tuple[str, ...] = ("main",)
    ) -> CatalogQueries:
        """Those of a client, as the tables are now; it may read the heads of files."""
        if (found := self.known(client, database, searched)) is not None:
            return found
        key = _key(client, database, searched)
        principal, catalog = client.principal, client.catalog
        access = client.client.reach.access
        made = CatalogQueries(
            facts_of(
                catalog,
                database=database,
                user=principal.name,
                tenant=client.tenant,
                writes=access.writes,
                searched=searched,
            ),
            redacts=self._redacts,
        )
        with self._lock:
            kept = self._kept.setdefault(key, made)  # another thread may have made them, too
            unused = [] if kept is made else [made]
            while len(self._kept) > KEPT:
                unused.append(self._kept.popitem(last=False)[1])
        for each in unused:
            each.close()
        return kept

    def close(self) -> None:
        with self._lock:
            for each in self._kept.values():
                each.close()
            self._kept.clear()


def _key(client: ServedClient, database: str, searched: tuple[str, ...]) -> Hashable:
    access, version = client.client.reach.access, client.catalog.version
    return client.principal.name, client.tenant, access, database, version, searched


def column_types(client: ServedClient, text: Text) -> Mapping[str, str]:
    """The types of the columns of all tables that a statement may name, by column name.

    A name that has different types in different tables is left out.
    """
    words = {word.strip('"') for word in text.words}
    found: dict[str, str] = {}
    doubtful = set()
    for table in client.catalog.tables.values():
        if table.name.lower() in words:
            for column in table.columns:
                name = column.name.lower()
                if found.setdefault(name, column.type) != column.type:
                    doubtful.add(name)
    return {name: kind for name, kind in found.items() if name not in doubtful}
