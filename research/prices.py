"""The prices of `queryard.estimate.prices`, fitted to operators whose rows and times were counted.

Run by itself: `python -m research.prices FILE.json …` on files of `python -m bench.foreseen FAMILY
--profile --json FILE`, which have DuckDB's profile of every query. Amounts are those that
`queryard.engine.plans.features` finds with the rows as counted, so that errors of sizes are not
fitted.

Operators of one class are fitted together: non-negative least squares of the relative error, where
an error counts by the mean of what was expected and what was taken, so that neither too much nor
too little is preferred. A profile has times of the clock; those of a query are scaled down if they
add up to more than the CPU time of its usual run. What is left of a query's CPU time beside fixed
costs is the price of handing over rows.

The prices that ship were fitted to `tpch`, `ssb`, `db_benchmark` and `drawn:0`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.families import family
from queryard.engine.plans.features import PlanAmounts
from queryard.engine.plans.tables import TableFacts
from queryard.engine.plans.tree import PlanNames, operator_name, root_of
from queryard.engine.syntax.aliases import aliases
from queryard.engine.syntax.classify import classify
from queryard.estimate.prices import OPERATOR_S, PRICES, START_S, Rates
from queryard.sql.catalog import open_catalog
from queryard.sql.statistics.quick import quick_statistics

# Classes are fitted one after another; an amount has the price of the first that has it.
CLASSES: Mapping[str, str] = {
    "FILTER": "compute",
    "PROJECTION": "compute",
    "READ_PARQUET": "scan",
    "HASH_JOIN": "join",
    "HASH_GROUP_BY": "group",
    "PERFECT_HASH_GROUP_BY": "group",
    "UNGROUPED_AGGREGATE": "group",
    "ORDER_BY": "order",
    "WINDOW": "order",
    "TOP_N": "order",
}
ORDER = ("compute", "scan", "join", "group", "order", "other")
# The time of a common table is that of the operators that read it, once more.
TWICE = ("CTE",)
HANDED_OVER = ("output_values", "output_texts")
# Below these seconds, errors of operators and of queries do not matter.
OPERATOR_FLOOR_S, QUERY_FLOOR_S = 0.0015, 0.002
RIDGE = 3e-4
ROUNDS, STEPS = 40, 400
# What these families hardly have keeps its price, from single operators on made-up rows.
# Fixed costs (`chunks`, `START_S`, `OPERATOR_S`) were fitted on a quiet machine, to tpch, ssb and
# db_benchmark: a busy one hides them.
KEPT = ("chunks", "text_bytes", "made_rows", "pairs", "paired_rows")

Amounts = dict[str, float]


class Counted(NamedTuple):
    """One operator: its class, what it did, and the seconds it took."""

    kind: str
    amounts: Amounts
    seconds: float


class Ran(NamedTuple):
    """One query: the CPU seconds of its usual run, its operators, and all amounts."""

    work_s: float
    operators: list[Counted]
    amounts: Amounts


def read(path: Path) -> Iterator[Ran]:
    """The queries of a file of `bench.foreseen`."""
    found = json.loads(path.read_text())
    chosen = family(found["family"])
    catalog = open_catalog(None, chosen.places(Path(found["data"])))
    for key in catalog.tables:
        quick_statistics(catalog, key)
    facts = {
        key: TableFacts(table, catalog.statistics(key)) for key, table in catalog.tables.items()
    }
    for row in found["queries"]:
        statement = classify(row["sql"])[0]
        names = PlanNames(catalog, statement.names)
        used = {key: facts[key] for key in names.columns}
        root = root_of(row["profile"])
        assert root is not None
        walk = PlanAmounts(names, used, None, aliases(row["sql"]), counted=True)
        features = walk.of(root)
        yield ran(row["work_s"], root, features)


def ran(work_s: float, root: Mapping[str, Any], features: Any) -> Ran:
    """A query's operators, with their times made to fit its CPU time."""
    nodes = list(_preorder(root))
    total = sum(node.get("timing", 0.0) for node in nodes if operator_name(node) not in TWICE)
    scale = min(1.0, 0.97 * work_s / total) if total > 0 else 1.0
    operators = [
        Counted(
            CLASSES.get(_name(node), "other"),
            {name: value for name, value in one.amounts.items() if name not in HANDED_OVER},
            scale * node.get("timing", 0.0),
        )
        for node, one in zip(nodes, features.operators, strict=True)
        if operator_name(node) not in TWICE
    ]
    return Ran(work_s, operators, dict(features.amounts))


