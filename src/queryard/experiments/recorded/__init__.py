"""All main policies and the portfolio on recorded workloads."""

from ..outcome import Experiment
from .days import EXPERIMENT as _DAYS
from .streams import EXPERIMENT as _STREAMS

EXPERIMENTS: tuple[Experiment, ...] = (_STREAMS, _DAYS)
