"""Ten different aggregations over lineitem; every bench of shared scans runs these."""

from __future__ import annotations

import re
from collections.abc import Mapping

AGGREGATIONS: Mapping[str, str] = {
    "pricing": """SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)), avg(l_discount), count(*)
        FROM {} WHERE l_shipdate <= DATE '1998-09-02' GROUP BY ALL ORDER BY ALL""",
    "forecast": """SELECT sum(l_extendedprice * l_discount) FROM {}
        WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
        AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    "modes": """SELECT l_shipmode, count(*), avg(l_quantity) FROM {}
        GROUP BY ALL ORDER BY ALL""",
    "years": """SELECT year(l_shipdate), sum(l_extendedprice) FROM {}
        GROUP BY ALL ORDER BY ALL""",
    "taxes": """SELECT l_tax, sum(l_extendedprice * l_tax), max(l_quantity) FROM {}
        GROUP BY ALL ORDER BY ALL""",
    "late": """SELECT l_shipmode, count(*) FROM {} WHERE l_receiptdate > l_commitdate
        GROUP BY ALL ORDER BY ALL""",
    "discounts": """SELECT l_discount, count(*), min(l_extendedprice), max(l_extendedprice)
        FROM {} GROUP BY ALL ORDER BY ALL""",
    "returned": """SELECT l_returnflag, sum(l_extendedprice * (1 - l_discount)) FROM {}
        WHERE l_returnflag = 'R' GROUP BY ALL""",
    "months": """SELECT month(l_shipdate), sum(l_quantity), count(*) FROM {}
        WHERE l_quantity >= 10 GROUP BY ALL ORDER BY ALL""",
    "instructions": """SELECT l_shipinstruct, l_linestatus, sum(l_quantity) FROM {}
        GROUP BY ALL ORDER BY ALL""",
}
"""Each with {} where the table goes."""

STRINGS: Mapping[str, str] = {
    f"comments like {word}": f"""SELECT count(*), sum(l_quantity), max(length(l_comment)) FROM {{}}
        WHERE l_comment LIKE '%{word}%'"""
    for word in (
        "careful",
        "final",
        "quick",
        "regular",
        "ironic",
        "deposit",
        "request",
        "pending",
        "slow",
        "bold",
    )
}
"""Ten that read long strings."""


def columns_of(sql: str) -> tuple[str, ...]:
    """The columns that an aggregation reads.

    >>> columns_of(AGGREGATIONS["taxes"])
    ('l_extendedprice', 'l_quantity', 'l_tax')
    """
    return tuple(sorted(set(re.findall(r"\bl_[a-z]+\b", sql))))
