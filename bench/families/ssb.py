"""The Star Schema Benchmark over data of TPC-H: 13 queries in four flights, and variants.

`lineorder` is `lineitem` joined with `orders` and `partsupp`, as O'Neil et al. derive it (Star
Schema Benchmark, revision 3, 2009). Deviations: customers, suppliers and parts are as many as in
TPC-H, `dates` is called so because `date` is a type, and a city and the last two digits of a brand
come from a hash of the key. Size 1 is TPC-H at scale 1.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from queryard.workload import tpch

from .making import claim, make_tables, missing, size_of
from .model import Family, Progress, Query

_PLACED = """
  upper(n_name) AS {p}_nation, upper(r_name) AS {p}_region,
  rpad(substr(upper(n_name), 1, 9), 9, ' ') || floor(draw({p}_{key}, 1) * 10)::INTEGER AS {p}_city
"""

TABLES = {
    "dates": """
SELECT strftime(d, '%Y%m%d')::INTEGER AS d_datekey, strftime(d, '%B %-d, %Y') AS d_date,
  dayname(d) AS d_dayofweek, monthname(d) AS d_month, year(d)::INTEGER AS d_year,
  (year(d) * 100 + month(d))::INTEGER AS d_yearmonthnum, strftime(d, '%b%Y') AS d_yearmonth,
  dayofweek(d)::INTEGER + 1 AS d_daynuminweek, day(d)::INTEGER AS d_daynuminmonth,
  dayofyear(d)::INTEGER AS d_daynuminyear, month(d)::INTEGER AS d_monthnuminyear,
  ((dayofyear(d) - 1) // 7 + 1)::INTEGER AS d_weeknuminyear,
  CASE WHEN month(d) = 12 THEN 'Christmas' WHEN month(d) >= 9 THEN 'Fall'
    WHEN month(d) >= 6 THEN 'Summer' WHEN month(d) >= 3 THEN 'Spring' ELSE 'Winter' END
    AS d_sellingseason,
  d = last_day(d) AS d_lastdayinmonthfl, dayofweek(d) BETWEEN 1 AND 5 AS d_weekdayfl
FROM (SELECT (DATE '1992-01-01' + range::INTEGER) AS d FROM range(2557))""",
    "customer": f"""
SELECT c_custkey, c_name, c_address, {_PLACED.format(p="c", key="custkey")},
  c_phone, c_mktsegment
FROM tpch_customer JOIN tpch_nation ON c_nationkey = n_nationkey
JOIN tpch_region ON n_regionkey = r_regionkey ORDER BY c_custkey""",
    "supplier": f"""
SELECT s_suppkey, s_name, s_address, {_PLACED.format(p="s", key="suppkey")}, s_phone
FROM tpch_supplier JOIN tpch_nation ON s_nationkey = n_nationkey
JOIN tpch_region ON n_regionkey = r_regionkey ORDER BY s_suppkey""",
    "part": """
SELECT p_partkey, p_name, 'MFGR#' || right(p_mfgr, 1) AS p_mfgr,
  'MFGR#' || right(p_brand, 2) AS p_category,
  'MFGR#' || right(p_brand, 2) || floor(1 + draw(p_partkey, 2) * 40)::INTEGER AS p_brand1,
  split_part(p_name, ' ', 1) AS p_color, p_type, p_size, p_container
FROM tpch_part ORDER BY p_partkey""",
    "lineorder": """
SELECT l_orderkey AS lo_orderkey, l_linenumber AS lo_linenumber, o_custkey AS lo_custkey,
  l_partkey AS lo_partkey, l_suppkey AS lo_suppkey,
  strftime(o_orderdate, '%Y%m%d')::INTEGER AS lo_orderdate, o_orderpriority AS lo_orderpriority,
  o_shippriority AS lo_shippriority, l_quantity::INTEGER AS lo_quantity,
  (l_extendedprice * 100)::INTEGER AS lo_extendedprice,
  (o_totalprice * 100)::INTEGER AS lo_ordtotalprice, (l_discount * 100)::INTEGER AS lo_discount,
  (l_extendedprice * (1 - l_discount) * 100)::INTEGER AS lo_revenue,
  (ps_supplycost * 100)::INTEGER AS lo_supplycost, (l_tax * 100)::INTEGER AS lo_tax,
  strftime(l_commitdate, '%Y%m%d')::INTEGER AS lo_commitdate, l_shipmode AS lo_shipmode
FROM tpch_lineitem JOIN tpch_orders ON l_orderkey = o_orderkey
JOIN tpch_partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
ORDER BY l_orderkey, l_linenumber""",
}

_FLIGHT_1 = """
SELECT sum(lo_extendedprice::BIGINT * lo_discount) AS revenue
FROM lineorder, dates
WHERE lo_orderdate = d_datekey AND {}"""
_FLIGHT_2 = """
SELECT sum(lo_revenue), d_year, p_brand1
FROM lineorder, dates, part, supplier
WHERE lo_orderdate = d_datekey AND lo_partkey = p_partkey AND lo_suppkey = s_suppkey
  AND {}
GROUP BY d_year, p_brand1 ORDER BY d_year, p_brand1"""
_FLIGHT_3 = """
SELECT {by}, d_year, sum(lo_revenue) AS revenue
FROM customer, lineorder, supplier, dates
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_orderdate = d_datekey
  AND {where}
GROUP BY {by}, d_year ORDER BY d_year ASC, revenue DESC"""
_FLIGHT_4 = """
SELECT {by}, sum(lo_revenue - lo_supplycost) AS profit
FROM dates, customer, supplier, part, lineorder
WHERE lo_custkey = c_custkey AND lo_suppkey = s_suppkey AND lo_partkey = p_partkey
  AND lo_orderdate = d_datekey AND {where}
GROUP BY {by} ORDER BY {by}"""


def _third(by: str, where: str) -> str:
    return _FLIGHT_3.format(by=f"c_{by}, s_{by}", where=where)


# By template; the first of each is the benchmark's own, literals included.
_TEMPLATES: dict[str, tuple[str, tuple[tuple[object, ...], ...]]] = {
    "q1.1": (
        _FLIGHT_1.format("d_year = {} AND lo_discount BETWEEN {} AND {} AND lo_quantity < {}"),
        ((1993, 1, 3, 25), (1996, 4, 8, 40)),
    ),
    "q1.2": (
        _FLIGHT_1.format(
            "d_yearmonthnum = {} AND lo_discount BETWEEN {} AND {} "
            "AND lo_quantity BETWEEN {} AND {}"
        ),
        ((199401, 4, 6, 26, 35), (199712, 0, 5, 5, 45)),
    ),
    "q1.3": (
        _FLIGHT_1.format(
            "d_weeknuminyear = {} AND d_year = {} AND lo_discount BETWEEN {} AND {} "
            "AND lo_quantity BETWEEN {} AND {}"
        ),
        ((6, 1994, 5, 7, 26, 35),),
    ),
    "q2.1": (
        _FLIGHT_2.format("p_category = '{}' AND s_region = '{}'"),
        (("MFGR#12", "AMERICA"), ("MFGR#45", "ASIA")),
    ),
    "q2.2": (
        _FLIGHT_2.format("p_brand1 BETWEEN '{}' AND '{}' AND s_region = '{}'"),
        (("MFGR#2221", "MFGR#2228", "ASIA"), ("MFGR#31", "MFGR#35", "EUROPE")),
    ),
    "q2.3": (
        _FLIGHT_2.format("p_brand1 = '{}' AND s_region = '{}'"),
        (("MFGR#2239", "EUROPE"),),
    ),
    "q3.1": (
        _third(
            "nation",
            "c_region = '{}' AND s_region = '{}' AND d_year >= {} AND d_year <= {}",
        ),
        (("ASIA", "ASIA", 1992, 1997), ("EUROPE", "AMERICA", 1995, 1996)),
    ),
    "q3.2": (
        _third("city", "c_nation = '{}' AND s_nation = '{}' AND d_year >= {} AND d_year <= {}"),
        (
            ("UNITED STATES", "UNITED STATES", 1992, 1997),
            ("GERMANY", "FRANCE", 1994, 1998),
        ),
    ),
    "q3.3": (
        _third(
            "city",
            "(c_city = '{0}' OR c_city = '{1}') AND (s_city = '{0}' OR s_city = '{1}') "
            "AND d_year >= {2} AND d_year <= {3}",
        ),
        (("UNITED KI1", "UNITED KI5", 1992, 1997),),
    ),
    "q3.4": (
        _third(
            "city",
            "(c_city = '{0}' OR c_city = '{1}') AND (s_city = '{0}' OR s_city = '{1}') "
            "AND d_yearmonth = '{2}'",
        ),
        (("UNITED KI1", "UNITED KI5", "Dec1997"),),
    ),
    "q4.1": (
        _FLIGHT_4.format(
            by="d_year, c_nation",
            where="c_region = '{}' AND s_region = '{}' AND (p_mfgr = '{}' OR p_mfgr = '{}')",
        ),
        (("AMERICA", "AMERICA", "MFGR#1", "MFGR#2"), ("ASIA", "EUROPE", "MFGR#3", "MFGR#5")),
    ),
    "q4.2": (
        _FLIGHT_4.format(
            by="d_year, s_nation, p_category",
            where="c_region = '{}' AND s_region = '{}' AND (d_year = {} OR d_year = {}) "
            "AND (p_mfgr = '{}' OR p_mfgr = '{}')",
        ),
        (
            ("AMERICA", "AMERICA", 1997, 1998, "MFGR#1", "MFGR#2"),
            ("AFRICA", "AFRICA", 1992, 1993, "MFGR#4", "MFGR#5"),
            ("ASIA", "ASIA", 1995, 1996, "MFGR#2", "MFGR#3"),
        ),
    ),
    "q4.3": (
        _FLIGHT_4.format(
            by="d_year, s_city, p_brand1",
            where="s_nation = '{}' AND (d_year = {} OR d_year = {}) AND p_category = '{}'",
        ),
        (("UNITED STATES", 1997, 1998, "MFGR#14"), ("CHINA", 1993, 1994, "MFGR#22")),
    ),
}


def queries(folder: Path) -> tuple[Query, ...]:
    """The 13 of the benchmark, and variants with other literals."""
    size_of(folder, "ssb")
    return tuple(
        Query(name + "abc"[place] * (place > 0), text.format(*literals).strip(), name)
        for name, (text, drawn) in _TEMPLATES.items()
        for place, literals in enumerate(drawn)
    )


def make(folder: Path, size: float, progress: Progress) -> None:
    """Make TPC-H, derive the five tables, and remove TPC-H again."""
    claim(folder, "ssb", size)
    source = folder / ".queryard" / "tpch"
    if missing(folder, list(TABLES)):
        tpch.generate(source, size, lambda share, line: progress(share * 0.3, line))
    views = "".join(
        f"CREATE VIEW tpch_{table} AS FROM read_parquet('{source / table}.parquet');"
        for table in tpch.TABLES
    )
    make_tables(folder, TABLES, lambda share, line: progress(0.3 + share * 0.7, line), views)
    shutil.rmtree(source, ignore_errors=True)


SSB = Family("ssb", "development", tuple(TABLES), make, queries)
