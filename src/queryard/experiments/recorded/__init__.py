"""All main policies and the portfolio on recorded workloads."""

from ..outcome import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
