"""TPC-H's 22 queries and 27 others over its tables; size 1 is scale 1.

The others were written when the prices of single operators were first looked at: scans of texts,
groups of all sizes, windows, sorts, limits, single rows.
"""

from __future__ import annotations

from pathlib import Path

from queryard.workload import tpch

from .model import Family, Progress, Query

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")

OTHERS = {
    "text-scan": "SELECT max(length(l_comment)) FROM lineitem",
    "filter": "SELECT count(*) FROM lineitem WHERE l_quantity > 45 AND l_discount < 0.03",
    "few-groups": "SELECT l_shipmode, l_shipinstruct, count(*) FROM lineitem GROUP BY ALL",
    "many-groups": "SELECT count(*), max(q) FROM "
    "(SELECT l_orderkey, sum(l_quantity) AS q FROM lineitem GROUP BY l_orderkey)",
    "pair-groups": "SELECT count(*), max(p) FROM "
    "(SELECT l_partkey, l_suppkey, avg(l_extendedprice) AS p FROM lineitem GROUP BY ALL)",
    "distinct": "SELECT count(DISTINCT l_partkey), count(DISTINCT l_suppkey) FROM lineitem",
    "median": "SELECT l_returnflag, median(l_extendedprice) FROM lineitem GROUP BY 1",
    "by-month": "SELECT date_trunc('month', l_shipdate) AS month, sum(l_extendedprice) "
    "FROM lineitem GROUP BY 1 ORDER BY 1",
    "window-rank": "SELECT sum(n) FROM (SELECT row_number() OVER "
    "(PARTITION BY o_custkey ORDER BY o_orderdate) AS n FROM orders)",
    "window-frame": "SELECT max(m) FROM (SELECT avg(o_totalprice) OVER (PARTITION BY "
    "o_orderpriority ORDER BY o_orderdate ROWS 9 PRECEDING) AS m FROM orders)",
    "regex": "SELECT count(*) FROM orders WHERE "
    "regexp_matches(o_comment, 'special.*(requests|deposits)')",
    "like": "SELECT count(*) FROM lineitem WHERE l_comment LIKE '%express%'",
    "texts": "SELECT upper(substr(o_clerk, 7, 5)) AS clerk, count(*), max(length(o_comment)) "
    "FROM orders GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
    "join": "SELECT o_orderpriority, sum(l_quantity) FROM lineitem "
    "JOIN orders ON l_orderkey = o_orderkey GROUP BY 1",
    "star": "SELECT n_name, count(*), sum(o_totalprice) FROM orders JOIN customer "
    "ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey GROUP BY 1",
    "self-join": "SELECT count(*) FROM lineitem a JOIN lineitem b ON a.l_orderkey = b.l_orderkey "
    "WHERE a.l_shipmode = 'AIR' AND b.l_shipmode = 'RAIL'",
    "semi": "SELECT count(*) FROM orders WHERE o_orderkey IN "
    "(SELECT l_orderkey FROM lineitem WHERE l_quantity > 48)",
    "anti": "SELECT count(*) FROM customer WHERE NOT EXISTS "
    "(SELECT 1 FROM orders WHERE o_custkey = c_custkey AND o_totalprice > 100000)",
    "sort": "SELECT o_orderkey, o_custkey, o_totalprice FROM orders ORDER BY o_totalprice DESC",
    "text-sort": "SELECT c_custkey, c_name, c_address FROM customer ORDER BY c_address",
    "top": "SELECT l_orderkey, l_extendedprice, l_comment FROM lineitem "
    "ORDER BY l_extendedprice DESC LIMIT 100",
    "many-rows": "SELECT l_orderkey, l_partkey, l_extendedprice FROM lineitem "
    "WHERE l_shipdate < DATE '1993-07-01'",
    "union": "SELECT k, count(*) FROM (SELECT o_custkey AS k FROM orders UNION ALL "
    "SELECT c_custkey FROM customer) GROUP BY k HAVING count(*) > 30",
    "limit": "SELECT * FROM lineitem LIMIT 100",
    "point": "SELECT * FROM orders WHERE o_orderkey = 4000",
    "one-customer": "SELECT * FROM orders WHERE o_custkey = 370",
    "small": "SELECT * FROM nation ORDER BY n_name",
}


def make(folder: Path, size: float, progress: Progress) -> None:
    """All tables, unless they are there."""
    tpch.generate(folder, size, progress=progress)


def queries(folder: Path | None = None) -> tuple[Query, ...]:
    """All queries; each is a template of its own."""
    texts = {f"q{number:02}": tpch.query(number) for number in range(1, 23)} | OTHERS
    return tuple(Query(name, sql, name) for name, sql in texts.items())


TPCH = Family("tpch", "development", TABLES, make, queries)
