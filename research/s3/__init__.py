"""The tables and figures of S³."""

from research.outcome import Experiment

from .blocks import EXPERIMENT as _BLOCKS
from .dense import EXPERIMENT as _DENSE
from .heavy import EXPERIMENT as _HEAVY
from .merged import EXPERIMENT as _MERGED
from .parsing import EXPERIMENT as _PARSING
from .selection import EXPERIMENT as _SELECTION
from .sparse import EXPERIMENT as _SPARSE

EXPERIMENTS: tuple[Experiment, ...] = (
    *(_MERGED, _SPARSE, _DENSE, _HEAVY, _BLOCKS, _SELECTION),
    _PARSING,
)
