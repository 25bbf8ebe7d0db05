"""The tables and figures of ReLAQS."""

from research.outcome import Experiment

from .arrival_gaps import EXPERIMENT as _CROSSING
from .progress_metric import EXPERIMENT as _METRIC
from .time_to_answers import EXPERIMENT as _TIME
from .two_cores import EXPERIMENT as _TWO_CORES

EXPERIMENTS: tuple[Experiment, ...] = (_TIME, _CROSSING, _METRIC, _TWO_CORES)
