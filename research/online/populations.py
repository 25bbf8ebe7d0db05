"""Tables to sample from, and the partial rows that each of their files gives.

A population is a SELECT of `place` (the order in which rows are stored), `x` (a value), `y` (a part
of it, for ratios) and `kept` (whether the row passes the filter).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from queryard.estimate.online import FileQuantiles, shares_around

FILES = 100
SHARES = (0.5, 0.9)
KINDS: Mapping[str, str] = {
    "shuffled files": f"CAST(hash(place * 2654435761 + 97) % {FILES} AS BIGINT)",
    "blocks": f"place * {FILES} // total",
    # The first rows of the table lie in blocks a third as large as the last ones.
    "unequal blocks": (
        f"CAST(floor({FILES} * (3 * sqrt(0.0625 + 0.5 * place / total) - 0.75) / 1.5) AS BIGINT)"
    ),
}


@dataclass(frozen=True, slots=True)
class Population:
    """A table and a filter; `rows` of it are made unless it reads files.

    Thresholds of the estimators were chosen with the others in view, not with those `held_out`.
    """

    name: str
    what: str
    sql: str
    held_out: bool = False


def _made(x: str, kept: str) -> str:
    uniform = "(hash(i * 7 + 1) % 1000003 + 0.5) / 1000003"
    other = "(hash(i * 11 + 5) % 1000003 + 0.5) / 1000003"
    normal = f"(sqrt(-2 * ln({uniform})) * cos(2 * pi() * {other}))"
    third = "((hash(i * 13 + 3) % 1000003 + 0.5) / 1000003)"
    value = x.format(normal=normal, uniform=f"({uniform})", place="(i / {rows})")
    passes = kept.format(third=third, place="(i / {rows})")
    part = f"CASE WHEN hash(i * 17 + 9) % 5 = 0 THEN {value} ELSE 0 END"
    return (
        f"SELECT i AS place, {value} AS x, {part} AS y, {passes} AS kept FROM range({{rows}}) t(i)"
    )


POPULATIONS: tuple[Population, ...] = (
    Population(
        "TPC-H, a year",
        "lineitem, a year of ship dates: 15 % of the rows",
        "SELECT row_number() OVER () - 1 AS place, "
        "CAST(l_extendedprice * (1 - l_discount) AS DOUBLE) AS x, "
        "CASE WHEN l_shipmode = 'AIR' THEN x ELSE 0 END AS y, "
        "year(l_shipdate) = 1994 AS kept FROM {lineitem}",
    ),
    Population(
        "TPC-H, quantities",
        "lineitem, whole numbers from 1 to 50, of returned rows: 25 %",
        "SELECT row_number() OVER () - 1 AS place, CAST(l_quantity AS DOUBLE) AS x, "
        "CASE WHEN l_linestatus = 'F' AND l_tax > 0.04 THEN x ELSE 0 END AS y, "
        "l_returnflag = 'R' AS kept FROM {lineitem}",
    ),
    Population(
        "TPC-H, by ship date",
        "lineitem sorted by ship date: 6 of 7 rows",
        "SELECT row_number() OVER (ORDER BY l_shipdate, l_orderkey, l_linenumber) - 1 AS place, "
        "CAST(l_extendedprice AS DOUBLE) AS x, "
        "CASE WHEN l_returnflag = 'N' THEN x ELSE 0 END AS y, "
        "l_shipmode <> 'AIR' AS kept FROM {lineitem}",
    ),
    Population("normal", "normal values, 10 % pass", _made("100 + 20 * {normal}", "{third} < 0.1")),
    Population(
        "skewed", "lognormal, σ = 1.5, 10 % pass", _made("exp(1.5 * {normal})", "{third} < 0.1")
    ),
    Population("rare", "lognormal, σ = 1, 2 ‰ pass", _made("exp({normal})", "{third} < 0.002")),
    Population(
        "Pareto 1.5",
        "index 1.5: no variance; 10 % pass",
        _made("power({uniform}, -1 / 1.5)", "{third} < 0.1"),
    ),
    Population(
        "ordered",
        "values drift with the place, 10 % pass",
        _made("50 + 100 * {place} + 20 * {normal}", "{third} < 0.1"),
    ),
    Population(
        "ordered window",
        "only a window of 5 % of the places passes",
        _made("100 + 20 * {normal}", "{place} >= 0.4 AND {place} < 0.45"),
    ),
    Population(
        "exponential",
        "exponential values, 5 % pass",
        _made("-ln({uniform})", "{third} < 0.05"),
        held_out=True,
    ),
    Population(
        "less skewed",
        "lognormal, σ = 1, 20 % pass",
        _made("exp({normal})", "{third} < 0.2"),
        held_out=True,
    ),
    Population(
        "Pareto 2.5",
        "index 2.5: a variance, no more; 20 % pass",
        _made("power({uniform}, -1 / 2.5)", "{third} < 0.2"),
        held_out=True,
    ),
    Population(
        "Pareto 1.2",
        "index 1.2: no variance; 30 % pass",
        _made("power({uniform}, -1 / 1.2)", "{third} < 0.3"),
        held_out=True,
    ),
    Population(
        "very skewed",
        "lognormal, σ = 2, 30 % pass",
        _made("exp(2 * {normal})", "{third} < 0.3"),
        held_out=True,
    ),
    Population(
        "TPC-H, delays",
        "lineitem, days from commitment to receipt and 200 more, of two ship modes in 1995: 4 %",
        "SELECT row_number() OVER () - 1 AS place, "
        "CAST(l_receiptdate - l_commitdate AS DOUBLE) + 200 AS x, "
        "CASE WHEN l_receiptdate > l_commitdate THEN x ELSE 0 END AS y, "
        "l_shipmode IN ('MAIL', 'SHIP') AND year(l_receiptdate) = 1995 AS kept FROM {lineitem}",
        held_out=True,
    ),
)


@dataclass(frozen=True, slots=True)
class FileSums:
    """The partial rows of a file: rows, rows that passed, sums of x, of squares and of y.

    x and its squares are taken around a common centre, as in the statements of an online answer.
    The smallest and largest values tell of heavy tails.
    """

    rows: float
    passed: float
    x: float
    squares: float
    y: float
    low: float
    high: float
    high_y: float
    mean: float
    quantiles: tuple[FileQuantiles, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """All partial rows of a population in one kind of files, and the true answers."""

    centre: float
    files: tuple[FileSums, ...]
    quantiles: tuple[float, ...]


def stored(population: Population, kind: str, rows: int, lineitem: Path) -> Stored:
    """Compute the partial rows of every file."""
    shares = [f"[{', '.join(map(str, shares_around(share)))}]" for share in SHARES]
    with duckdb.connect(config={"threads": 1}) as connection:
        source = population.sql.format(rows=rows, lineitem=f"read_parquet('{lineitem}')")
        connection.execute(
            f"CREATE TABLE data AS SELECT *, count(*) OVER () AS total FROM ({source})"
        )
        centre, *true = connection.sql(
            "SELECT avg(x), "
            + ", ".join(f"quantile_cont(x, {s})" for s in SHARES)
            + " FROM data WHERE kept"
        ).fetchall()[0]
        lists = ", ".join(f"quantile_disc(x, {each}) FILTER (WHERE kept)" for each in shares)
        found = connection.execute(
            f"SELECT {KINDS[kind]} AS file, count(*), count(*) FILTER (WHERE kept), "
            f"coalesce(sum(x - {centre}) FILTER (WHERE kept), 0), "
            f"coalesce(sum((x - {centre}) ** 2) FILTER (WHERE kept), 0), "
            f"coalesce(sum(y) FILTER (WHERE kept), 0), "
            "min(x) FILTER (WHERE kept), max(x) FILTER (WHERE kept), max(y) FILTER (WHERE kept), "
            "avg(x) FILTER (WHERE kept), "
            f"{lists} FROM data GROUP BY file ORDER BY file"
        ).fetchall()
    files = tuple(
        FileSums(
            float(r),
            float(n),
            x,
            squares,
            y,
            low,
            high,
            high_y,
            mean,
            tuple(FileQuantiles(n, values or ()) for values in lists_),
        )
        for _, r, n, x, squares, y, low, high, high_y, mean, *lists_ in found
    )
    return Stored(centre, files, tuple(true))
