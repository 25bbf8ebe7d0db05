"""Looking around in DuckDB's plans: names that operators use, and what lies below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .filters import words
from .tree import is_scan, operator_name, texts

_EQUAL = re.compile(r" (?:=|IS NOT DISTINCT FROM) ")
LIMITS = ("LIMIT", "STREAMING_LIMIT")
_STREAMING = ("PROJECTION", "FILTER", "UNNEST", "STREAMING_WINDOW", "STREAMING_SAMPLE", *LIMITS)


def named(info: Mapping[str, Any]) -> frozenset[str]:
    """Words in what an operator says of itself: names of columns are among them."""
    return frozenset(
        word for value in info.values() for text in texts(value) for word in words(text)
    )


def key_names(node: Mapping[str, Any]) -> frozenset[str]:
    """Words in what must be equal in joins and in groups: names of key columns are among them."""
    info: Mapping[str, Any] = node.get("extra_info") or {}
    equal = [text for text in texts(info.get("Conditions")) if _EQUAL.search(text)]
    keys = [*equal, *texts(info.get("Groups"))]
    found = frozenset(word for text in keys for word in words(text))
    return found.union(*map(key_names, node.get("children", [])))


def named_below(node: Mapping[str, Any]) -> frozenset[str]:
    """Words in what an operator and those below it say of themselves."""
    found = named(node.get("extra_info") or {})
    return found.union(*map(named_below, node.get("children", [])))


def below(node: Mapping[str, Any]) -> Iterator[int]:
    """The identities of all operators below one."""
    for child in node.get("children", []):
        yield id(child)
        yield from below(child)


def is_stream(node: Mapping[str, Any]) -> bool:
    """Whether rows come out before all were read."""
    children = node.get("children", [])
    if not children:
        name = operator_name(node)
        return is_scan(name) or name == "TABLE_SCAN"
    return operator_name(node) in _STREAMING and all(map(is_stream, children))
