"""What is asked: TPC-H at several scales, and a few queries that take up to a minute alone.

Sizes are for two cores. A factor `size` shrinks the data of all alike, and with it their work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from random import Random

from queryard.core.model import Tenant
from queryard.load import LoadSpec
from queryard.workload.load import Amount, Arrivals, Asker, Data, Template
from queryard.workload.load.templates import tpch_templates

from .setting import schema

SMALL, MIDDLE, LARGE = 0.1, 1.0, 5.0
# Those of the 22 that take longest.
LONG = ("q01", "q03", "q05", "q07", "q09", "q13", "q18", "q21")


def _pairs(place: str, draw: Random) -> str:
    """Every line beside those of the same supplier in some weeks: a join with many matches."""
    begin = date(1992, 6, 1) + timedelta(days=draw.randrange(1500))
    end = begin + timedelta(days=PAIR_DAYS)
    return f"""
        SELECT a.l_returnflag, b.l_linestatus, count(*) AS pairs,
               sum(a.l_extendedprice * b.l_discount) AS amount
        FROM {place}.lineitem AS a JOIN {place}.lineitem AS b ON a.l_suppkey = b.l_suppkey
        WHERE b.l_shipdate >= DATE '{begin}' AND b.l_shipdate < DATE '{end}'
        GROUP BY ALL ORDER BY ALL"""


def _windows(place: str, draw: Random) -> str:
    """The middle price of the last lines of a part, for every line: a window that sorts all."""
    quarter = draw.choice((0.2, 0.25, 0.3, 0.35))
    return f"""
        SELECT l_returnflag, count(*) AS lines, avg(l_extendedprice - usual) AS above
        FROM (SELECT l_returnflag, l_extendedprice,
                     quantile_cont(l_extendedprice, {quarter}) OVER (
                         PARTITION BY l_partkey ORDER BY l_shipdate, l_orderkey, l_linenumber
                         ROWS BETWEEN {WINDOW_ROWS} PRECEDING AND CURRENT ROW) AS usual
              FROM {place}.lineitem)
        WHERE l_extendedprice > usual
        GROUP BY ALL ORDER BY ALL"""


def _texts(place: str, draw: Random) -> str:
    """How alike the comments of orders and of their lines are: much work on every row."""
    begin = date(1992, 6, 1) + timedelta(days=draw.randrange(365))
    end = begin + timedelta(days=TEXT_DAYS)
    return f"""
        SELECT o_orderpriority, count(*) AS lines,
               avg(levenshtein(o_comment, l_comment)) AS apart
        FROM {place}.orders JOIN {place}.lineitem ON o_orderkey = l_orderkey
        WHERE o_orderdate >= DATE '{begin}' AND o_orderdate < DATE '{end}'
        GROUP BY ALL ORDER BY ALL"""


PAIR_DAYS, WINDOW_ROWS, TEXT_DAYS = 230, 40, 2000
HEAVY: Mapping[str, Callable[[str, Random], str]] = {
    "pairs": _pairs,
    "windows": _windows,
    "texts": _texts,
}


def scales(size: float = 1.0) -> tuple[float, float, float]:
    """The scales of all the data."""
    small, middle, large = (round(scale * size, 6) for scale in (SMALL, MIDDLE, LARGE))
    return small, middle, large


def templates(size: float = 1.0) -> dict[str, Template]:
    """All that can be asked: `sf01.q01` to `sf5.q22`, and `sf5.pairs` and the other long ones."""
    found = tpch_templates({schema(scale): scale for scale in scales(size)})
    place = schema(scales(size)[2])
    for name, text in HEAVY.items():

        def draw(rng: Random, text: Callable[[str, Random], str] = text) -> str:
            return text(place, rng)

        found[f"{place}.{name}"] = Template(f"{place}.{name}", draw)
    return found


def share_out(weights: Mapping[tuple[str, tuple[str, ...]], float]) -> dict[str, float]:
    """A mix: the weight of a schema and its queries, divided evenly among these.

    >>> share_out({("sf1", ("q01", "q02")): 0.5})
    {'sf1.q01': 0.25, 'sf1.q02': 0.25}
    """
    return {
        f"{place}.{name}": weight / len(names)
        for (place, names), weight in weights.items()
        for name in names
    }


def long_tailed(size: float = 1.0) -> dict[str, float]:
    """85 % small (to half a second), 12 % of some seconds, 3 % of up to a minute."""
    small, middle, large = map(schema, scales(size))
    every = tuple(f"q{number:02d}" for number in range(1, 23))
    return share_out(
        {
            (small, every): 0.55,
            (middle, every): 0.30,
            (large, LONG): 0.12,
            (large, tuple(HEAVY)): 0.03,
        }
    )


def short_tailed(size: float = 1.0) -> dict[str, float]:
    """The same without the 3 %."""
    heavy = {f"{schema(scales(size)[2])}.{name}" for name in HEAVY}
    return {name: weight for name, weight in long_tailed(size).items() if name not in heavy}


def spec(
    name: str,
    mix: Mapping[str, float],
    count: int,
    size: float = 1.0,
    load: float = 0.8,
    deadlines: float = 0.0,
) -> LoadSpec:
    """A spec of one tenant with a Poisson process at a load."""
    return LoadSpec(
        name=name,
        data=Data({schema(scale): scale for scale in scales(size)}),
        templates=templates(size),
        askers=(Asker(Tenant("default"), mix, deadlines=deadlines),),
        arrivals=Arrivals("poisson", load=load),
        amount=Amount(queries=count),
    )
