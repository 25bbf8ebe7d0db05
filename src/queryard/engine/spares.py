"""Instances that are ready before somebody needs them.

To open one and to make its views takes as long as a few small queries. So where few are idle,
another is opened beside, with the views of the tables that were asked for so far.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable

from queryard.sql.catalog import Catalog, Table

from .pool import InstancePool, PooledInstance
from .views import file_tables

# Of so many tables it is worth while to make views before anybody has asked for one.
FEW_TABLES = 32


class Spares:
    """Keeps instances of some sizes ready, once it is told how."""

    def __init__(self, pool: InstancePool, catalog: Catalog) -> None:
        self._pool = pool
        self._catalog = catalog
        self._named: set[str] = set()
        self._lock = threading.Lock()
        self._on_its_way = False
        self._sizes: tuple[int, ...] = ()
        self._later: Callable[[Callable[[], None]], None] | None = None

    def keep(self, sizes: Iterable[int], later: Callable[[Callable[[], None]], None]) -> None:
        """Keep some with so much memory each; `later` runs something in a while, elsewhere."""
        self._sizes = tuple(sizes)
        self._later = later

    def named(self, tables: Iterable[Table]) -> None:
        """Somebody has asked for these tables."""
        self._named.update(table.name.lower() for table in tables)

    def taken(self) -> None:
        """An instance was taken; it may have been one of the last."""
        with self._lock:
            if (
                self._later is None
                or self._on_its_way
                or not any(map(self._pool.lacks, self._sizes))
            ):
                return
            self._on_its_way = True
        self._later(self._open)

    def _open(self) -> None:
        # Who needs an instance opens one, and hears what is wrong.
        with contextlib.suppress(Exception):
            for size in self._sizes:
                while self._pool.lacks(size):
                    self._pool.open_spare(size, self._make_views)
        self._on_its_way = False

    def _make_views(self, spare: PooledInstance) -> None:
        files = file_tables(self._catalog)
        names = set(self._named)
        if not names and len(files) <= FEW_TABLES:
            # Other formats may take long to look at.
            names = {table.name.lower() for table in files.values() if table.kind == "parquet"}
        spare.views.make(spare.connection, files, names)
