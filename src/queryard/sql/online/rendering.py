"""A logical plan as one SQL text, with some of its nodes read from where they were put before."""

from __future__ import annotations

from collections.abc import Mapping

from queryard.sql.planner.algebra import (
    Aggregate,
    Filter,
    Join,
    Node,
    OneRow,
    Project,
    Scan,
    Shared,
    Sort,
)
from queryard.sql.planner.contract import CatalogLike
from queryard.sql.planner.expressions import all_of, text
from queryard.sql.planner.oracle import quoted, quoted_table

_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}


class Rendering:
    """Writes nodes as SELECTs. `placed` has the SQL that stands for a node, by its identity."""

    def __init__(self, catalog: CatalogLike, placed: Mapping[int, str]) -> None:
        self._catalog = catalog
        self._placed = placed

    def sql(self, node: Node) -> str:
        """A SELECT that gives the columns of the node under the plan's names."""
        found = self._placed.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Scan):
            return self._scan(node)
        if isinstance(node, OneRow):
            return "SELECT 1 AS one"
        if isinstance(node, Filter):
            return f"SELECT * FROM ({self.sql(node.child)}) WHERE {text(all_of(node.conditions))}"
        if isinstance(node, Project):
            items = ", ".join(f"{text(e)} AS {name}" for name, e in node.items)
            return f"SELECT {items or '1 AS one'} FROM ({self.sql(node.child)})"
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, Sort):
            return f"SELECT * FROM ({self.sql(node.child)}){order_text(node)}"
        if isinstance(node, Shared):
            return self.sql(node.child)
        sides = []
        for child in node.inputs:
            pairs = zip(child.fields, node.fields, strict=True)
            items = ", ".join(f"{c.name} AS {f.name}" for c, f in pairs)
            sides.append(f"SELECT {items or '1 AS one'} FROM ({self.sql(child)})")
        return " UNION ALL ".join(sides)

    def _scan(self, node: Scan) -> str:
        table = self._catalog[node.table]
        columns = ", ".join(f"t.{quoted(c)} AS {name}" for name, c in node.columns.items())
        return f"SELECT {columns or '1 AS one'} FROM {quoted_table(table.schema, table.name)} AS t"

    def _join(self, node: Join) -> str:
        columns = ", ".join(field.name for field in node.fields) or "1 AS one"
        conditions = " AND ".join(text(c) for c in node.conditions) or "TRUE"
        return (
            f"SELECT {columns} FROM ({self.sql(node.left)}) AS l {_JOINS[node.kind]} "
            f"({self.sql(node.right)}) AS r ON {conditions}"
        )

    def _aggregate(self, node: Aggregate) -> str:
        types = {field.name: field.type for field in node.fields}
        items = [f"{source} AS {name}" for name, source in node.keys]
        items += [f"CAST({c.text()} AS {types[c.out]}) AS {c.out}" for c in node.calls]
        keys = ", ".join(source for _, source in node.keys)
        grouped = f" GROUP BY {keys}" if keys else ""
        return (
            f"SELECT {', '.join(items) or 'count(*) AS one'} FROM ({self.sql(node.child)}){grouped}"
        )


def order_text(node: Sort) -> str:
    """ORDER BY, LIMIT and OFFSET of a node."""
    order = ", ".join(key.text() for key in node.keys)
    found = f" ORDER BY {order}" if order else ""
    if node.limit is not None:
        found += f" LIMIT {node.limit}"
    return f"{found} OFFSET {node.offset}" if node.offset else found
