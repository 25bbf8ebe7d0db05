"""What a run was like: pure folds over its journal.

`read_run` turns a journal into rows, each module here computes one kind of number from them,
and `summarise` gives all of them at once.
"""

from .rows import LaunchRow, LeaseRow, NodeRow, QueryRow, RunRows
from .runs import read_run
from .summary import Summary, summarise

# Its name before.
Run = RunRows

__all__ = [
    "LaunchRow",
    "LeaseRow",
    "NodeRow",
    "QueryRow",
    "Run",
    "RunRows",
    "Summary",
    "read_run",
    "summarise",
]
