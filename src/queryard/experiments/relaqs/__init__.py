"""The tables and figures of ReLAQS."""

from ..outcome import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
