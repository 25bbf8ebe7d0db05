"""The fit of prices finds those that were put in."""

from __future__ import annotations

import random

import pytest

from queryard.estimate.prices import PRICES, Rates
from research.prices import Counted, Ran, fitted, written

TRUE = {"scan_values": 2e-9, "scan_bytes": 1e-9, "probe_misses": 3e-8, "sorted_rows": 1.2e-7}
KINDS = {
    "scan_values": "scan",
    "scan_bytes": "scan",
    "probe_misses": "join",
    "sorted_rows": "order",
}


def ran(seed: int) -> Ran:
    rng = random.Random(seed)
    operators = []
    for kind in ("scan", "join", "order"):
        amounts = {name: rng.uniform(1e5, 1e7) for name in TRUE if KINDS[name] == kind}
        seconds = sum(TRUE[name] * amount for name, amount in amounts.items())
        operators.append(Counted(kind, amounts, seconds * rng.uniform(0.9, 1.1)))
    amounts = {"output_values": rng.uniform(0, 1e6), "chunks": 100.0, "output_texts": 0.0}
    amounts |= {name: amount for one in operators for name, amount in one.amounts.items()}
    work_s = 0.003 + sum(one.seconds for one in operators) + 4e-8 * amounts["output_values"]
    return Ran(work_s, operators, amounts)


def test_prices_come_out_as_they_went_in():
    prices = fitted([ran(seed) for seed in range(60)])
    for name, seconds in TRUE.items():
        assert prices[name] == pytest.approx(seconds, rel=0.25)
    assert prices["output_values"] == pytest.approx(4e-8, rel=0.25)
    text = written(prices, Rates(2.0, 2.0, 2.0))
    assert all(f'"{name}": Price(' in text for name in PRICES)
    assert '"text_bytes": Price(3.3e-09, ' in text  # kept as it was
