"""The instance of one session, opened when first needed, and the connections to it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Protocol

from queryard.sql.catalog import CatalogError
from queryard.sql.catalog.open_files import FileInUse
from queryard.sql.catalog.quoting import literal

from ..errors import NotAllowed, QueryFailed
from ..instances.instance import Connection, Instance
from ..instances.read_connections import ReadConnections
from ..sealing.access import Reach, Seal
from ..sealing.links import Links

_HELD = """
SELECT current_setting('threads') AS threads, current_setting('external_threads') AS external,
       current_setting('memory_limit') AS memory, current_setting('temp_directory') AS temp
"""


class Purse(Protocol):
    """Memory that many instances share."""

    def take(self) -> int:
        """The bytes of an instance that is about to be opened; raises if there are none."""

    def give_back(self, memory_bytes: int) -> None:
        """It was closed."""


class OwnInstance:
    """An instance with one connection for statements, one for the catalog, and some for reads."""

    def __init__(self, slots: int, memory: int | Purse, temp: Path, reach: Reach) -> None:
        """`memory` are the bytes that the instance may use, or where it takes them from."""
        self._slots = slots
        self._memory = memory
        # What was taken for the instance that is open.
        self._taken_bytes = 0
        self._temp = temp
        self._reach = reach
        # Several statements may want to open the instance or attach a database at once.
        self.opening = threading.RLock()
        # Of files that came after the instance was sealed.
        self.links = Links(temp)
        self.readers = ReadConnections()
        self.is_refused = False
        """Whether it is not opened, nor entered, any more."""
        self._instance: Instance | None = None
        self._connection: Connection | None = None
        # The catalog's own queries have a connection to themselves.
        self._asking = threading.Lock()
        self._asked: Connection | None = None
        self._held: dict[str, Any] = {}

    @property
    def instance(self) -> Instance | None:
        """The instance, while it is open."""
        return self._instance

    @property
    def connected(self) -> Connection | None:
        """The connection for statements, while the instance is open."""
        return self._connection

    @property
    def connection(self) -> Connection:
        """The connection for statements; the instance is opened for it."""
        with self.opening:
            return self._connection or self._open()

    def check_open(self) -> None:
        if self.is_refused:
            raise QueryFailed("the session is closed; connect again")

    def _open(self) -> Connection:
        self.check_open()
        if isinstance(self._memory, int):
            memory_bytes = self._memory
        else:
            memory_bytes = self._taken_bytes = self._memory.take()
        try:
            self._instance = Instance(self._slots, memory_bytes, self._temp)
        except BaseException:
            self._give_back()
            raise
        if (seal := self._seal()) is not None:
            self._instance.close_to_others(seal)
        self._connection = opened = Connection(self._instance)
        self.hold_settings()
        return opened

    def _seal(self) -> Seal | None:
        seal = self._reach.seal()
        return None if seal is None else seal.with_folders([str(self.links.folder)])

    def is_outdated(self) -> bool:
        """Whether it is open, and might open other files if it were opened anew."""
        return self._instance is not None and self._seal() != self._instance.seal

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of something short about the databases that are written here."""
        with self._asking:
            if self._instance is None:
                raise FileInUse("the session that writes the database is being closed")
            if self._asked is None:
                self._asked = Connection(self._instance)
            try:
                return [tuple(row.values()) for row in self._asked.rows(sql)]
            except QueryFailed as error:
                raise CatalogError(f"the database that is written: {error}") from error

    def hold_settings(self) -> None:
        """Restore the settings that slots and memory budget depend on, if they were changed."""
        instance = self.connection.instance
        held, held_before = instance.control.rows(_HELD)[0], self._held
        if self._held and held != self._held:
            instance.control.set(
                {
                    "threads": str(self._slots),
                    "external_threads": str(self._slots),
                    "memory_limit": f"'{instance.memory_bytes} bytes'",
                    "temp_directory": literal(held_before["temp"]),
                }
            )
            raise NotAllowed(
                "threads, memory_limit and temp_directory are the scheduler's to set; "
                "they were set back"
            )
        self._held = held

    def close(self) -> None:
        """Close the instance; it can be opened anew."""
        with self._asking:
            self.readers.close()
            for connection in (self._asked, self._connection):
                if connection is not None:
                    connection.close()
            if self._instance is not None:
                self._instance.close()
            self._connection = self._instance = self._asked = None
            self.readers = ReadConnections()
            self._give_back()
        self._held = {}

    def _give_back(self) -> None:
        if not isinstance(self._memory, int) and self._taken_bytes:
            self._memory.give_back(self._taken_bytes)
            self._taken_bytes = 0
