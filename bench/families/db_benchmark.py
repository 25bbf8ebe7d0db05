"""The questions of h2o's db-benchmark (github.com/h2oai/db-benchmark): group-by and join.

The tables are `G1_N_1e2_0_0` and `J1_N_NA_0_0`, drawn from the same distributions, with N = three
million rows at size 1; `small` has N/1e5 rows instead of N/1e6. The benchmark makes a table of
every answer and then sums it; here an answer is fetched, and each join is also asked for its sums.
"""

from __future__ import annotations

from pathlib import Path

from .making import claim, make_tables, size_of
from .model import Family, Progress, Query

ROWS = 3_000_000
# Values of a column of few: `K` in the benchmark.
FEW = 100
NAMES = ("g1", "x", "small", "medium", "big")

GROUP_BY = (
    "SELECT id1, sum(v1) AS v1 FROM g1 GROUP BY id1",
    "SELECT id1, id2, sum(v1) AS v1 FROM g1 GROUP BY id1, id2",
    "SELECT id3, sum(v1) AS v1, mean(v3) AS v3 FROM g1 GROUP BY id3",
    "SELECT id4, mean(v1) AS v1, mean(v2) AS v2, mean(v3) AS v3 FROM g1 GROUP BY id4",
    "SELECT id6, sum(v1) AS v1, sum(v2) AS v2, sum(v3) AS v3 FROM g1 GROUP BY id6",
    "SELECT id4, id5, quantile_cont(v3, 0.5) AS median_v3, stddev(v3) AS sd_v3 FROM g1 "
    "GROUP BY id4, id5",
    "SELECT id3, max(v1) - min(v2) AS range_v1_v2 FROM g1 GROUP BY id3",
    "SELECT id6, v3 AS largest2_v3 FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 "
    "ORDER BY v3 DESC) AS order_v3 FROM g1 WHERE v3 IS NOT NULL) WHERE order_v3 <= 2",
    "SELECT id2, id4, pow(corr(v1, v2), 2) AS r2 FROM g1 GROUP BY id2, id4",
    "SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS v3, count(*) AS count FROM g1 "
    "GROUP BY id1, id2, id3, id4, id5, id6",
)
JOIN = (
    ("x.*, small.id4 AS small_id4, v2", "x JOIN small USING (id1)"),
    (
        "x.*, medium.id1 AS medium_id1, medium.id4 AS medium_id4, medium.id5 AS medium_id5, v2",
        "x JOIN medium USING (id2)",
    ),
    (
        "x.*, medium.id1 AS medium_id1, medium.id4 AS medium_id4, medium.id5 AS medium_id5, v2",
        "x LEFT JOIN medium USING (id2)",
    ),
    (
        "x.*, medium.id1 AS medium_id1, medium.id2 AS medium_id2, medium.id4 AS medium_id4, v2",
        "x JOIN medium USING (id5)",
    ),
    (
        "x.*, big.id1 AS big_id1, big.id2 AS big_id2, big.id4 AS big_id4, big.id5 AS big_id5, "
        "big.id6 AS big_id6, v2",
        "x JOIN big USING (id3)",
    ),
)


def queries(folder: Path) -> tuple[Query, ...]:
    """Ten group-bys, five joins, and the sums of the five."""
    size_of(folder, "db_benchmark")
    found = [(f"groupby{n:02}", sql) for n, sql in enumerate(GROUP_BY, 1)]
    for n, (columns, tables) in enumerate(JOIN, 1):
        found.append((f"join{n}", f"SELECT {columns} FROM {tables}"))
        found.append((f"join{n}-sums", f"SELECT sum(v1), sum(v2), count(*) FROM {tables}"))
    return tuple(Query(name, sql, name) for name, sql in found)


def _key(salt: int, values: int) -> str:
    """A key of 1.1 times so many values, so that one in ten has no partner in another table."""
    return f"floor(1 + draw(i, {salt}) * {values} * 1.1)::INTEGER"


def tables(size: float) -> dict[str, str]:
    """The query that makes each table."""
    rows = max(1_000, round(ROWS * size))
    many, some, few = max(1, rows // FEW), max(10, rows // 1_000), max(10, rows // 100_000)
    names = ", ".join(f"'id' || id{n} AS id{n + 3}" for n in (1, 2, 3))
    dim = "(draw(i, {}) * 100)::DECIMAL(9, 6)::DOUBLE"
    return {
        "g1": f"""
SELECT format('id{{:03d}}', k1) AS id1, format('id{{:03d}}', k2) AS id2,
  format('id{{:010d}}', k3) AS id3, k4 AS id4, k5 AS id5, k6 AS id6,
  floor(1 + draw(i, 6) * 5)::INTEGER AS v1, floor(1 + draw(i, 7) * 15)::INTEGER AS v2,
  round(draw(i, 8) * 100, 6) AS v3
FROM (SELECT range AS i, {
            ", ".join(
                f"floor(1 + draw(range, {n}) * {many if n in (2, 5) else FEW})::INTEGER AS k{n + 1}"
                for n in range(6)
            )
        } FROM range({rows}))""",
        "x": f"""
SELECT id1, id2, id3, {names}, v1 FROM (
  SELECT {_key(10, few)} AS id1, {_key(11, some)} AS id2, {_key(12, rows)} AS id3,
    {dim.format(13)} AS v1 FROM (SELECT range AS i FROM range({rows})))""",
        "small": f"""
SELECT i + 1 AS id1, 'id' || (i + 1) AS id4, {dim.format(14)} AS v2
FROM (SELECT range::INTEGER AS i FROM range({few}))""",
        "medium": f"""
SELECT id1, id2, 'id' || id1 AS id4, 'id' || id2 AS id5, v2 FROM (
  SELECT {_key(15, few)} AS id1, i + 1 AS id2,
    {dim.format(16)} AS v2 FROM (SELECT range::INTEGER AS i FROM range({some})))""",
        "big": f"""
SELECT id1, id2, id3, {names}, v2 FROM (
  SELECT {_key(17, few)} AS id1, {_key(18, some)} AS id2, i + 1 AS id3,
    {dim.format(19)} AS v2 FROM (SELECT range::INTEGER AS i FROM range({rows})))
ORDER BY hash(id3)""",
    }


def make(folder: Path, size: float, progress: Progress) -> None:
    """Make the five tables."""
    claim(folder, "db_benchmark", size)
    make_tables(folder, tables(size), progress)


DB_BENCHMARK = Family("db_benchmark", "development", NAMES, make, queries)
