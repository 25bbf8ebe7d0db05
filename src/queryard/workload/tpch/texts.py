"""The 22 queries, with the parameters by which the specification validates an answer.

Two things differ from the printed ones. Query 15 has its view as a common table expression, which
the specification allows. Query 11 keeps the fraction of scale factor 1 at every scale, so that a
query is one text.

>>> query(6).splitlines()[1]
'SELECT sum(l_extendedprice * l_discount) AS revenue'
>>> len(queries())
22
"""

from __future__ import annotations

from importlib.resources import files

from .data import TpchError

COUNT = 22


def query(number: int) -> str:
    """The text of query 1 to 22, in DuckDB's dialect, without a semicolon at its end."""
    if number not in range(1, COUNT + 1):
        raise TpchError(f"unknown TPC-H query {number!r} (valid: 1 to {COUNT})")
    return files(__package__).joinpath("queries", f"q{number:02d}.sql").read_text(encoding="utf-8")


def queries() -> dict[int, str]:
    """All queries by their number."""
    return {number: query(number) for number in range(1, COUNT + 1)}
