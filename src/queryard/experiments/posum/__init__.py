"""The tables and figures of POSUM."""

from ..outcome import Experiment
from .predictors import EXPERIMENT as _PREDICTORS

EXPERIMENTS: tuple[Experiment, ...] = (_PREDICTORS,)
