"""Intermediate results: record batches by key, in memory up to a budget and in files beyond it."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from queryard.engine.errors import InputMissing, QueryCancelled

from .spill_file import SpillFile, mapped_batches


class MissingRows(InputMissing):
    """A task asked for rows of a task that has not run."""


class Held(NamedTuple):
    """What is kept under a key, or one part of it."""

    schema: pa.Schema
    batches: list[pa.RecordBatch]


@dataclass(slots=True, eq=False)
class _Entry:
    schema: pa.Schema
    batches: list[pa.RecordBatch] | None = field(default_factory=list)
    places: dict[int, list[int]] = field(default_factory=dict)  # part: numbers of its batches
    count: int = 0
    bytes: int = 0
    path: Path | None = None
    gone: bool = False

    def add(self, batch: pa.RecordBatch, part: int) -> None:
        self.places.setdefault(part, []).append(self.count)
        self.count += 1
        self.bytes += batch.nbytes
        if self.batches is not None:
            self.batches.append(batch)


class Store:
    """Lists of record batches by key; writing a key again replaces what was there.

    Above `memory_bytes` the largest entries, finished or not, go to Arrow files under `directory`
    (by default the system's place for temporary files) and are mapped into memory when they are
    read. All methods may be called from any thread.
    """

    def __init__(self, memory_bytes: float, directory: str | Path | None = None) -> None:
        self.memory_bytes = memory_bytes
        self._directory = directory
        self._own: Path | None = None
        self._entries: dict[Hashable, _Entry] = {}
        self._used = 0.0
        # What is not held outside any more; added to without the lock, as things are freed
        # anywhere, also under it.
        self._freed: deque[int] = deque()
        self._spilled = 0
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        # One thread spills at a time: it may spill what the other threads were about to spill.
        self._spilling = threading.Lock()
        self._closed = False

    @property
    def memory_used_bytes(self) -> float:
        """Bytes in memory: of entries, of those being written, and what others reserved."""
        with self._lock:
            return self._counted()

    @property
    def spilled_bytes(self) -> int:
        """Bytes written to files so far."""
        with self._lock:
            return self._spilled

    # ------------------------------------------------------------------ in

    def open(self, key: Hashable, schema: pa.Schema) -> EntryWriter:
        """Begin an entry; it is not visible before its `commit`."""
        return EntryWriter(self, key, schema)

    def reserve(self, size_bytes: float) -> None:
        """Count bytes that are held outside of the store against the budget."""
        with self._lock:
            self._used += size_bytes
        self._make_room(None)

    def release(self, size_bytes: float) -> None:
        """What was reserved is not held any more."""
        with self._lock:
            self._used -= size_bytes

    def count_until_freed(self, view: memoryview) -> None:
        """Count bytes that are held outside of the store, until nothing holds them any more."""
        weakref.finalize(view, self._freed.append, view.nbytes).atexit = False
        self.reserve(view.nbytes)

    def _counted(self) -> float:
        """Bytes in memory by now; under the lock."""
        while self._freed:
            freed = self._freed.popleft()
            if not self._closed:
                self._used -= freed
        return self._used

    # ------------------------------------------------------------------ out

    def get(self, key: Hashable, part: int | None = None) -> Held:
        """What is kept under a key; only the batches of one part, if one is named."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                raise MissingRows(f"no rows under {key!r}: the task that makes them has not run")
            wanted = range(entry.count) if part is None else entry.places.get(part, ())
            if entry.batches is not None:
                return Held(entry.schema, [entry.batches[i] for i in wanted])
            if not wanted:
                return Held(entry.schema, [])
            # Under the lock, because a file that is replaced is removed.
            assert entry.path is not None
            return Held(entry.schema, mapped_batches(entry.path, wanted))

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def drop(self, key: Hashable) -> None:
        """Forget a key, if it is there."""
        with self._lock:
            self._forget(self._entries.pop(key, None))

    def close(self) -> None:
        """Forget everything and remove the files."""
        with self._lock:
            self._closed = True
            self._entries.clear()
            self._used = 0.0
            if self._own is not None:
                shutil.rmtree(self._own, ignore_errors=True)
                self._own = None

    # ------------------------------------------------------------------ for writers

    def hold(self, writer: EntryWriter, batch: pa.RecordBatch, part: int) -> None:
        """Keep a batch of an entry that is being written, in memory or in its file."""
        if writer.file is not None:
            writer.file.write(batch)
        with self._lock:
            writer.entry.add(batch, part)
            if writer.file is not None:
                self._spilled += batch.nbytes
                return
            self._used += batch.nbytes
        self._make_room(writer)

    def publish(self, key: Hashable, entry: _Entry) -> None:
        """Let an entry that is complete take the place of what was there."""
        with self._lock:
            if self._closed:
                self._forget(entry)
                return
            old = self._entries.get(key)
            self._entries[key] = entry
            self._forget(old)

    def discard(self, entry: _Entry) -> None:
        """An entry that is being written will not be complete."""
        with self._lock:
            self._forget(entry)

    def _forget(self, entry: _Entry | None) -> None:
        if entry is None:
            return
        entry.gone = True
        if self._closed:
            return  # which has removed all files, and counts nothing any more
        if entry.batches is not None:
            self._used -= entry.bytes
        elif entry.path is not None:
            entry.path.unlink(missing_ok=True)

    # ------------------------------------------------------------------ spilling

    def _make_room(self, growing: EntryWriter | None) -> None:
        """Write the largest entries to files until the rest fits; `growing` is the caller's."""
        with self._lock:
            if self._counted() <= self.memory_bytes:
                return
        with self._spilling:
            while (largest := self._largest(growing)) is not None:
                file = self._written(largest)
                if growing is not None and largest is growing.entry:
                    growing.file = file  # and so goes all that follows
                else:
                    file.finish()
                self._moved(largest, file)

    def _largest(self, growing: EntryWriter | None) -> _Entry | None:
        """What to write to a file next; None if all fits, or nothing is left to write."""
        with self._lock:
            if self._closed or self._counted() <= self.memory_bytes:
                return None
            held = [entry for entry in self._entries.values() if entry.batches and entry.bytes]
            if growing is not None and growing.entry.batches and growing.entry.bytes:
                # Among equals spill the entry being written: a complete one may be read soon.
                held.insert(0, growing.entry)
            return max(held, key=lambda entry: entry.bytes, default=None)

    def _written(self, entry: _Entry) -> SpillFile:
        with self._lock:
            if self._closed:
                raise QueryCancelled("cancelled")
            if self._own is None:
                self._own = Path(tempfile.mkdtemp(prefix="queryard-staged-", dir=self._directory))
            path = self._own / f"{next(self._numbers)}.arrow"
            batches = entry.batches or []
        file = SpillFile(path, entry.schema)
        try:
            for batch in batches:
                file.write(batch)
        except BaseException:
            file.remove()
            raise
        return file

    def _moved(self, entry: _Entry, file: SpillFile) -> None:
        with self._lock:
            if entry.gone or self._closed:  # replaced or dropped while it was written
                file.path.unlink(missing_ok=True)
                return
            entry.path, entry.batches = file.path, None
            self._used -= entry.bytes
            self._spilled += entry.bytes


class EntryWriter:
    """An entry of a store in the making, of one thread; without `commit` nothing stays of it."""

    def __init__(self, store: Store, key: Hashable, schema: pa.Schema) -> None:
        self.entry = _Entry(schema)
        self.file: SpillFile | None = None
        self._store = store
        self._key = key
        self._over = False

    def append(self, batch: pa.RecordBatch, part: int = 0) -> None:
        """Add rows; those of a part can be read apart."""
        if batch.num_rows:
            self._store.hold(self, batch, part)

    def commit(self) -> None:
        """Make the entry visible, at once and as a whole."""
        if self.file is not None:
            self.file.finish()
        self._over = True
        self._store.publish(self._key, self.entry)

    def __enter__(self) -> EntryWriter:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._over:
            self._over = True
            if self.file is not None:
                self.file.remove()
            self._store.discard(self.entry)
