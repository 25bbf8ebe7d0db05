"""Which table each scan of a plan reads, where plans tell columns and no files.

Several tables may have such columns. Each table that a statement names is mostly read once, and
the scan that reads it is the one of which DuckDB expects as many rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from .filters import UNKNOWN
from .tables import TableFacts
from .tree import PlanNames, number, operator_name, texts

# Ways to tell scans and tables together that are tried; of more, each scan is told by itself.
MOST_WAYS = 500
# A table that is not read counts like so many squared errors of the logarithm of rows.
UNREAD = 1000.0


def scanned_tables(
    root: Mapping[str, Any], names: PlanNames, facts: Mapping[str, TableFacts]
) -> dict[int, TableFacts]:
    """The table of each scan that reads one of those known, by the id of its node."""
    scans = []
    for node in _nodes(root):
        info = node.get("extra_info") or {}
        holders = names.holders(operator_name(node), info)
        known = [facts[key] for key in holders if key in facts]
        if known:
            expected = max(1.0, number(info.get("Estimated Cardinality")) or 1.0)
            scans.append((id(node), known, expected, bool(texts(info.get("Filters")))))
    choices = [known for _, known, _, _ in scans]
    if math.prod(map(len, choices)) > MOST_WAYS:
        chosen = [min(scan[1], key=partial(_error, scan)) for scan in scans]
    else:
        chosen = list(min(itertools.product(*choices), key=partial(_errors, scans)))
    return {scan[0]: table for scan, table in zip(scans, chosen, strict=True)}


_Scan = tuple[int, list[TableFacts], float, bool]


def _errors(scans: Sequence[_Scan], tables: Sequence[TableFacts]) -> float:
    possible = {one.key for _, known, _, _ in scans for one in known}
    unread = len(possible - {table.key for table in tables})
    return UNREAD * unread + sum(map(_error, scans, tables))


def _error(scan: _Scan, table: TableFacts) -> float:
    """The squared error of the logarithm of rows; DuckDB may or may not count a filter."""
    _, _, expected, filtered = scan
    rows = math.log(max(1.0, table.rows))
    found = (rows - math.log(expected)) ** 2
    return min(found, (rows - math.log(expected / UNKNOWN)) ** 2) if filtered else found


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("children", []):
        yield from _nodes(child)
