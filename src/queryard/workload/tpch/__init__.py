"""TPC-H: its data, made by `tpchgen-cli`, and its 22 queries, to try things out with."""

from .data import TABLES, TpchError, generate
from .parameters import draw_query, in_schema
from .texts import queries, query

__all__ = ["TABLES", "TpchError", "draw_query", "generate", "in_schema", "queries", "query"]
