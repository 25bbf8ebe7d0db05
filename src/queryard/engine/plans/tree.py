"""DuckDB's plan of a statement, read from its EXPLAIN in JSON: operators and tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from queryard.core.model import Operator
from queryard.sql.catalog import Catalog

WIDTH_BYTES = 8.0
"""Bytes of a value of unknown column: a number, a date."""

_WRAPPERS = ("RESULT_COLLECTOR", "EXECUTE", "EXPLAIN_ANALYZE", "QUERY", "EXPLAIN")
_SCANS = ("TABLE_SCAN", "SEQ_SCAN")
# What is worth saying of an operator, in this order.
_DETAILS = (
    "Join Type",
    "Conditions",
    "Groups",
    "Aggregates",
    "Expression",
    "Filters",
    "Top",
    "Limit",
    "Order By",
    "CTE Name",
    "FORMAT",
)
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class PlanOperator:
    """One operator, with those it reads from."""

    name: str
    details: str
    operator: Operator
    table: str
    inputs: list[PlanOperator] = field(default_factory=list)
    rows: float | None = None
    bytes: float | None = None
    seconds: float | None = None


def operator_class(name: str) -> Operator:
    """Which of the three kinds of jobs an operator of DuckDB's belongs to.

    >>> operator_class("HASH_JOIN"), operator_class("HASH_GROUP_BY"), operator_class("TOP_N")
    ('join', 'groupby', 'extract')
    """
    if "JOIN" in name or name == "CROSS_PRODUCT":
        return "join"
    if any(word in name for word in ("GROUP_BY", "AGGREGATE", "DISTINCT", "WINDOW")):
        return "groupby"
    return "extract"


def root_of(document: Any) -> Mapping[str, Any] | None:
    """The topmost operator as DuckDB writes it, without what is put around every plan."""
    roots = document if isinstance(document, list) else document.get("operator", [])
    node = roots[0] if roots else None
    while node is not None and operator_name(node) in _WRAPPERS:
        children = node.get("children", [])
        node = children[0] if children else None
    return node


def operator_name(node: Mapping[str, Any]) -> str:
    """What DuckDB calls an operator."""
    return str(node.get("name") or node.get("type") or "")


def read_plan(node: Mapping[str, Any], names: PlanNames) -> PlanOperator:
    """An operator with all it reads from."""
    info: Mapping[str, Any] = node.get("extra_info") or {}
    below = [read_plan(child, names) for child in node.get("children", [])]
    name = operator_name(node)
    if name in _SCANS and "Function" in info:
        name = str(info["Function"])
    found = PlanOperator(
        name=name,
        details=_details(info),
        operator=operator_class(name),
        table=names.table(name, info) if not below else "",
        inputs=below,
    )
    if "intermediate_rows" in node and name != "CTE":  # DuckDB counts no rows of it
        found.rows = float(node["intermediate_rows"])
        found.bytes = float(node.get("intermediate_size_bytes", 0))
        found.seconds = float(node.get("timing", 0.0))
    return found


def column_name(text: str) -> str:
    """The column that a scan reads; of a structure, it may be a field.

    >>> column_name('"Bounds".high'), column_name("l_orderkey")
    ('bounds', 'l_orderkey')
    """
    return text.partition(".")[0].strip('"').lower()


def is_scan(name: str) -> bool:
    """Whether an operator reads a table or files."""
    return name in _SCANS or name.startswith(("READ_", "PARQUET_SCAN", "ARROW_SCAN"))


def number(value: Any) -> float | None:
    """A number that DuckDB wrote as a text."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _details(info: Mapping[str, Any]) -> str:
    parts = [", ".join(texts(info[key])) for key in _DETAILS if info.get(key)]
    return "; ".join(parts)


def texts(value: Any) -> list[str]:
    """DuckDB writes one of something as a text, and several as a list."""
    if value is None or value == "":
        return []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


# --- tables --------------------------------------------------------------------------------------


class PlanNames:
    """Columns and files of the tables a statement may mean, to name what operators read."""

    def __init__(self, catalog: Catalog, mentioned: Sequence[str] | frozenset[str]) -> None:
        self.columns: dict[str, frozenset[str]] = {}
        self.files: dict[str, str] = {}
        for key, table in catalog.tables.items():
            parts = (*(table.schema.split(".") if table.schema else ()), table.name)
            if any(part.lower() not in mentioned for part in parts):
                continue
            self.columns[key] = frozenset(column.name.lower() for column in table.columns)
            self.files |= {file.uri: key for file in table.files}

    def table(self, name: str, info: Mapping[str, Any]) -> str:
        """Which table a scan reads, where there is only one that it can be."""
        if "Table" in info:
            return str(info["Table"]).removeprefix("memory.main.")
        holders = self.holders(name, info)
        return holders[0] if len(holders) == 1 else ""

    def holders(self, name: str, info: Mapping[str, Any]) -> list[str]:
        """Which tables a scan of files may read: by its file, else by its columns."""
        if not is_scan(name):
            return []
        files = {self.files[path] for path in texts(info.get("Filename(s)")) if path in self.files}
        if len(files) == 1:
            return [files.pop()]
        read = {column_name(text) for text in texts(info.get("Projections"))}
        known = frozenset().union(*self.columns.values())
        for text in texts(info.get("Filters")):
            read |= known.intersection(_WORD.findall(text.lower()))
        return [key for key, columns in self.columns.items() if read <= columns]
