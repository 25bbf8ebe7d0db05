"""Instances that are opened before a query needs them.

Opening an instance and making its views takes as long as a few small queries. So when few are idle,
another is opened in the background, with views of the tables that queries have named so far.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable

from queryard.sql.catalog import Catalog, Table

from .pool import InstancePool, PooledInstance
from .views import file_tables

# Up to this many tables, views are made of all of them before a query names one.
FEW_TABLES = 32


class Spares:
    """Keeps instances of some sizes ready, once it is told how."""

    def __init__(self, pool: InstancePool, catalog: Catalog) -> None:
        self._pool = pool
        self._catalog = catalog
        self._named: set[str] = set()
        self._lock = threading.Lock()
        self._opening = False
        self._sizes: tuple[int, ...] = ()
        self._later: Callable[[Callable[[], None]], None] | None = None

    def keep(self, sizes: Iterable[int], later: Callable[[Callable[[], None]], None]) -> None:
        """Keep instances of these sizes; `later` runs a function later on another thread."""
        self._sizes = tuple(sizes)
        self._later = later

    def named(self, tables: Iterable[Table]) -> None:
        """A query has named these tables."""
        self._named.update(table.name.lower() for table in tables)

    def taken(self, sealed: bool = False) -> None:
        """An instance was taken, for a sealed client or another; it may have been the last."""
        with self._lock:
            if self._later is None or self._opening:
                return
            if not any(self._pool.lacks(size, sealed) for size in self._sizes):
                return
            self._opening = True
        self._later(lambda: self._open(sealed))

    def _open(self, sealed: bool) -> None:
        # A view of one client's table is nothing that another's instance may have.
        prepare = None if sealed else self._make_views
        # A query that needs an instance opens one, and gets the error then.
        with contextlib.suppress(Exception):
            for size in self._sizes:
                while self._pool.lacks(size, sealed):
                    self._pool.open_spare(size, prepare)
        self._opening = False

    def _make_views(self, spare: PooledInstance) -> None:
        files = file_tables(self._catalog)
        names = set(self._named)
        if not names and len(files) <= FEW_TABLES:
            # Other formats may take long to look at.
            names = {table.name.lower() for table in files.values() if table.kind == "parquet"}
        spare.views.make(spare.connection, files, names)
