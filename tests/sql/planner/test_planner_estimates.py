"""Estimates of rows follow from distinct counts and ranges."""

from __future__ import annotations

from typing import Any

import pytest
import sqlglot

from queryard.sql.planner.selectivity import ColumnFacts, Selectivity
from queryard.sql.statistics.distribution import Distribution
from queryard.sql.statistics.model import Histogram

FACTS = {
    "a": ColumnFacts(distinct=100, low=0.0, high=200.0),
    "b": ColumnFacts(distinct=10, null_share=0.25),
    "s": ColumnFacts(distinct=50),
    # 0 to 4 occur nine times as often as 5 to 9.
    "h": ColumnFacts(
        distinct=10,
        low=0.0,
        high=9.0,
        spread=Distribution.of(
            Histogram(0.0, 9.0, counts=(9.0,) * 5 + (1.0,) * 5, distincts=(1.0,) * 10), 1000.0
        ),
    ),
}


def constant(text: str) -> Any:
    return text if "'" in text else float(text.strip("()"))


@pytest.mark.parametrize(
    ("condition", "share"),
    [
        ("a = 3", 0.01),
        ("a < 50", 0.25),
        ("50 > a", 0.25),
        ("a >= 50 AND a < 100", 0.25),
        ("a BETWEEN 50 AND 100", 0.25),
        ("a < 50 AND b = 1", 0.25 * 0.075),
        ("a < 50 OR b = 1", 1 - 0.75 * (1 - 0.075)),
        ("b IN (1, 2, 3)", 0.225),
        ("NOT b = 1", 0.675),  # a null is neither equal nor unequal
        ("b <> 1", 0.675),
        ("s <> 'x'", 0.98),
        ("b IS NULL", 0.25),
        ("b IS NOT NULL", 0.75),
        ("h < 5", 0.9),
        ("h >= 5", 0.1),
        ("h = 2", 0.18),
        ("h <> 2", 0.82),
        ("h BETWEEN 2 AND 3", 0.36),
        ("h IN (2, 7)", 0.2),
        ("h > 3 AND h < 8 AND a < 50", 0.25 * (0.18 + 3 * 0.02)),
        ("h > 100", 1e-9),
        ("s LIKE 'x%'", 0.05),
        ("a > 1000", 0.01),
    ],
)
def test_shares_of_rows(condition: str, share: float) -> None:
    tree = sqlglot.parse_one(condition, dialect="duckdb")
    assert Selectivity(constant).of_all([tree], FACTS) == pytest.approx(share)
