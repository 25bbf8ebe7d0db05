"""Estimates of a whole table from some of its files, with intervals."""

from .forecast import files_for, rows_hidden
from .intervals import (
    FEW_FILES,
    FEW_ROWS,
    Changes,
    Estimate,
    changes_of,
    estimate,
    half_width,
    tail_of,
)
from .quantiles import FileQuantiles, quantile_estimate, shares_around
from .remaining import error_left
from .sample import Sample, SampleKind
from .settled import Ranked, all_hold, holds, in_top
from .student import student_t

__all__ = [
    "FEW_FILES",
    "FEW_ROWS",
    "Changes",
    "Estimate",
    "FileQuantiles",
    "Ranked",
    "Sample",
    "SampleKind",
    "all_hold",
    "changes_of",
    "error_left",
    "estimate",
    "files_for",
    "half_width",
    "holds",
    "in_top",
    "quantile_estimate",
    "rows_hidden",
    "shares_around",
    "student_t",
    "tail_of",
]
