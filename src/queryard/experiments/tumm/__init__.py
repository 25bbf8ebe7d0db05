"""The tables and figures of TuMM and H_TuMM."""

from ..outcome import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
