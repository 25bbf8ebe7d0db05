"""Native queries that run, each for everybody who asked the same while it did.

Every one of them keeps its place in the kernel, with its own tenant, priority and deadline: whoever
is granted slots brings them to the one run, and it is as urgent as the most urgent of them. Its
memory is reserved by the one that started it; if that one is cancelled, another takes over.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

from queryard.engine.errors import OutOfMemory
from queryard.engine.meter import Meter
from queryard.engine.native import NativeQuery
from queryard.engine.volatile import may_differ
from queryard.results.fan import Fan
from queryard.sql.catalog import Catalog, CatalogError, Table
from queryard.sql.catalog.locations import local_file, scheme_of

from .asked import Asked
from .record import Record

_PLAIN = (str, int, float, bool, bytes, type(None))

Key = tuple[Hashable, tuple[Table, ...]]
"""What was asked, and the tables it names."""


class Run:
    """One native query, and the records it answers."""

    def __init__(
        self,
        key: Key | None,
        native: NativeQuery,
        fan: Fan,
        memory_bytes: int,
        most_bytes: int,
    ) -> None:
        self.key = key
        self.native = native
        self.memory_bytes = memory_bytes
        # Whose reservation holds the memory it uses.
        self.holder: Record | None = None
        self._fan = fan
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self.records: list[Record] = []
        self.number = 0
        # Of all whose slots have served it, those who have left included.
        self.meters: list[Meter] = []
        fan.forgives = lambda error: self.again

    @property
    def again(self) -> bool:
        """Whether it shall be run again: too little memory was reserved on a guess, and no row is
        out yet, so that nobody need know.
        """
        out_of_memory = isinstance(self.native.error, OutOfMemory)
        return out_of_memory and self.memory_bytes < self._most_bytes and not self._fan.started

    @property
    def work_s(self) -> float:
        """Core-seconds so far, whoever's slots they were."""
        return sum(meter.work_s for meter in self.meters)

    def join(self, record: Record) -> bool:
        """Answer another one, too; False if it is too late for that."""
        with self._lock:
            if self.native.ended or not self.records or not self._fan.join(record.output):
                return False
            record.twin_of = self.records[0].id
            self.records.append(record)
            return True

    def begin(self, record: Record) -> None:
        """The first one."""
        self.records.append(record)

    def hold(self, record: Record) -> Record | None:
        """A slot came with a record: who holds the memory now, if that was not settled before."""
        with self._lock:
            if self.holder is not None or not self.records:
                return None
            self.holder = record if record in self.records else self.records[0]
            return self.holder

    def pass_on(self, record: Record) -> Record | None:
        """Somebody has left: who holds its memory from now on, if it did."""
        with self._lock:
            if self.holder is not record or not self.records:
                return None
            self.holder = self.records[0]
            return self.holder

    def leave(self, record: Record) -> bool:
        """Somebody wants it no more; whether nobody does."""
        with self._lock:
            if record in self.records:
                self.records.remove(record)
            self._fan.leave(record.output)
            return not self.records


class Runs:
    """Those under way, by what they answer."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._runs: dict[Key, Run] = {}
        self.made = 0

    def look(self, key: Key | None) -> int:
        """From which number on runs will answer: all, if the files of one under way still stand.

        Tables may have thousands of files: nobody who waits for a lock should wait for this.
        """
        made = self.made
        return 0 if key is not None and key in self._runs and _unchanged(key[1]) else made

    def find(self, key: Key | None, since: int) -> Run | None:
        """The one that answers, of those from a number on."""
        run = None if key is None else self._runs.get(key)
        return run if run is not None and run.number >= since else None

    def add(self, run: Run) -> None:
        run.number = self.made
        self.made += 1
        if run.key is not None:
            self._runs[run.key] = run

    def drop(self, run: Run) -> None:
        """It has ended; whoever asks the same from now on has a run of its own."""
        if run.key is not None and self._runs.get(run.key) is run:
            del self._runs[run.key]

    def key(self, asked: Asked) -> Key | None:
        """What two queries have in common that have one answer; None if it may differ each time.

        Tables are part of it; the catalog has another one as soon as it sees that a file changed.
        """
        if asked.leaves_something or any(map(may_differ, asked.statements)):
            return None
        parameters = _plain(asked.parameters)
        if parameters is None:
            return None
        names = frozenset().union(*(statement.names for statement in asked.statements))
        tables = tuple(
            table for table in self._catalog.tables.values() if table.name.lower() in names
        )
        return (asked.sql, parameters, asked.memory_bytes), tables


def _unchanged(tables: tuple[Table, ...]) -> bool:
    """Whether local files are what the catalog takes them for, which does not look all the time."""
    files = [file for table in tables for file in table.files if not scheme_of(file.uri)]
    try:
        return all(local_file(Path(file.uri)) == file for file in files)
    except CatalogError:
        return False  # one is gone


def _plain(parameters: Any) -> Hashable | None:
    """Parameters that can be compared; None if some cannot.

    >>> _plain([1, "a"]) == _plain((1, "a")), _plain([1]) == _plain([True]), _plain([[1]])
    (True, False, None)
    >>> _plain([0.0]) == _plain([-0.0])
    False
    """
    named = parameters.items() if isinstance(parameters, Mapping) else enumerate(parameters)
    values = list(named)
    if not all(type(value) in _PLAIN for _, value in values):
        return None
    return tuple((key, type(value), repr(value)) for key, value in values)
