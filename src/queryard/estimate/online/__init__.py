"""Estimates of a whole table from some of its files, with intervals."""

from .forecast import error_after, fraction_for, may_stop, rows_hidden
from .intervals import FEW_FILES, FEW_ROWS, Changes, Estimate, changes_of, estimate, half_width
from .quantiles import FileQuantiles, quantile_estimate, shares_around
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
    "error_after",
    "estimate",
    "fraction_for",
    "half_width",
    "holds",
    "in_top",
    "may_stop",
    "quantile_estimate",
    "rows_hidden",
    "shares_around",
    "student_t",
]
