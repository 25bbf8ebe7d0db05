"""One DuckDB instance that starts no threads of its own: slots are lent to it.

With `threads = external_threads = slots` DuckDB plans for that many threads but owns none, so
work is done only by threads that join it (`queryard.engine.statement`).
"""

from __future__ import annotations

import ctypes as c
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from queryard.sql.catalog.quoting import literal

from ..capi import Handle, Result, library, take_text
from ..errors import failure
from ..sealing.access import Seal

MIN_MEMORY_BYTES = 32 << 20
# As many as DuckDB has for it by itself.
FETCHING_THREADS = 8
_CACHES = ("EXTERNAL_FILE_CACHE", "OBJECT_CACHE")


class Instance:
    """A DuckDB database in memory, its settings, and connections to it."""

    def __init__(self, slots: int, memory_bytes: int, temp: Path) -> None:
        self.slots = slots
        self.memory_bytes = max(memory_bytes, MIN_MEMORY_BYTES)
        self.database = Handle()
        self.working = 0
        """How many threads are lent to it now, by all its statements."""
        self._lending = threading.Lock()
        # Another thread may ask for its use while it is closed.
        self._closing = threading.Lock()
        duck = library()
        config = Handle()
        duck.create_config(c.byref(config))
        try:
            for name, value in self._settings(temp).items():
                if duck.set_config(config, name.encode(), value.encode()):
                    raise failure(f"DuckDB does not take the setting {name} = {value}")
            message = Handle()
            if duck.open_ext(None, c.byref(self.database), config, c.byref(message)):
                raise failure(take_text(message.value))
        finally:
            duck.destroy_config(c.byref(config))
        try:
            self.control = Connection(self)
        except BaseException:
            duck.close(c.byref(self.database))
            raise

        self._temp = temp
        # Whether it has threads that read files of other machines ahead.
        self._fetches = False
        self.seal: Seal | None = None
        """What it may open, where it may not open everything."""

    def close_to_others(self, seal: Seal) -> None:
        """Let it open nothing but this from now on; nothing has used it yet.

        What it spills goes to a folder of its own, since it may read all that lies there.
        """
        own = self._temp / uuid.uuid4().hex
        self.control.set({"temp_directory": literal(str(own)), **seal.settings()})
        self.seal = seal

    def _settings(self, temp: Path) -> dict[str, str]:
        return {
            "threads": str(self.slots),
            "external_threads": str(self.slots),
            # Each would be idle all the time: local files are read by the slots.
            "async_threads": "0",
            "scheduler_process_partial": "true",
            "memory_limit": f"{self.memory_bytes} bytes",
            "temp_directory": str(temp),
        }

    def set_memory(self, memory_bytes: int) -> bool:
        """Change the limit; False if what is in use cannot be evicted below it."""
        wanted = max(memory_bytes, MIN_MEMORY_BYTES)
        if wanted != self.memory_bytes:
            try:
                self.control.run(f"SET memory_limit = '{wanted} bytes'")
            except Exception:
                return False
            self.memory_bytes = wanted
        return True

    def expect(self, sql: str) -> None:
        """A statement is about to run; one that reads from afar has threads that wait for it."""
        if "://" in sql and not self._fetches:
            self._fetches = True
            self.control.set({"async_threads": str(FETCHING_THREADS)})

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Count the calling thread as lent to the instance within the context."""
        with self._lending:
            self.working += 1
        try:
            yield
        finally:
            with self._lending:
                self.working -= 1

    def used_bytes(self) -> int:
        """Memory in use, without what is only cached from files and can go at any time."""
        with self._closing:
            if self.database.value is None:
                return 0
            rows = self.control.rows(
                "SELECT tag, memory_usage_bytes AS bytes FROM duckdb_memory() "
                "WHERE memory_usage_bytes > 0"
            )
        return sum(row["bytes"] for row in rows if row["tag"] not in _CACHES)

    def close(self) -> None:
        with self._closing:
            self.control.close()
            if self.database.value is not None:
                library().close(c.byref(self.database))


class Connection:
    """A connection to an instance; statements on it run one after another."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.handle = Handle()
        if library().connect(instance.database, c.byref(self.handle)):
            raise failure("DuckDB opened no further connection")
        # DuckDB computes progress only where a progress bar could be drawn.
        self.set({"enable_progress_bar": "true", "enable_progress_bar_print": "false"})

    def run(self, sql: str) -> int:
        """Run something short on the calling thread; the number of changed rows."""
        result = Result()
        duck = library()
        try:
            if duck.query(self.handle, sql.encode(), c.byref(result)):
                raise failure(_text(duck.result_error(c.byref(result))))
            return int(duck.rows_changed(c.byref(result)))
        finally:
            duck.destroy_result(c.byref(result))

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """The rows of something short, run on the calling thread."""
        rows: list[dict[str, Any]] = self.table(sql)[0].to_pylist()
        return rows

    def table(self, sql: str) -> tuple[Any, tuple[str, ...]]:
        """The same as an Arrow table, and the SQL types of its columns."""
        from ..arrow import read_all

        result = Result()
        duck = library()
        try:
            if duck.query(self.handle, sql.encode(), c.byref(result)):
                raise failure(_text(duck.result_error(c.byref(result))))
            return read_all(result)
        finally:
            duck.destroy_result(c.byref(result))

    def set(self, settings: Mapping[str, str]) -> None:
        for name, value in settings.items():
            self.run(f"SET {name} = {value}")

    def interrupt(self) -> None:
        """Stop what runs; it ends with an error at its next step."""
        library().interrupt(self.handle)

    def progress(self) -> float:
        """Share done (0 to 1) of what runs, as DuckDB sees it; 0 where it cannot tell."""
        percentage: float = library().query_progress(self.handle).percentage
        return min(1.0, max(0.0, percentage / 100.0))

    def close(self) -> None:
        if self.handle.value is not None:
            library().disconnect(c.byref(self.handle))


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
