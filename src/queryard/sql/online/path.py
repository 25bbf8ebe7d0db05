"""Which table occurrence is sampled, and whether each of its rows counts by itself.

From the sampled table upwards there must be conditions, columns and joins that keep its rows,
then one grouping, and above it what is computed of groups. A row then adds to its group whatever
the other rows are, so a random part of the rows tells about all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from queryard.sql.planner.algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
    inputs,
)
from queryard.sql.planner.contract import CatalogLike

from .errors import NotOnline


@dataclass(frozen=True, slots=True)
class SampledPath:
    """From the root down to the sampled table: what is above the grouping, it, what is below."""

    above: tuple[Node, ...]
    aggregate: Aggregate
    below: tuple[Node, ...]
    scan: Scan

    @property
    def nodes(self) -> tuple[Node, ...]:
        return (*self.above, self.aggregate, *self.below, self.scan)


def sampled_path(root: Node, catalog: CatalogLike) -> SampledPath:
    """The way to the largest table, or why the query must run exactly."""
    paths = list(_paths(root, ()))
    if not paths:
        raise NotOnline("no table is read")

    def size(path: Sequence[Node]) -> float:
        scan = path[-1]
        assert isinstance(scan, Scan)
        return float(catalog[scan.table].bytes)

    path = max(paths, key=size)
    scan = path[-1]
    assert isinstance(scan, Scan)
    same = [
        other for other in paths if isinstance(other[-1], Scan) and other[-1].table == scan.table
    ]
    if len(same) > 1:
        raise NotOnline(_why_not_twice(scan.table, same))
    groupings = [node for node in path if isinstance(node, Aggregate)]
    _check_kinds(path, scan.table)
    if not groupings:
        raise NotOnline(f"there is no aggregate over {scan.table}, the largest table")
    if len(groupings) > 1:
        raise NotOnline(
            f"an aggregate of an aggregate over {scan.table}: "
            "an estimate within an estimate is biased"
        )
    (aggregate,) = groupings
    if not aggregate.calls:
        raise NotOnline("distinct rows of a part of a table say nothing of the rows not read yet")
    place = next(i for i, node in enumerate(path) if node is aggregate)
    found = SampledPath(path[:place], aggregate, path[place + 1 : -1], scan)
    _check_above(found)
    _check_below(found)
    return found


def _paths(node: Node, before: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    here = (*before, node)
    if isinstance(node, Scan):
        yield here
    for child in inputs(node):
        yield from _paths(child, here)


def _why_not_twice(table: str, paths: Sequence[Sequence[Node]]) -> str:
    common = 0
    while len({id(path[common]) for path in paths if common < len(path)}) == 1:
        common += 1
    inner = any(isinstance(node, Aggregate) for path in paths for node in path[common:])
    if inner:
        return (
            f"an inner aggregate reads {table}, too: estimated from the same rows it would bias "
            "the answer"
        )
    return f"{table} is read {len(paths)} times: pairs of rows are not sampled by sampling rows"


def _check_kinds(path: Sequence[Node], table: str) -> None:
    for node in path:
        if isinstance(node, UnionAll):
            raise NotOnline(f"a set operation over {table} is not estimated")


def _check_above(path: SampledPath) -> None:
    for node in path.above:
        if isinstance(node, Join) and node.kind != "inner":
            raise NotOnline(f"a {node.kind} join of groups of {path.scan.table} with other rows")
        if not isinstance(node, Project | Filter | Sort | Shared | Join):
            raise NotOnline(f"{type(node).__name__} over groups is not estimated")
    sorts = [node for node in path.above if isinstance(node, Sort)]
    if len(sorts) > 1:
        raise NotOnline("LIMIT twice over groups is not estimated")
    if sorts:
        place = next(i for i, node in enumerate(path.above) if node is sorts[0])
        if any(not isinstance(node, Project | Shared) for node in path.above[:place]):
            raise NotOnline("conditions on rows that LIMIT has chosen by estimates")


def _check_below(path: SampledPath) -> None:
    table = path.scan.table
    nodes = [*path.below, path.scan]
    for node, child in pairwise(nodes):
        if isinstance(node, Sort):
            raise NotOnline(f"ORDER BY or LIMIT chooses rows of {table} before they are aggregated")
        if not isinstance(node, Join):
            continue
        on_left = node.left is child
        if node.kind == "inner" or (node.kind == "left" and on_left):
            continue
        if node.kind in ("semi", "anti"):
            if not on_left:
                raise NotOnline(
                    f"rows of {table}, the largest table, are only looked for (IN, EXISTS): "
                    "a part of them does not tell what is missing"
                )
            continue
        if node.kind == "right" and not on_left:
            continue
        raise NotOnline(
            f"an outer join keeps rows without a partner in {table}: a part of it does not tell "
            "which have none"
        )
