"""The tables and figures of S³."""

from ..outcome import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
