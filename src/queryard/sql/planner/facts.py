"""What is assumed of the columns of a table, from their statistics."""

from __future__ import annotations

from typing import Any

from queryard.sql.statistics.distribution import Distribution
from queryard.sql.statistics.positions import position

from .selectivity import ColumnFacts
from .types import width_bytes


def column_facts(found: Any, rows: float, found_type: str) -> ColumnFacts:
    """Facts from a column's statistics, with guesses where they say nothing."""
    width = width_bytes(found_type)
    if found is None:
        return ColumnFacts(_guessed_distinct(rows, None, None, found_type), width_bytes=width)
    low, high = position(found.min), position(found.max)
    distinct = found.distinct
    if not distinct:
        distinct = _guessed_distinct(rows, low, high, found_type)
    null_share = float(found.null_share or 0.0)
    spread = None
    if found.histogram is not None:
        spread = Distribution.of(found.histogram, rows * (1 - null_share))
    return ColumnFacts(
        min(float(distinct), max(rows, 1.0)),
        low,
        high,
        null_share,
        float(found.average_width_bytes or width),
        spread,
        clustered=bool(found.clustered),
    )


def _guessed_distinct(rows: float, low: float | None, high: float | None, found_type: str) -> float:
    """Whole numbers and days fill their span; of the rest a tenth of the rows differ."""
    if (
        low is not None
        and high is not None
        and found_type
        in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DATE", "UINTEGER", "UBIGINT")
    ):
        return max(min(rows, high - low + 1), 1.0)
    return max(rows / 10, 1.0)
