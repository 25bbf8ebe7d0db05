"""Figures of runs: which query had which slots, how long queries took, how busy the cluster was."""

from .accuracy import PredictedQuery, save_accuracy_figure
from .load import save_load_figure
from .panels import FigureRun, References
from .portfolio import Choice
from .save import check_figure_path, save_figure
from .trace import RecordedTimes, save_trace_figure

__all__ = [
    "Choice",
    "FigureRun",
    "PredictedQuery",
    "RecordedTimes",
    "References",
    "check_figure_path",
    "save_accuracy_figure",
    "save_figure",
    "save_load_figure",
    "save_trace_figure",
]
