"""Whether two statements are the same for DuckDB: its own parse trees, compared.

sqlglot reads the statement and writes it again with every operator in parentheses. If DuckDB sees
the same tree in both texts, sqlglot has understood grammar, precedence and names as DuckDB does.
A few spellings that mean the same are brought to one form before.
"""

from __future__ import annotations

import re
from typing import Any

from .oracle import FunctionKinds

Tree = dict[str, Any]
_UNIT_FIRST = frozenset({"date_diff", "date_part", "date_sub", "date_trunc"})
_INTERVAL = re.compile(r"^\s*(\d+)\s+(year|month|week|day|hour|minute|second)s?\s*$", re.IGNORECASE)
_SYNONYMS = {
    "**": "power",
    "^": "power",
    "pow": "power",
    "mod": "%",
    "var_samp": "variance",
    "datediff": "date_diff",
    "datepart": "date_part",
    "datesub": "date_sub",
    "datetrunc": "date_trunc",
}


def normalised(node: Any, kinds: FunctionKinds) -> Any:
    """The tree without positions in the text and with one spelling for things with several."""
    if isinstance(node, list):
        return [normalised(item, kinds) for item in node]
    if not isinstance(node, dict):
        return node
    plain = {
        key: normalised(value, kinds)
        for key, value in node.items()
        if not key.startswith("query_location") and key != "qualified_name"
    }
    if "null_order" in plain:
        # What DuckDB does by default: ascending, and NULLs last either way.
        plain["type"] = plain["type"].replace("ORDER_DEFAULT", "ASCENDING")
        plain["null_order"] = plain["null_order"].replace("ORDER_DEFAULT", "NULLS LAST")
    rule = _RULES.get(plain.get("class", ""))
    return rule(plain, kinds) if rule else plain


def _function(node: Tree, kinds: FunctionKinds) -> Tree:
    name = node["function_name"].lower()
    name = kinds.canonical.get(name, name)
    name = _SYNONYMS.get(name, name)
    node["function_name"] = name
    node.pop("is_operator", None)
    arguments = [argument["expression"] for argument in node.get("arguments", ())]
    if name in _UNIT_FIRST and arguments and "literal" in arguments[0]:
        arguments[0]["literal"]["text"] = arguments[0]["literal"]["text"].lower()
    if name.startswith("to_") and name.endswith("s") and len(arguments) == 1:
        amount = _only_number(arguments[0])
        if amount is not None and _INTERVAL.match(f"{amount} {name[3:]}"):
            return _interval(amount, name[3:-1], node["alias"])
    if name in ("bool_and", "bool_or") and arguments and _casts_to(arguments[0], "boolean"):
        # sqlglot writes a cast to what the argument must be anyway.
        node["arguments"][0]["expression"] = arguments[0]["child"]
    return node


def _interval(amount: str, unit: str, alias: str) -> Tree:
    """One form for INTERVAL 3 DAY, INTERVAL '3' DAY and INTERVAL '3 days'."""
    return {"class": "INTERVAL", "amount": int(amount), "unit": unit.lower(), "alias": alias}


def _only_number(node: Tree) -> str | None:
    """The number within the casts and the rounding that DuckDB puts around one."""
    while "literal" not in node:
        if node.get("class") == "CAST":
            node = node["child"]
        elif node.get("function_name") == "trunc":
            node = node["arguments"][0]["expression"]
        else:
            return None
    text = str(node["literal"].get("text"))
    return text if text.isdigit() else None


def _casts_to(node: Tree, type_name: str) -> bool:
    return bool(node.get("class") == "CAST" and node["type_expr"]["type_name"] == type_name)


def _operator(node: Tree, _: FunctionKinds) -> Tree:
    inner = node["children"][0] if node["children"] else {}
    if node["type"] == "OPERATOR_NOT" and inner.get("type") == "OPERATOR_IS_NULL":
        return {**inner, "type": "OPERATOR_IS_NOT_NULL", "alias": node["alias"]}
    if node["type"] == "OPERATOR_NOT" and inner.get("type") == "COMPARE_NOT_DISTINCT_FROM":
        return {**inner, "type": "COMPARE_DISTINCT_FROM", "alias": node["alias"]}
    return node


def _cast(node: Tree, _: FunctionKinds) -> Tree:
    literal = node["child"].get("literal")
    if literal is not None and _casts_to(node, "interval"):
        found = _INTERVAL.match(str(literal.get("text")))
        if found:
            return _interval(found[1], found[2], node["alias"])
    if literal is not None and literal["kind"] == "INTEGER":
        literal["kind"] = "STRING"  # INTERVAL 3 MONTH and INTERVAL '3' MONTH
    return node


def _type(node: Tree, _: FunctionKinds) -> Tree:
    node["type_name"] = _TYPES.get(node["type_name"].lower(), node["type_name"].lower())
    if node["type_name"] == "varchar":
        node["children"] = []  # DuckDB does not mind the length either
    return node


_TYPES = {
    "int": "integer",
    "int4": "integer",
    "int8": "bigint",
    "long": "bigint",
    "int2": "smallint",
    "text": "varchar",
    "string": "varchar",
    "numeric": "decimal",
    "dec": "decimal",
    "float8": "double",
    "real": "float",
    "float4": "float",
    "bool": "boolean",
    "datetime": "timestamp",
    "timestamp with time zone": "timestamptz",
}


def _column(node: Tree, _: FunctionKinds) -> Tree:
    node["column_names"] = [name.lower() for name in node["column_names"]]
    return node


def _constant(node: Tree, _: FunctionKinds) -> Tree:
    literal = node.get("literal")
    if literal and literal.get("kind") in ("INTEGER", "DECIMAL"):
        literal["text"] = literal["text"].replace("_", "")
    return node


def _conjunction(node: Tree, _: FunctionKinds) -> Tree:
    flat: list[Any] = []
    for child in node["children"]:
        nested = child.get("class") == "CONJUNCTION" and child["type"] == node["type"]
        flat.extend(child["children"] if nested else [child])
    node["children"] = flat
    return node


_RULES = {
    "FUNCTION": _function,
    "OPERATOR": _operator,
    "CAST": _cast,
    "TYPE": _type,
    "COLUMN_REF": _column,
    "CONSTANT": _constant,
    "CONJUNCTION": _conjunction,
}
