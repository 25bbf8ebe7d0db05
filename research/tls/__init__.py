"""The tables and figures of TLS."""

from research.outcome import Experiment

from .accuracy import EXPERIMENT as _ACCURACY
from .chain_tree import EXPERIMENT as _CHAIN_TREE
from .five_q21 import EXPERIMENT as _FIVE_Q21
from .lodfa import EXPERIMENT as _LODFA
from .measured import EXPERIMENT as _MEASURED
from .motivation import EXPERIMENT as _MOTIVATION
from .response import EXPERIMENT as _RESPONSE
from .slowdown import EXPERIMENT as _SLOWDOWN

EXPERIMENTS: tuple[Experiment, ...] = (
    _MOTIVATION,
    _CHAIN_TREE,
    _LODFA,
    _SLOWDOWN,
    _RESPONSE,
    _FIVE_Q21,
    _MEASURED,
    _ACCURACY,
)
