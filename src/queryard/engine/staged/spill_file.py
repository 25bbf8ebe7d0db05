"""Arrow files for rows that do not fit into memory: written batch by batch, read through a map."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc as ipc

from queryard.engine.errors import NoRoom


class SpillFile:
    """A file that is being written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        try:
            self._sink = pa.OSFile(str(path), "wb")
            self._writer = ipc.new_file(self._sink, schema)
        except OSError as error:
            raise self._no_room(error) from None

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            self._writer.write_batch(batch)
        except OSError as error:
            raise self._no_room(error) from None

    def finish(self) -> None:
        """Close the file so that it can be read."""
        try:
            self._writer.close()
            self._sink.close()
        except OSError as error:
            raise self._no_room(error) from None

    def remove(self) -> None:
        """Give up: nothing stays of the file."""
        # Closing the writer would write its footer, which is what may have failed.
        self._sink.close()
        self.path.unlink(missing_ok=True)

    def _no_room(self, error: OSError) -> NoRoom:
        return NoRoom(
            f"intermediate rows do not fit into memory, and not into {self.path.parent}: "
            f"{error.strerror or error}; make room there, or name another folder with "
            "connect(temp=…)"
        )


def mapped_batches(path: Path, numbers: Iterable[int]) -> list[pa.RecordBatch]:
    """Some batches of a finished file; their rows stay in the file until they are looked at."""
    reader = ipc.open_file(pa.memory_map(str(path)))
    return [reader.get_batch(number) for number in numbers]
