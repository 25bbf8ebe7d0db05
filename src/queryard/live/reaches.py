"""What the clients of a host reach, and what describes statements for them: one per access."""

from __future__ import annotations

import threading
from collections.abc import Collection

from queryard.engine.describing import Describer
from queryard.engine.sealing.access import ALL, Access, Reach
from queryard.sql.catalog import Catalog


class Reaches:
    """`everything` is the reach of clients without a restriction. From any thread."""

    def __init__(self, catalog: Catalog, everything: Reach) -> None:
        self._catalog = catalog
        self._changing = threading.Lock()
        self._reaches: dict[Access, Reach] = {ALL: everything}
        self._describers: dict[Access, Describer] = {}

    def reach(self, access: Access) -> Reach:
        """What clients with this access reach: one object for all of them."""
        with self._changing:
            found = self._reaches.get(access)
            if found is None:
                found = self._reaches[access] = Reach(access, self._catalog)
            return found

    def describer(self, reach: Reach) -> Describer:
        """What describes statements for clients of a reach."""
        with self._changing:
            found = self._describers.get(reach.access)
            if found is None:
                found = self._describers[reach.access] = Describer(reach)
            return found

    def keep_only(self, accesses: Collection[Access]) -> None:
        """Forget what no client will ask for again; clients that have a reach keep it."""
        with self._changing:
            gone = (self._reaches.keys() | self._describers.keys()) - {ALL, *accesses}
            for access in gone:
                self._reaches.pop(access, None)
            describers = [self._describers.pop(each) for each in gone & self._describers.keys()]
        for describer in describers:
            describer.close()

    def close(self) -> None:
        """End what describes statements."""
        for describer in self._describers.values():
            describer.close()
