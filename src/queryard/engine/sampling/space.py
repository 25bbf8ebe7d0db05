"""Where a copy can be written, and whether there is room for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from queryard.core.readable import size
from queryard.sql.catalog.formats import COMPRESSIONS
from queryard.sql.catalog.model import Table

from .model import SampleError

SPARED_BYTES = 200_000_000
"""So much of a disk is left free."""

# Bytes of a copy, and of its rows in memory, per byte of the table: upper bounds of what was seen.
_COPY = {"parquet": 1.3, "csv": 1.0, "json": 1.0, "database": 1.5}
_ROWS = {"parquet": 5.0, "csv": 2.0, "json": 2.0, "database": 5.0}
_COMPRESSED_TEXT = 4.0


def writable_place(table: Table, among: Iterable[Path]) -> Path:
    """The first of these folders that can be written to; it is made if it is not there."""
    tried = []
    for place in among:
        try:
            # It holds data: for its user only, as the history is.
            for folder in (place.parent, place):
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700, exist_ok=True)
            if os.access(place, os.W_OK | os.X_OK):
                return place
            tried.append(f"{place} (not writable)")
        except OSError as error:
            tried.append(f"{place} ({error.strerror or error})")
    raise SampleError(
        f"table {table.key}: a shuffled copy can be written to none of {', '.join(tried)}; make "
        "one of them writable, or name another cache in XDG_CACHE_HOME"
    )


def expected_bytes(table: Table) -> tuple[float, float]:
    """About what a copy of a table takes on disk, and its rows in memory."""
    text = _COMPRESSED_TEXT if table.files[0].uri.endswith(COMPRESSIONS) else 1.0
    return table.bytes * _COPY[table.kind] * text, table.bytes * _ROWS[table.kind] * text


def check_room(table: Table, place: Path, memory_bytes: int) -> int:
    """How many bytes may be spilled beside the copy; SampleError if there is no room."""
    copy_bytes, rows_bytes = expected_bytes(table)
    # DuckDB has other uses for half of its memory.
    spilled = max(0.0, rows_bytes - memory_bytes / 2)
    free = shutil.disk_usage(place).free
    needed = copy_bytes + spilled + SPARED_BYTES
    if free < needed:
        more = "" if not spilled else " (or give more memory, so that less is spilled)"
        raise SampleError(
            f"table {table.key}: a shuffled copy needs about {size(needed)} in {place} while it is "
            f"made, and {size(free)} are free; free some{more}, or remove other copies with "
            "queryard shuffle --remove"
        )
    return int(free - copy_bytes - SPARED_BYTES)
