"""Rows that do not fit into memory, on their way through a file."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pyarrow as pa

from .errors import QueryFailed


class SpoolFile:
    """Batches that are written and read in order, the first while others are still written.

    Its owner makes one call at a time. Once all that was written is read, the file is gone; what is
    written then begins another one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # What is open now, the innermost first.
        self._writing: list[Any] = []
        self._reading: list[Any] = []
        # Of each batch, as it was in memory.
        self._sizes: deque[int] = deque()

    @property
    def batches(self) -> int:
        return len(self._sizes)

    @property
    def size_bytes(self) -> int:
        return sum(self._sizes)

    def write(self, batch: Any) -> None:
        try:
            if not self._writing:
                sink = pa.OSFile(str(self._path), "wb")
                options = pa.ipc.IpcWriteOptions(compression="lz4")
                self._writing = [pa.ipc.new_stream(sink, batch.schema, options=options), sink]
            self._writing[0].write_batch(batch)
        except OSError as error:
            raise QueryFailed(
                f"the rows do not fit into memory, and not into {self._path.parent}: "
                f"{error.strerror or error}; make room there, or name another folder with "
                "connect(temp=…)"
            ) from None
        self._sizes.append(batch.nbytes)

    def read(self) -> tuple[Any, int]:
        """The next batch, and how many bytes it had."""
        if not self._reading:
            source = pa.OSFile(str(self._path), "rb")
            self._reading = [pa.ipc.open_stream(source), source]
        batch = self._reading[0].read_next_batch()
        size_bytes = self._sizes.popleft()
        if not self._sizes:
            self.remove()
        return batch, size_bytes

    def remove(self) -> None:
        self._sizes.clear()
        for opened in (self._reading, self._writing):
            while opened:
                opened.pop(0).close()
        self._path.unlink(missing_ok=True)
