"""An exchange in a folder, for processes of one machine: an Arrow file per output.

Each place has a folder of its own in it; with a place, what lies there is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import quote

import pyarrow as pa
import pyarrow.ipc as ipc

from .cancellation import Cancellation
from .exchange import Partitions, Piece, PieceLost, Superseded, written
from .partitioning import SLAB_BYTES, Slabs, Tally, kept_schema
from .spill_file import SpillFile


class FileExchange:
    """Rows are written to files as they come, and mapped into memory where they are read.

    The `ref` of a piece is the attempt that wrote it and the numbers of its batches.
    """

    def __init__(self, folder: Path, place: str) -> None:
        self._folder = folder
        self._place = place
        (folder / place).mkdir(parents=True, exist_ok=True)

    @property
    def place(self) -> str:
        return self._place

    def open(
        self, key: str, attempt: int, schema: pa.Schema, partitions: Partitions | None
    ) -> FileWriter:
        return FileWriter(self, key, attempt, schema, partitions)

    def publish(self, key: str, rows: pa.Table) -> Piece:
        return written(self, key, rows)

    def fetch(self, pieces: Sequence[Piece], cancelled: Cancellation | None = None) -> pa.Table:
        schema: pa.Schema | None = None
        batches: list[pa.RecordBatch] = []
        lost: list[Piece] = []
        for piece in pieces:
            attempt, numbers = piece.ref
            try:
                mapped = pa.memory_map(str(self.path(piece.key, attempt, piece.holder)))
            except FileNotFoundError:
                lost.append(piece)
                continue
            reader = ipc.open_file(mapped)
            schema = schema or reader.schema
            if piece.rows:
                batches += map(reader.get_batch, numbers)
        if lost:
            raise PieceLost(lost)
        return pa.Table.from_batches(batches, schema)

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            for path in self._folder.glob(f"*/{_name(key)}.*.arrow"):
                path.unlink(missing_ok=True)

    def settle(self) -> None:
        pass  # nothing is kept in memory

    # --- for writers --------------------------------------------------------------------------

    def path(self, key: str, attempt: int, place: str) -> Path:
        """The file of one attempt's output."""
        return self._folder / place / f"{_name(key)}.{attempt}.arrow"

    def latest(self, key: str) -> int:
        """The latest attempt that stands at this place; -1 if none does."""
        found = (self._folder / self._place).glob(f"{_name(key)}.*.arrow")
        return max((int(path.suffixes[-2][1:]) for path in found), default=-1)


class FileWriter:
    """An output on its way into a file, which gets its name when it is complete."""

    def __init__(
        self,
        exchange: FileExchange,
        key: str,
        attempt: int,
        schema: pa.Schema,
        partitions: Partitions | None,
    ) -> None:
        self._exchange = exchange
        self._key = key
        self._attempt = attempt
        self._path = exchange.path(key, attempt, exchange.place)
        self._file = SpillFile(self._path.with_suffix(".part"), kept_schema(schema, partitions))
        self._numbers: dict[int | None, list[int]] = {}
        self._count = 0
        self._tally = Tally()
        self._slabs: Slabs | None = None
        if partitions is not None:
            self._slabs = Slabs(schema, partitions.column, SLAB_BYTES, self._keep)

    def append(self, batch: pa.RecordBatch) -> None:
        if self._slabs is None:
            self._keep(batch, None)
        elif self._slabs.add(batch):
            self._slabs.sort()

    def commit(self) -> tuple[Piece, ...]:
        if self._slabs is not None:
            self._slabs.sort()
        latest = self._exchange.latest(self._key)
        if latest > self._attempt:
            raise Superseded(f"attempt {self._attempt} of {self._key} came after attempt {latest}")
        self._file.finish()
        self._file.path.rename(self._path)
        return tuple(
            piece._replace(ref=(self._attempt, tuple(self._numbers.get(piece.part, ()))))
            for piece in self._tally.pieces(self._key, self._exchange.place)
        )

    def _keep(self, batch: pa.RecordBatch, part: int | None) -> None:
        if batch.num_rows:
            self._file.write(batch)
            self._numbers.setdefault(part, []).append(self._count)
            self._count += 1
            self._tally.add(batch, part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.remove()  # which finds nothing to remove after `commit`


def _name(key: str) -> str:
    """A key as a part of a file's name, without dots: the attempt stands behind one."""
    return quote(key, safe="").replace(".", "%2E")
