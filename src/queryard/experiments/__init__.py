"""The papers' tables and figures, run again: one module each."""

from collections.abc import Mapping

from .outcome import Chart, Experiment, Finding, Interval, Outcome, Table, Wish, interval
from .predictors import EXPERIMENT as _PREDICTORS

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment for experiment in (_PREDICTORS,)
}

__all__ = [
    "EXPERIMENTS",
    "Chart",
    "Experiment",
    "Finding",
    "Interval",
    "Outcome",
    "Table",
    "Wish",
    "interval",
]
