"""Which statements may be split at all, decided on DuckDB's own reading of them.

Only what is known to be safe passes; everything else is refused with a reason. A statement that
passes contains plain queries, joins, set operations, functions that always give the same answer,
and aggregates with exact partial forms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .aggregates import AGGREGATES, QUANTILES
from .errors import NotStageable
from .oracle import FunctionKinds

_EXPRESSIONS = frozenset(
    [
        "COLUMN_REF",
        "CONSTANT",
        "COMPARISON",
        "CONJUNCTION",
        "FUNCTION",
        "OPERATOR",
        "CAST",
        "CASE",
        "BETWEEN",
        "SUBQUERY",
        "STAR",
        "TYPE",
    ]
)
_OPERATORS = frozenset(
    [
        "OPERATOR_IS_NULL",
        "OPERATOR_IS_NOT_NULL",
        "OPERATOR_NOT",
        "OPERATOR_COALESCE",
        "COMPARE_IN",
        "COMPARE_NOT_IN",
        "ARRAY_EXTRACT",
        "ARRAY_SLICE",
        "STRUCT_EXTRACT",
        "OPERATOR_NULLIF",
    ]
)
_SOURCES = frozenset(["BASE_TABLE", "JOIN", "SUBQUERY", "EMPTY"])
_QUERIES = frozenset(["SELECT_NODE", "SET_OPERATION_NODE"])
# Macros that only spell out stable functions.
_SAFE_MACROS = frozenset({"nullif"})
# Stable for DuckDB, but they look at the session, at the clock, at how a column is called in the
# statement or at where a row lies.
_LOOKS_AROUND = frozenset(
    [
        "age",
        "alias",
        "current_localtime",
        "current_localtimestamp",
        "current_setting",
        "getvariable",
        "getenv",
        "current_role",
        "current_user",
        "user",
        "session_user",
        "version",
        "pg_typeof",
        "in_search_path",
        "nextval",
        "currval",
        "parse_duckdb_log_message",
    ]
)
# Functions that DuckDB's grammar takes for columns until it knows better.
_VALUE_FUNCTIONS = frozenset(
    [
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "current_role",
        "current_schema",
        "current_catalog",
        "localtime",
        "localtimestamp",
        "session_user",
    ]
)
_REASONS = {
    "WINDOW": "window functions see all rows of a partition at once",
    "LAMBDA": "lambda functions (and the arrow -> ) are not analysed",
    "COLLATE": "collations change which values are equal",
    "PARAMETER": "the statement has parameters",
    "POSITIONAL_REFERENCE": "positional references (#1) are not analysed",
    "TABLE_FUNCTION": "table functions are not split",
    "EXPRESSION_LIST": "VALUES lists are not split",
    "PIVOT": "PIVOT is not split",
    "RECURSIVE_CTE_NODE": "recursive queries need all rows of a step before the next",
    "COLUMN_DATA": "the statement reads an internal collection",
    "SHOW_REF": "SHOW and DESCRIBE read no table",
}


def check(tree: Mapping[str, Any], kinds: FunctionKinds) -> None:
    """Raise `NotStageable` unless everything in DuckDB's serialised statement is known safe."""
    statements = tree["statements"]
    if len(statements) != 1:
        raise NotStageable(f"{len(statements)} statements at once; give one")
    _check_node(statements[0], kinds)


def _check_node(node: Any, kinds: FunctionKinds) -> None:
    if isinstance(node, list):
        for item in node:
            _check_node(item, kinds)
    elif isinstance(node, dict) and not _is_order_by_all(node):
        _check_dict(node, kinds)
        for value in node.values():
            _check_node(value, kinds)


def _is_order_by_all(node: Mapping[str, Any]) -> bool:
    """Whether an item of ORDER BY is ALL, which DuckDB writes as COLUMNS(*)."""
    key = node.get("expression") if "null_order" in node else None
    if not isinstance(key, dict) or key.get("class") != "STAR" or not key.get("columns"):
        return False
    lists = ("exclude_list", "replace_list", "rename_list", "qualified_exclude_list")
    return not any(key.get(name) for name in ("expr", "relation_name", *lists))


