"""TPC-H: its data, made by `tpchgen-cli`, and its 22 queries, to try things out with."""

from .data import TABLES, TpchError, generate
from .texts import queries, query

__all__ = ["TABLES", "TpchError", "generate", "queries", "query"]
