"""`did you mean` is asked of near names only."""

from __future__ import annotations

import pytest

from queryard.core.errors import near_name, unknown_name

TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("ordres", "orders"),
        ("Order", "orders"),
        ("custmers", "customer"),
        ("line", "lineitem"),
        ("prat", "part"),
        ("sales", None),
        ("notes", None),
        ("t", None),
        ("", None),
        ("parts", "part"),
    ],
)
def test_near_names(given: str, meant: str | None) -> None:
    assert near_name(given, TABLES) == meant


def test_all_valid_names_are_listed() -> None:
    told = unknown_name("table", "sales", TABLES)
    assert told == f"unknown table 'sales' (valid: {', '.join(TABLES)})"
    assert unknown_name("table", 3, []) == "unknown table 3 (valid: none)"