def _check_dict(node: Mapping[str, Any], kinds: FunctionKinds) -> None:
    kind = node.get("type")
    if "class" in node:
        _check_expression(node, kinds)
    elif "select_list" in node or "setop_type" in node:
        if kind not in _QUERIES:
            raise NotStageable(_REASONS.get(str(kind), f"{kind} is not split"))
        _check_query(node)
    elif isinstance(kind, str) and "sample" in node and "alias" in node:
        _check_source(node)
    elif isinstance(kind, str) and kind.endswith("_NODE"):
        raise NotStageable(_REASONS.get(kind, f"{kind} is not split"))
    elif isinstance(kind, str) and kind.endswith("_MODIFIER"):
        _check_modifier(node)


def _check_expression(node: Mapping[str, Any], kinds: FunctionKinds) -> None:
    kind = node["class"]
    if kind not in _EXPRESSIONS:
        raise NotStageable(_REASONS.get(kind, f"{kind} expressions are not analysed"))
    if kind == "OPERATOR" and node["type"] not in _OPERATORS:
        raise NotStageable(f"the operator {node['type']} is not analysed")
    if kind == "STAR" and (node.get("columns") or node.get("expr")):
        raise NotStageable("COLUMNS(…) is not analysed")
    if kind == "STAR" and (
        node.get("replace_list") or node.get("rename_list") or node.get("qualified_exclude_list")
    ):
        raise NotStageable("* REPLACE and * RENAME are not analysed")
    if kind == "COLUMN_REF" and node["column_names"][-1].lower() in ("rowid", "file_row_number"):
        raise NotStageable("rowid and file_row_number are positions within a whole table")
    if kind == "COLUMN_REF" and node["column_names"][-1].lower() in _VALUE_FUNCTIONS:
        raise NotStageable(f"{node['column_names'][-1]} is not the same every time")
    if kind == "FUNCTION":
        _check_function(node, kinds)


def _check_function(node: Mapping[str, Any], kinds: FunctionKinds) -> None:
    name = node["function_name"].lower()
    if node.get("schema") or node.get("catalog"):
        raise NotStageable(f"the qualified function {name} is not analysed")
    if name in kinds.aggregates:
        if name not in AGGREGATES and name not in QUANTILES:
            raise NotStageable(f"the aggregate {name} has no exact partial form here")
        if node["order_bys"]["orders"]:
            raise NotStageable(f"{name} with ORDER BY depends on the order of rows")
        return
    if name in kinds.unstable:
        raise NotStageable(f"{name}() does not give the same answer every time")
    if name in _LOOKS_AROUND:
        raise NotStageable(f"{name}() depends on more than its arguments")
    if name not in kinds.stable and name not in _SAFE_MACROS:
        raise NotStageable(f"the function {name} is not known to be safe to split")
    if any(argument.get("name") for argument in node.get("arguments", ())):
        raise NotStageable(f"{name} with named arguments is not analysed")


def _check_query(node: Mapping[str, Any]) -> None:
    if node.get("qualify") is not None:
        raise NotStageable(_REASONS["WINDOW"])
    if node.get("sample") is not None:
        raise NotStageable("a sample depends on chance")
    if len(node.get("group_sets") or ()) > 1:
        raise NotStageable("grouping sets are not split")


def _check_source(node: Mapping[str, Any]) -> None:
    kind = node["type"]
    if kind not in _SOURCES:
        raise NotStageable(_REASONS.get(kind, f"{kind} in FROM is not split"))
    if node.get("sample") is not None:
        raise NotStageable("a sample depends on chance")
    if node.get("at_clause") is not None:
        raise NotStageable("AT (…) versions of tables are not split")
    if kind == "JOIN":
        if node["ref_type"] not in ("REGULAR", "CROSS", "NATURAL"):
            raise NotStageable(f"{node['ref_type']} joins depend on more than equal keys")
        if node["join_type"] not in ("INNER", "LEFT", "RIGHT", "FULL", "OUTER", "SEMI", "ANTI"):
            raise NotStageable(f"{node['join_type']} joins are not split")
        if node.get("ranking_expression") is not None:
            raise NotStageable("nearest-neighbour joins are not split")


def _check_modifier(node: Mapping[str, Any]) -> None:
    kind = node["type"]
    if kind == "DISTINCT_MODIFIER" and node.get("distinct_on_targets"):
        raise NotStageable("DISTINCT ON keeps whichever row comes first")
    if kind == "LIMIT_PERCENT_MODIFIER" or node.get("limit_type") not in (None, "ROW_COUNT"):
        raise NotStageable("LIMIT … % must know the number of all rows first")
