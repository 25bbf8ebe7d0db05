"""Online answers: whether their intervals can be believed."""

from research.outcome import Experiment

from .coverage import EXPERIMENT as _COVERAGE

EXPERIMENTS: tuple[Experiment, ...] = (_COVERAGE,)
