"""The shapes of queries: the stages, their dependencies, and the tables they read.

A shape is drawn once for a class of queries, so that queries of one class differ only in size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from queryard.core.model import Operator

SHAPES = ("single", "chain", "tree", "diamond")
MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Stage:
    """A future job: it reads table number `table` of its query, or the output of its upstream."""

    name: str
    operator: Operator
    upstream: tuple[str, ...] = ()
    table: int | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Stages in an order in which they can run, and each table's share of the query's input."""

    name: str
    stages: tuple[Stage, ...]
    shares: tuple[float, ...]


def draw_shape(name: str, rng: Random) -> Shape:
    """A shape of the given name; `mixed` draws the name too.

    >>> [stage.name for stage in draw_shape("diamond", Random(1)).stages]
    ['scan', 'left', 'right', 'join']
    """
    chosen = rng.choice(SHAPES) if name == MIXED else name
    return _DRAWERS[chosen](rng)


def _single(rng: Random) -> Shape:
    operator: Operator = rng.choice(("groupby", "extract"))
    return Shape("single", (Stage("scan", operator, table=0),), (1.0,))


def _chain(rng: Random) -> Shape:
    """Two to five stages in a row; the first two read tables, so that most maps come early."""
    scans = (
        Stage("s1", "join", table=0),
        Stage("s2", rng.choice(("join", "groupby")), ("s1",), table=1),
    )
    operators: tuple[Operator, ...] = ("join", "groupby", "extract")
    rest = tuple(
        Stage(f"s{number}", rng.choice(operators), (f"s{number - 1}",))
        for number in range(3, rng.randint(2, 5) + 1)
    )
    return Shape("chain", scans + rest, (0.8, 0.2))


def _tree(rng: Random) -> Shape:
    """Three scans joined two by two, then grouped.

    In half of the trees the first two scans read one table (as TPC-H 17 and 21 read lineitem
    twice), which a job order that looks at shared inputs can use.
    """
    same = rng.random() < 0.5
    stages = (
        Stage("a", "extract", table=0),
        Stage("b", "groupby", table=0 if same else 1),
        Stage("c", "extract", table=1 if same else 2),
        Stage("ab", "join", ("a", "b")),
        Stage("abc", "join", ("ab", "c")),
        Stage("sum", "groupby", ("abc",)),
    )
    # A table read twice counts twice, so that the query's input is as large either way.
    return Shape("tree", stages, (0.4, 0.2) if same else (0.5, 0.3, 0.2))


def _diamond(rng: Random) -> Shape:
    stages = (
        Stage("scan", "extract", table=0),
        Stage("left", rng.choice(("groupby", "extract")), ("scan",)),
        Stage("right", "groupby", ("scan",)),
        Stage("join", "join", ("left", "right")),
    )
    return Shape("diamond", stages, (1.0,))


_DRAWERS: Mapping[str, Callable[[Random], Shape]] = {
    "single": _single,
    "chain": _chain,
    "tree": _tree,
    "diamond": _diamond,
}
