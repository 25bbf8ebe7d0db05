"""Plans of EXPLAIN ANALYZE as DuckDB shows them to its own users.

A statement that slots serve is prepared first. DuckDB's plan of a prepared EXPLAIN ANALYZE has the
preparation on top, as operators with no rows and no time; plain DuckDB shows none of them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa

# duckdb_statement_type
EXPLAIN = 4
# The boxes of EXECUTE and EXPLAIN_ANALYZE, then the border of the topmost operator of the query.
_BOXES = re.compile(
    r"^╭─ Execute ─+╮\n│[^\n]*\n╰[^\n]*\n╭─ Explain Analyze [─┴]+╮\n│[^\n]*\n╰[^\n]*\n(╭[^\n]*)",
    re.MULTILINE,
)
# Where that border meets the line from above.
_JOINS = str.maketrans("┴┚┖", "───")


def as_plain(batch: Any) -> Any:
    """A batch of an EXPLAIN's answer without the preparation in it."""
    keys, plans = (column.to_pylist() for column in batch.columns)
    shown = [
        _unprepared(plan) if key == "analyzed_plan" else plan
        for key, plan in zip(keys, plans, strict=True)
    ]
    return pa.RecordBatch.from_arrays([batch.column(0), pa.array(shown)], schema=batch.schema)


def _unprepared(plan: str) -> str:
    """
    >>> told = _unprepared('''╭─ Execute ──────────╮
    ... │ 0 rows        0µs │
    ... ╰─────────┬─────────╯
    ... ╭─ Explain Analyze ─╮
    ... │ 0 rows        0µs │
    ... ╰─────────┒┎────────╯
    ... ╭─ Limit ─┚┖────────╮''')
    >>> print(told)
    ╭─ Limit ───────────╮
    """
    if plan.startswith("{"):
        document = json.loads(plan)
        for root in document.get("operator", []):
            root["children"] = [_below(child) for child in root.get("children", [])]
        return json.dumps(document, indent=4)
    return _BOXES.sub(lambda found: found[1].translate(_JOINS), plan, count=1)


def _below(node: Any) -> Any:
    match node:
        case {"type": "EXECUTE", "children": [{"type": "EXPLAIN_ANALYZE"} as child]}:
            return child
    return node
