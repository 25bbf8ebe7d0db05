"""Intermediate results: Arrow tables by key, in memory up to a budget and in files beyond it."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.ipc as ipc

from queryard.core.errors import QueryardError


class MissingRows(QueryardError):
    """A task asked for rows of a task that has not run."""


class Held(NamedTuple):
    """What is kept under a key; `marks` are whatever its owner wants to know again."""

    schema: pa.Schema
    batches: list[pa.RecordBatch]
    marks: tuple[int, ...]


@dataclass(slots=True)
class _Entry:
    batches: list[pa.RecordBatch] | None
    schema: pa.Schema
    marks: tuple[int, ...]
    rows: int
    bytes: int
    path: Path | None = None


class Store:
    """Lists of record batches by key; putting a key again replaces what was there.

    Above `memory_bytes` the largest entries are written to Arrow files under `directory` (by
    default the system's place for temporary files) and mapped back into memory when they are read.
    All methods may be called from any thread.
    """

    def __init__(self, memory_bytes: float, directory: str | Path | None = None) -> None:
        self._memory_bytes = memory_bytes
        self._directory = directory
        self._own: Path | None = None
        self._entries: dict[Hashable, _Entry] = {}
        self._reserved = 0.0
        self._spilled = 0
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._closed = False

    @property
    def memory_used_bytes(self) -> float:
        """Bytes held in memory, with what others reserved."""
        with self._lock:
            return self._in_memory() + self._reserved

    @property
    def spilled_bytes(self) -> int:
        """Bytes written to files so far."""
        return self._spilled

    def reserve(self, size_bytes: float) -> None:
        """Count bytes that somebody else holds against the budget, for good."""
        with self._lock:
            self._reserved += size_bytes
        self._spill()

    def put(
        self,
        key: Hashable,
        schema: pa.Schema,
        batches: list[pa.RecordBatch],
        marks: tuple[int, ...] = (),
    ) -> None:
        """Keep batches under a key, instead of what was there."""
        rows = sum(batch.num_rows for batch in batches)
        size = sum(batch.nbytes for batch in batches)
        with self._lock:
            if self._closed:
                return
            old = self._entries.get(key)
            self._entries[key] = _Entry(batches, schema, marks, rows, size)
            if old is not None and old.path is not None:
                old.path.unlink(missing_ok=True)
        self._spill()

    def get(self, key: Hashable) -> Held:
        """What is kept under a key."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                raise MissingRows(f"no rows under {key!r}: the task that makes them has not run")
            if entry.batches is not None:
                return Held(entry.schema, entry.batches, entry.marks)
            assert entry.path is not None
            reader = ipc.open_file(pa.memory_map(str(entry.path)))
            batches = [reader.get_batch(i) for i in range(reader.num_record_batches)]
            return Held(entry.schema, batches, entry.marks)

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._entries

    def close(self) -> None:
        """Forget everything and remove the files."""
        with self._lock:
            self._closed = True
            self._entries.clear()
            if self._own is not None:
                shutil.rmtree(self._own, ignore_errors=True)
                self._own = None

    # ------------------------------------------------------------------ spilling

    def _in_memory(self) -> int:
        return sum(entry.bytes for entry in self._entries.values() if entry.batches is not None)

    def _spill(self) -> None:
        """Write the largest entries to files until the rest fits."""
        while True:
            with self._lock:
                if self._closed or self._in_memory() + self._reserved <= self._memory_bytes:
                    return
                held = [
                    (key, entry)
                    for key, entry in self._entries.items()
                    if entry.batches is not None and entry.rows
                ]
                if not held:
                    return
                key, entry = max(held, key=lambda pair: pair[1].bytes)
                path = self._folder() / f"{next(self._numbers)}.arrow"
                batches = entry.batches
            assert batches is not None
            _write(path, entry.schema, batches)
            with self._lock:
                if self._entries.get(key) is entry and entry.batches is not None:
                    entry.path, entry.batches = path, None
                    self._spilled += entry.bytes
                else:  # replaced or closed meanwhile, or spilled by another thread
                    path.unlink(missing_ok=True)

    def _folder(self) -> Path:
        if self._own is None:
            self._own = Path(tempfile.mkdtemp(prefix="queryard-staged-", dir=self._directory))
        return self._own


def _write(path: Path, schema: pa.Schema, batches: list[pa.RecordBatch]) -> None:
    with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
