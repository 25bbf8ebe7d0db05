"""What a run was like: pure folds over its journal.

`read_run` turns a journal into rows, each module here computes one kind of number from them,
and `summarise` gives all of them at once.
"""

from .rows import LaunchRow, LeaseRow, NodeRow, QueryRow, Run
from .runs import read_run
from .summary import Summary, summarise

__all__ = [
    "LaunchRow",
    "LeaseRow",
    "NodeRow",
    "QueryRow",
    "Run",
    "Summary",
    "read_run",
    "summarise",
]
