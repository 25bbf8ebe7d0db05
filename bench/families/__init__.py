"""Families of workloads: some to fit a model to, others to report it on.

`python -m bench.families NAME --data DIR [--size 1]` makes the data of one.
"""

from __future__ import annotations

from queryard.core.errors import unknown_name

from . import drawn
from .db_benchmark import DB_BENCHMARK
from .model import Family, FamilyError, Progress, Query
from .ssb import SSB
from .tpcds import TPCDS
from .tpch import TPCH

NAMES = ("tpch", "ssb", "db_benchmark", "drawn", "tpcds")

__all__ = ["NAMES", "Family", "FamilyError", "Progress", "Query", "family"]


def family(name: str) -> Family:
    """A family by its name; `drawn:7` are the random queries of seed 7, `drawn` those of 0."""
    known = {one.name: one for one in (TPCH, SSB, DB_BENCHMARK, TPCDS)}
    if name in known:
        return known[name]
    kind, _, seed = name.partition(":")
    if kind == "drawn" and (seed or "0").isdecimal():
        return drawn.family(int(seed or 0))
    raise FamilyError(unknown_name("family", name, NAMES))
