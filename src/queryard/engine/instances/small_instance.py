"""A small instance with the tables of a catalog as views, on which statements are only bound."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Set
from pathlib import Path

from queryard.sql.catalog import Catalog

from ..sealing.access import Seal
from .instance import Connection
from .pool import PooledInstance
from .views import file_tables, unusable

MEMORY_BYTES = 128 << 20


def no_seal() -> Seal | None:
    """That of a client that may reach everything."""
    return None


class SmallInstance:
    """Opened when first used, and anew when it may open other files; one thread at a time."""

    def __init__(self, catalog: Catalog, seal: Callable[[], Seal | None] = no_seal) -> None:
        self._catalog = catalog
        self._seal = seal
        self._place: PooledInstance | None = None

    def ready(self, names: Set[str], attaches: bool = False) -> Connection:
        """A connection on which a statement that names these can be bound."""
        return self.prepared(names, attaches)[0]

    def prepared(
        self, names: Set[str], attaches: bool = False
    ) -> tuple[Connection, dict[str, Exception]]:
        """The same, and what is to be said of tables that cannot be read."""
        seal = self._seal()
        if self._place is not None and self._place.seal != seal:
            self.close()
        if self._place is None:
            temp = Path(tempfile.gettempdir())
            self._place = PooledInstance(1, MEMORY_BYTES, temp, seal)
            # Without the cache half of the time goes into reading the same footers again.
            self._place.connection.set({"parquet_metadata_cache": "true"})
        place = self._place
        if attaches:
            place.attached.attach(place.connection, self._catalog, names)
            place.search_path.follow(place.connection, place.attached, self._catalog)
        errors = place.views.make(place.connection, file_tables(self._catalog), names)
        return place.connection, {**errors, **unusable(self._catalog.unusable, names)}

    def further(self) -> Connection:
        """Another connection to the instance, to be closed by the caller."""
        assert self._place is not None
        return Connection(self._place.instance)

    def let_go(self) -> None:
        """Detach databases, which others may want to write."""
        if self._place is not None:
            self._place.attached.let_go(self._place.connection)

    def close(self) -> None:
        if self._place is not None:
            self._place.close()
            self._place = None
