"""How many rows operators of a plan give at most, however many their inputs turn out to have."""

from __future__ import annotations

import math

from queryard.sql.catalog.canonical import is_text_table

from .algebra import Aggregate, Join, Node, OneRow, Scan, Sort, UnionAll
from .cardinality import Cardinality
from .contract import CatalogLike
from .expressions import references


def most_rows(node: Node, cardinality: Cardinality, catalog: CatalogLike) -> float:
    """By limits, values of keys in whole tables, and rows of tables; infinite where none tells."""
    if isinstance(node, OneRow):
        return 1.0
    if isinstance(node, Scan):
        # Rows of a text are counted when it is read.
        is_text = is_text_table(catalog[node.table])
        return math.inf if is_text else float(catalog.statistics(node.table).rows)
    if isinstance(node, UnionAll):
        return sum(most_rows(one, cardinality, catalog) for one in node.inputs)
    if isinstance(node, Join):
        left = most_rows(node.left, cardinality, catalog)
        if node.kind in ("semi", "anti"):
            return left
        right = most_rows(node.right, cardinality, catalog)
        return math.inf if math.inf in (left, right) else max(left, 1.0) * max(right, 1.0)
    child = most_rows(node.child, cardinality, catalog)
    if isinstance(node, Sort) and node.limit is not None:
        return min(child, float(node.limit))
    if isinstance(node, Aggregate):
        below = cardinality.of(node.child)
        values = 1.0
        for _, source in node.keys:
            origin = below.columns[source].origin
            columns = () if origin is None else references(origin.expression)
            if origin is None or len(columns) != 1:
                return child
            found = catalog.statistics(below.scans[origin.scan].table).columns.get(*columns)
            if found is None:
                return child
            values *= max(found.distinct, 1.0) + 1.0  # null is a group of its own
        return min(child, values)
    return child
