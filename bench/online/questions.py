"""The questions of the online benches, over TPC-H."""

from __future__ import annotations

from queryard.workload import tpch

Q3_TOTAL = """
SELECT sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
"""


def question(name: str) -> str:
    """A query of TPC-H by its number, or Q3's total: its top ten cannot be estimated."""
    return Q3_TOTAL if name == "q3total" else tpch.query(int(name.removeprefix("q")))


# Twenty aggregations over one table, as a dashboard asks them.
LINEITEM = tuple(
    f"SELECT {keys + ', ' if keys else ''}{what} FROM lineitem"
    f"{' WHERE ' + where if where else ''}{f' GROUP BY {keys} ORDER BY {keys}' if keys else ''}"
    for keys, what, where in (
        ("", "sum(l_extendedprice) AS total", ""),
        ("", "count(*) AS lines, avg(l_quantity) AS quantity", "l_discount > 0.05"),
        ("l_returnflag", "sum(l_quantity) AS quantity", ""),
        ("l_linestatus", "avg(l_extendedprice) AS price", ""),
        ("l_shipmode", "count(*) AS lines", ""),
        ("l_shipmode", "sum(l_extendedprice * (1 - l_discount)) AS revenue", ""),
        ("l_shipinstruct", "avg(l_discount) AS discount", ""),
        ("l_returnflag, l_linestatus", "sum(l_extendedprice) AS total, count(*) AS lines", ""),
        ("year(l_shipdate)", "sum(l_extendedprice * (1 - l_discount)) AS revenue", ""),
        ("", "sum(l_extendedprice * l_discount) AS saved", "l_quantity < 24"),
        ("", "avg(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge", ""),
        ("l_linenumber", "avg(l_quantity) AS quantity", ""),
        ("l_shipmode", "stddev(l_extendedprice) AS spread", ""),
        ("", "sum(l_quantity) AS quantity", "l_shipmode IN ('MAIL', 'SHIP')"),
        ("", "count(*) AS late", "l_receiptdate > l_commitdate"),
        ("l_returnflag", "avg(l_tax) AS tax", "l_shipdate >= DATE '1995-01-01'"),
        ("month(l_shipdate)", "count(*) AS lines", ""),
        ("", "sum(l_extendedprice) / sum(l_quantity) AS unit_price", ""),
        ("l_discount", "sum(l_quantity) AS quantity", ""),
        ("l_linestatus", "sum(l_extendedprice * l_tax) AS taxes", "l_returnflag <> 'R'"),
    )
)
