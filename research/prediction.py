"""How well the work of queries is predicted: TPC-H and others, one after another.

Run by itself: `python -m research.prediction --data DIR` on a folder of TPC-H Parquet files. Work
is the CPU time of the process around a query that runs alone. *Bytes* and *plan* are predicted
cold; *warm* is what the next run is expected to take after the first has been seen. A factor of
error is the larger of predicted over actual and actual over predicted.

The prices were fitted to TPC-H at scale 1, starting from single operators on made-up rows. The
other queries are no blind test: they were not fitted to, but what counts as work (limits, pages
that a filter skips, sorts of texts, regular expressions) was refined with some of them in sight.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

import queryard
from queryard.engine.calibration import machine_rates
from queryard.engine.classify import classify
from queryard.estimate.work import LEAST_S
from queryard.live.estimates.prediction import Predictor
from queryard.live.request import QueryRequest
from queryard.sql.catalog import open_catalog
from queryard.workload import tpch

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
    "csv": "SELECT count(*), sum(o_totalprice) FROM orders_csv",
    "csv-groups": "SELECT o_orderpriority, avg(o_totalprice) FROM orders_csv "
    "WHERE o_orderdate > DATE '1995-01-01' GROUP BY 1",
    "limit": "SELECT * FROM lineitem LIMIT 100",
    "point": "SELECT * FROM orders WHERE o_orderkey = 4000",
    "one-customer": "SELECT * FROM orders WHERE o_custkey = 370",
    "small": "SELECT * FROM nation ORDER BY n_name",
}


SHOWN = ("bytes", "plan", "warm")


class Row(NamedTuple):
    """One query: its work, and what was expected of it."""

    name: str
    actual_s: float
    expected_s: dict[str, float]
    plan_ms: float


def measured(session: queryard.Session, sql: str) -> float:
    """CPU seconds of the process while a query runs alone."""
    began = time.process_time()
    session.sql(sql).arrow()
    return time.process_time() - began


def run(folder: Path, tables: dict[str, str], slots: int, repeats: int) -> list[Row]:
    """Predict every query, run it, and predict it again."""
    catalog = open_catalog(folder, tables)
    cold, warm = Predictor(catalog, machine_rates()), Predictor(catalog)
    queries = {f"q{number:02}": tpch.query(number) for number in range(1, 23)} | OTHERS
    rows = []
    with queryard.connect(folder, tables=tables, slots=slots) as session:
        session.sql("SELECT 42").arrow()
        for name, sql in queries.items():
            asked = QueryRequest(sql, classify(sql), (), "native")
            first = cold.first(asked)
            began = time.thread_time()
            plan = cold.refine(asked) or first
            plan_ms = (time.thread_time() - began) * 1e3
            times = [measured(session, sql) for _ in range(repeats + 1)]
            warm.learn(asked, times[0])
            expected = (first.work_s, plan.work_s, warm.first(asked).work_s)
            actual_s = max(statistics.median(times[1:]), LEAST_S)
            rows.append(Row(name, actual_s, dict(zip(SHOWN, expected, strict=True)), plan_ms))
            told = "  ".join(
                f"{by} {expected_s:7.3f} ({expected_s / actual_s:4.2f})"
                for by, expected_s in rows[-1].expected_s.items()
            )
            print(f"{name:13} {actual_s:7.3f} s  {told}  planned in {plan_ms:.0f} ms", flush=True)
    cold.close()
    warm.close()
    return rows


def ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda place: values[place])
    found = [0.0] * len(values)
    for rank, place in enumerate(order):
        found[place] = float(rank)
    return found


def summary(title: str, rows: Sequence[Row]) -> None:
    """Rank correlation (Spearman) and factors of error, by how it was predicted."""
    actual = [row.actual_s for row in rows]
    for by in SHOWN:
        expected = [row.expected_s[by] for row in rows]
        misses = [math.log(e / a) for e, a in zip(expected, actual, strict=True)]
        factors = sorted(math.exp(abs(miss)) for miss in misses)
        correlation = statistics.correlation(ranks(expected), ranks(actual))
        print(
            f"{title:7} {by:6} rank correlation {correlation:.3f}, factor of error: "
            f"median {statistics.median(factors):.2f}, "
            f"nine in ten {factors[len(rows) * 9 // 10]:.2f}, "
            f"bias {math.exp(statistics.median(misses)):.2f}"
        )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="research.prediction", description=__doc__)
    parser.add_argument("--data", type=Path, help="TPC-H Parquet, made if not given")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--slots", type=int, default=2)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.data or Path(temporary) / "tpch"
        if given.data is None:
            tpch.generate(folder, given.scale)
        csv = Path(temporary) / "orders.csv"
        duckdb.sql(f"COPY (FROM '{folder / 'orders.parquet'}') TO '{csv}'")
        began = time.process_time()
        rates = machine_rates()
        print(f"calibrated in {time.process_time() - began:.2f} s of CPU: {rates}")
        rows = run(folder, {"orders_csv": str(csv)}, given.slots, given.repeats)
    summary("TPC-H", [row for row in rows if row.name not in OTHERS])
    summary("others", [row for row in rows if row.name in OTHERS])


if __name__ == "__main__":
    main()
