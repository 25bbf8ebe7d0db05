"""The tables and figures of POSUM."""

from research.outcome import Experiment

from .predictors import EXPERIMENT as _PREDICTORS
from .provisioning import EXPERIMENT as _PROVISIONING
from .scores import EXPERIMENT as _SCORES
from .usage import EXPERIMENT as _USAGE

EXPERIMENTS: tuple[Experiment, ...] = (_PREDICTORS, _SCORES, _USAGE, _PROVISIONING)
