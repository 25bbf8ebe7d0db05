"""Estimates of rows follow from distinct counts and ranges."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from queryard.sql.planner.selectivity import ColumnFacts, Selectivity

FACTS = {
    "a": ColumnFacts(distinct=100, low=0.0, high=200.0),
    "b": ColumnFacts(distinct=10, null_share=0.25),
    "s": ColumnFacts(distinct=50),
}


def constant(text: str) -> Any:
    return float(text.strip("()"))


@pytest.mark.parametrize(
    ("condition", "share"),
    [
        ("a = 3", 0.01),
        ("a < 50", 0.25),
        ("50 > a", 0.25),
        ("a >= 50 AND a < 100", 0.25),
        ("a BETWEEN 50 AND 100", 0.25),
        ("a < 50 AND b = 1", 0.025),
        ("a < 50 OR b = 1", 0.325),
        ("b IN (1, 2, 3)", 0.3),
        ("NOT b = 1", 0.9),
        ("b IS NULL", 0.25),
        ("s LIKE 'x%'", 0.05),
        ("a > 1000", 0.01),
    ],
)
def test_shares_of_rows(condition: str, share: float) -> None:
    tree = sqlglot.parse_one(condition, dialect="duckdb")
    assert Selectivity(constant).of_all([tree], FACTS) == pytest.approx(share)
