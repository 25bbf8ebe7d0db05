"""The tables and figures of TuMM and H_TuMM."""

from research.outcome import Experiment

from .benchmarks import EXPERIMENT as _BENCHMARKS
from .fifo_fair import EXPERIMENT as _FIFO_FAIR
from .heterogeneous import EXPERIMENT as _HETEROGENEOUS
from .mixed import EXPERIMENT as _MIXED
from .tpch import EXPERIMENT as _TPCH

EXPERIMENTS: tuple[Experiment, ...] = (_BENCHMARKS, _FIFO_FAIR, _MIXED, _HETEROGENEOUS, _TPCH)
