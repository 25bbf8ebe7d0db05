"""The best that is known of a table without reading its data, and the sample that is kept."""

from __future__ import annotations

from pathlib import Path

from queryard.sql.catalog.model import Table
from queryard.sql.catalog.parquet import ParquetTable

from .footers import footer_statistics
from .guesses import guessed_statistics
from .model import TableStatistics
from .sample_store import load_sample
from .samples import TableSample
from .store import load


def known_statistics(table: Table, folder: Path | None) -> TableStatistics:
    """What `analyze` kept, if it still holds; else footers; else a guess."""
    stored = load(table, folder) if table.files else None
    if stored is not None:
        return stored.statistics
    if isinstance(table, ParquetTable):
        return footer_statistics(table)
    return guessed_statistics(table)


def known_sample(table: Table, folder: Path | None) -> TableSample | None:
    """The sample that was kept, if it still holds."""
    return load_sample(table, folder) if table.files else None
