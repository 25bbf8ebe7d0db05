"""What a host makes of tables in the background: statistics, and shuffled copies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from queryard.engine.syntax.classify import Classified
from queryard.sql.catalog import Catalog
from queryard.sql.statistics.collecting import Collector

from .estimates.estimator import Estimator
from .tickets import Tickets

if TYPE_CHECKING:
    from queryard.engine.sampling.making import CopyMaker


class Upkeep:
    """It makes way for active queries. `most_bytes` is its memory; with 0 it makes nothing.

    `failed` is told of errors, which cost a better estimate and no query.
    """

    def __init__(
        self,
        catalog: Catalog,
        most_bytes: int,
        tickets: Tickets,
        estimator: Estimator,
        failed: Callable[[BaseException], None],
        temp: Path,
    ) -> None:
        self._catalog = catalog
        self._most_bytes = most_bytes
        self._tickets = tickets
        self._estimator = estimator
        self._failed = failed
        self._changing = threading.Lock()
        self._stopped = False
        # None where statistics do not collect themselves.
        self._collector: Collector | None = None
        # Made for the first online query over a table without a shuffled copy.
        self._copies: CopyMaker | None = None
        if most_bytes:
            told = self._more_known, failed
            self._collector = Collector(catalog, most_bytes, *told, self._is_busy, temp)

    def start(self) -> None:
        """Collect statistics from now on."""
        if self._collector is not None:
            self._collector.start()

    def want_statistics(self, statements: Iterable[Classified]) -> None:
        """Look first at the tables that statements name."""
        if self._collector is not None:
            for statement in statements:
                self._collector.want(statement.names)

    def want_copy(self, table: str) -> None:
        """An online query reads a table that has no shuffled copy."""
        if not self._most_bytes or not self._catalog.keeps_statistics:
            return
        with self._changing:
            if self._copies is None and not self._stopped:
                from queryard.engine.sampling.making import CopyMaker

                self._copies = CopyMaker(
                    self._catalog,
                    self._most_bytes,
                    lambda key: None,
                    self._failed,
                    self._is_busy,
                )
                self._copies.start()
            if self._copies is not None:
                self._copies.wanted(table)

    def stop(self) -> None:
        """Begin nothing more; what is being made ends soon."""
        with self._changing:
            self._stopped = True
        if self._collector is not None:
            self._collector.stop()
        if self._copies is not None:
            self._copies.stop()

    def close(self) -> None:
        """Wait for the end of what was being made."""
        if self._collector is not None:
            self._collector.close()
        if self._copies is not None:
            self._copies.close()

    def _is_busy(self) -> bool:
        return bool(self._tickets.active())

    def _more_known(self, tables: frozenset[str]) -> None:
        """Statistics have arrived: what waits is estimated anew."""
        names = {self._catalog[key].name.lower() for key in tables if key in self._catalog}
        self._estimator.renew(self._tickets.active(), names)
