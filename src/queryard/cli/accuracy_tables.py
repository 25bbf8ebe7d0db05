"""Errors of predictions as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from queryard.core import readable

from .accuracy_sums import Accuracy, Period
from .history_tables import Listing, in_a_line, when

_FIGURES = (
    "off by\nmedian",
    "\n90 %",
    "\nworst",
    "predicted\n/ actual",
    "within\n[%]",
    "rank\ncorr.",
)


def accuracy_table(rows: Sequence[Accuracy], what: str, counted: str = "queries") -> Listing:
    """One row per group."""
    listing = Listing(counted, "work\n[s]", *_FIGURES, what, words=(what,))
    for row in rows:
        listing.add(
            readable.count(row.predictions),
            readable.seconds(row.work_s),
            *_cells(row),
            in_a_line(row.name) if not row.name.startswith(" ") else row.name,
        )
    return listing


def period_table(periods: Sequence[Period]) -> Listing:
    """One row per period."""
    listing = Listing("asked\nsince", "queries", *_FIGURES, "until", words=("asked",))
    for period in periods:
        row = period.accuracy
        listing.add(
            when(period.since_at),
            readable.count(row.predictions),
            *_cells(row),
            when(period.until_at),
        )
    return listing


def _cells(row: Accuracy) -> list[str]:
    factors = (row.median, row.ninth_decile, row.worst)
    return [
        *(f"{readable.ratio(factor)}x" for factor in factors),
        readable.ratio(row.bias),
        readable.hundredths(row.within),
        readable.MISSING if row.correlation is None else f"{row.correlation:.2f}",
    ]
