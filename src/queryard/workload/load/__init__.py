"""Loads: which tenant sends which query when; drawn from a spec and a seed, or recorded."""

from .as_workload import as_workload, query_of, size_bin
from .draw import deal, draw, examples
from .model import Alone, Amount, Arrivals, Asker, Data, LoadSpec, Request, Template
from .read import read_spec
from .recorded import read_recorded, write_recorded

__all__ = [
    "Alone",
    "Amount",
    "Arrivals",
    "Asker",
    "Data",
    "LoadSpec",
    "Request",
    "Template",
    "as_workload",
    "deal",
    "draw",
    "examples",
    "query_of",
    "read_recorded",
    "read_spec",
    "size_bin",
    "write_recorded",
]