def fitted(queries: Sequence[Ran]) -> Amounts:
    """Seconds per unit of each amount."""
    prices: Amounts = {}
    for kind in ORDER:
        rows = []
        for query in queries:
            for one in query.operators:
                if one.kind != kind:
                    continue
                known = sum(
                    prices[name] * value for name, value in one.amounts.items() if name in prices
                )
                if known <= 0.5 * one.seconds or known == 0:
                    new = {name: value for name, value in one.amounts.items() if name not in prices}
                    rows.append(({**new, "operators": 1.0}, max(0.0, one.seconds - known)))
        if rows:
            prices |= _least_squares(rows, OPERATOR_FLOOR_S)
        prices.pop("operators", None)
    prices |= _handed_over(queries)
    # Least squares favour too little: as many queries shall take more than expected as take less.
    scale = math.exp(
        statistics.median(math.log(one.work_s / _expected_s(one, prices)) for one in queries)
    )
    return {name: scale * seconds for name, seconds in prices.items()}


def _expected_s(query: Ran, prices: Amounts) -> float:
    fixed_s = START_S + OPERATOR_S * len(query.operators)
    amounts = query.amounts.items()
    return fixed_s + sum(prices.get(name, 0.0) * amount for name, amount in amounts)


def _handed_over(queries: Sequence[Ran]) -> Amounts:
    """The price of rows that are handed over: what is left beside operators and fixed costs."""
    rows = []
    for query in queries:
        fixed_s = START_S + OPERATOR_S * len(query.operators)
        fixed_s += PRICES["chunks"].seconds * query.amounts.get("chunks", 0.0)
        left_s = query.work_s - fixed_s - sum(one.seconds for one in query.operators)
        amounts = {name: query.amounts.get(name, 0.0) for name in HANDED_OVER}
        rows.append((amounts, max(0.0, left_s)))
    floors = np.array([QUERY_FLOOR_S + 0.05 * query.work_s for query in queries])
    return _least_squares(rows, floors, by_floor=True)


def _least_squares(
    rows: Sequence[tuple[Amounts, float]], floor: Any, by_floor: bool = False
) -> Amounts:
    names = sorted({name for amounts, _ in rows for name in amounts})
    table = np.array([[amounts.get(name, 0.0) for name in names] for amounts, _ in rows])
    seconds = np.array([taken for _, taken in rows])
    scales = table.max(axis=0)
    scales[scales == 0] = 1.0
    table /= scales
    found = np.zeros(len(names))
    weights = 1.0 / (floor if by_floor else seconds + floor)
    for _ in range(ROUNDS):
        weighted = table * weights[:, None]
        squares = weighted.T @ weighted
        squares += np.diag(RIDGE**2 * np.diag(squares))
        found = _non_negative(squares, weighted.T @ (seconds * weights), found)
        if not by_floor:
            weights = 1.0 / (0.5 * (table @ found + seconds) + floor)
    return {name: float(value) for name, value in zip(names, found / scales, strict=True)}


def _non_negative(squares: Any, products: Any, start: Any) -> Any:
    """Least squares with no negative price, by coordinate descent on the normal equations."""
    found = start.copy()
    for _ in range(STEPS):
        for place in range(len(found)):
            if squares[place, place] > 0:
                slope = products[place] - squares[place] @ found
                found[place] = max(0.0, found[place] + slope / squares[place, place])
    return found


def rates_of(paths: Sequence[Path]) -> Rates:
    """The rates of the machine on which files were made, the mean of all."""
    found = [json.loads(path.read_text())["rates"] for path in paths]
    return Rates(**{kind: statistics.fmean(one[kind] for one in found) for kind in found[0]})


def written(prices: Amounts, rates: Rates) -> str:
    """The lines of `PRICES`, for the reference machine."""
    lines = []
    for name, price in PRICES.items():
        fresh = prices.get(name, 0.0) / float(getattr(rates, price.kind))
        seconds = price.seconds if name in KEPT else fresh
        lines.append(
            f'    "{name}": Price({float(f"{seconds:.3g}"):g}, "{price.kind}", "{price.part}"),'
        )
    return "\n".join(lines)


def _preorder(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("children", []):
        yield from _preorder(child)


def _name(node: Mapping[str, Any]) -> str:
    name = operator_name(node)
    return str(node.get("extra_info", {}).get("Function", name)) if name == "TABLE_SCAN" else name


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m research.prices", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    given = parser.parse_args(arguments)
    queries = [query for path in given.files for query in read(path)]
    print(written(fitted(queries), rates_of(given.files)))


if __name__ == "__main__":
    main()
