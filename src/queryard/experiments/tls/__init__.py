"""The tables and figures of TLS."""

from ..outcome import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
