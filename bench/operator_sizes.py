"""Whose sizes of operators are better, ours or DuckDB's, and whether it pays to learn which.

`python -m bench.operator_sizes FAMILY=DIR … [--orders 10]`: each query runs once on plain DuckDB,
with its rows counted, and its plan is walked as for a prediction. Operators count that change the
number of rows: scans with filters, filters, joins, groups. The q-error of a size is the larger of
expected over real and real over expected.

*learnt* takes, of the operators of one class over the same tables, the side that was off less in
the queries before, ours until there was one; the queries come in several random orders. *the
better* of both is what can be gained at most by choosing.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import duckdb
from rich.progress import track

from queryard.core.errors import QueryardError
from queryard.engine.planning import Planner
from queryard.engine.plans.tree import PlanNames, PlanOperator, number, read_plan, root_of, texts
from queryard.engine.syntax.classify import classify
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.statistics.quick import quick_statistics

from .accuracy import share_below
from .families import Family, FamilyError, family

# Sizes that differ by less are the same.
ALIKE = 1.1
CLASSES = ("scan", "filter", "join", "group")


class Sized(NamedTuple):
    """An operator: its class and its tables, what both expected, and the rows that came."""

    kind: str
    tables: frozenset[str]
    ours: float
    theirs: float
    real: float

    @property
    def error_of_ours(self) -> float:
        """The logarithm of the q-error of our size."""
        return abs(math.log(self.ours / self.real))

    @property
    def error_of_theirs(self) -> float:
        """The logarithm of the q-error of DuckDB's."""
        return abs(math.log(self.theirs / self.real))


def sized_queries(chosen: Family, folder: Path) -> list[list[Sized]]:
    """The operators of each query of a family."""
    catalog = open_catalog(None, chosen.places(folder))
    for key in catalog.tables:
        quick_statistics(catalog, key)
    peer = duckdb.connect(config={"threads": 1})
    peer.execute("SET enable_progress_bar = false")
    for table in catalog.tables.values():
        peer.execute(f'CREATE VIEW "{table.name}" AS FROM {table.relation}')
    planner = Planner(catalog)
    found = []
    for query in track(chosen.queries(folder), chosen.name, transient=True):
        rows = peer.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query.sql}").fetchall()
        root = root_of(json.loads(rows[0][1]))
        if root is not None:
            found.append(list(_sized(catalog, planner, query.sql, root)))
    peer.close()
    planner.close()
    return found


def _sized(
    catalog: Catalog, planner: Planner, sql: str, root: Mapping[str, Any]
) -> Iterator[Sized]:
    statement = classify(sql)[0]
    features = planner.amounts(statement, root)
    tree = read_plan(root, PlanNames(catalog, statement.names))
    walk = zip(_preorder(root), _operators(tree), features.operators, strict=True)
    for node, operator, ours in walk:
        info = node.get("extra_info") or {}
        kind, theirs = _class(operator, info), number(info.get("Estimated Cardinality"))
        if kind is not None and theirs is not None and operator.rows is not None:
            real = max(1.0, operator.rows)
            yield Sized(kind, _tables(operator), max(1.0, ours.rows), max(1.0, theirs), real)


def _class(operator: PlanOperator, info: Mapping[str, Any]) -> str | None:
    if operator.table and not operator.inputs:
        return "scan" if texts(info.get("Filters")) else None
    if operator.name == "FILTER":
        return "filter"
    if "JOIN" in operator.name:
        return "join"
    return "group" if operator.name.endswith(("GROUP_BY", "DISTINCT")) else None


def _preorder(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("children", []):
        yield from _preorder(child)


def _operators(operator: PlanOperator) -> Iterator[PlanOperator]:
    yield operator
    for below in operator.inputs:
        yield from _operators(below)


def _tables(operator: PlanOperator) -> frozenset[str]:
    return frozenset(one.table for one in _operators(operator) if one.table)


# --- choosing ------------------------------------------------------------------------------------


def learnt_errors(queries: Sequence[Sequence[Sized]], seed: int) -> list[tuple[str, float]]:
    """Class and error of each operator, if the side is taken that was off less before.

    >>> both = [[Sized("scan", frozenset("t"), 10.0, 1.0, 1.0)]] * 3
    >>> [round(math.exp(error)) for _, error in learnt_errors(both, 0)]
    [10, 1, 1]
    """
    seen: dict[tuple[str, frozenset[str]], list[float]] = {}
    found = []
    for query in Random(seed).sample(list(queries), len(queries)):
        for one in query:
            past = seen.get((one.kind, one.tables), [0.0])
            ours = statistics.fmean(past) <= 0
            found.append((one.kind, one.error_of_ours if ours else one.error_of_theirs))
        for one in query:
            gain = one.error_of_ours - one.error_of_theirs
            seen.setdefault((one.kind, one.tables), []).append(gain)
    return found


def report(name: str, queries: Sequence[Sequence[Sized]], orders: int) -> Iterator[str]:
    """A line per class of operators, for each way to take a size."""
    operators = [one for query in queries for one in query]
    learnt = [pair for seed in range(orders) for pair in learnt_errors(queries, seed)]
    ways: Mapping[str, Callable[[Sized], float]] = {
        "ours": lambda one: one.error_of_ours,
        "DuckDB's": lambda one: one.error_of_theirs,
        "the better": lambda one: min(one.error_of_ours, one.error_of_theirs),
    }
    for kind in ("all", *CLASSES):
        mine = [one for one in operators if kind in ("all", one.kind)]
        if not mine:
            continue
        differ = sum(max(o.ours / o.theirs, o.theirs / o.ours) > ALIKE for o in mine)
        told = [f"{way} {_told([error(one) for one in mine])}" for way, error in ways.items()]
        told.insert(2, f"learnt {_told([e for k, e in learnt if kind in ('all', k)])}")
        yield f"{name:9} {kind:6} {len(mine):4} ({differ} differ): {'; '.join(told)}"


def _told(errors: Sequence[float]) -> str:
    """The median, the 90th percentile, and the geometric mean."""
    middle, ninth = statistics.median(errors), share_below(errors, 0.9)
    return " ".join(f"{math.exp(one):.2f}" for one in (middle, ninth, statistics.fmean(errors)))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.operator_sizes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("families", nargs="+", metavar="FAMILY=DIR")
    parser.add_argument("--orders", type=int, default=10, help="random orders of the queries")
    given = parser.parse_args(arguments)
    if given.orders < 1:
        parser.error("--orders must be at least 1")
    print("q-errors: median, 90th percentile, geometric mean")
    try:
        for asked in given.families:
            name, _, folder = asked.partition("=")
            chosen = family(name)
            if chosen.purpose == "reporting":
                raise FamilyError(f"{name}: is for reporting, and nothing is chosen by it")
            for line in report(name, sized_queries(chosen, Path(folder)), given.orders):
                print(line, flush=True)
    except QueryardError as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
