"""What a plan does, in amounts, and what each amount costs: core-seconds of a plan.

Prices are those of the reference machine; `Rates` carry them to another. `research/prices.py` fits
them to operators whose rows were counted, and says on which queries.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["computing", "hashing", "sorting"]
Part = Literal["start", "read", "compute", "join", "group", "order", "answer"]
PARTS: tuple[Part, ...] = ("start", "read", "compute", "join", "group", "order", "answer")
Amount = Literal[
    # read
    "chunks",
    "columns",
    "scan_bytes",
    "scan_values",
    "scan_text_bytes",
    "scan_texts",
    "scan_lists",
    "tested_values",
    "tested_texts",
    "picked_values",
    "sifted_rows",
    "text_bytes",
    # compute
    "expressions",
    "text_calls",
    "called_bytes",
    "date_calls",
    "list_calls",
    "texts_read",
    "matched_bytes",
    "regular_bytes",
    "cast_values",
    "filtered_values",
    "vectors",
    "unnested_rows",
    # join
    "built_rows",
    "built_values",
    "built_texts",
    "probe_misses",
    "far_rows",
    "indexed_values",
    "indexed_texts",
    "indexed_rows",
    "joined_values",
    "pairs",
    "paired_rows",
    "made_rows",
    # group
    "direct_rows",
    "grouped_keys",
    "grouped_texts",
    "group_misses",
    "groups",
    "far_groups",
    "aggregated_values",
    "kept_values",
    # order
    "topped_rows",
    "sorted_rows",
    "sorted_texts",
    "windowed_rows",
    "framed_rows",
    # answer
    "cached_values",
    "output_values",
    "output_texts",
]

START_S = 0.001
"""Of a query that does nothing: it is parsed, planned and answered."""
OPERATOR_S = 0.00015
"""Of an operator that has nothing to do."""

# Core-seconds beyond which a plan's amounts say no more than "very long": they are products of
# guesses, and a forecast in centuries is of no use.
LONG_S = 3_600.0


class Price(NamedTuple):
    """What one unit of an amount takes, what the machine does then, and for which part."""

    seconds: float
    kind: Kind
    part: Part


PRICES: Mapping[Amount, Price] = {
    "chunks": Price(8e-06, "computing", "read"),
    "columns": Price(0.000113, "computing", "read"),
    "scan_bytes": Price(1.5e-09, "computing", "read"),
    "scan_values": Price(1.91e-10, "computing", "read"),
    "scan_text_bytes": Price(1.72e-09, "computing", "read"),
    "scan_texts": Price(3.25e-10, "computing", "read"),
    "scan_lists": Price(8.68e-09, "computing", "read"),
    "tested_values": Price(8.55e-10, "computing", "read"),
    "tested_texts": Price(1.78e-09, "computing", "read"),
    "picked_values": Price(1.88e-09, "computing", "read"),
    "sifted_rows": Price(1.16e-09, "computing", "read"),
    "text_bytes": Price(3.3e-09, "computing", "read"),
    "expressions": Price(1.6e-09, "computing", "compute"),
    "text_calls": Price(1e-08, "computing", "compute"),
    "called_bytes": Price(3.78e-10, "computing", "compute"),
    "date_calls": Price(7.94e-09, "computing", "compute"),
    "list_calls": Price(6.52e-09, "computing", "compute"),
    "texts_read": Price(1.16e-08, "computing", "compute"),
    "matched_bytes": Price(6.51e-10, "computing", "compute"),
    "regular_bytes": Price(1.98e-09, "computing", "compute"),
    "cast_values": Price(1.04e-09, "computing", "compute"),
    "filtered_values": Price(6.49e-10, "computing", "compute"),
    "vectors": Price(2.98e-07, "computing", "compute"),
    "unnested_rows": Price(9.64e-09, "computing", "compute"),
    "built_rows": Price(2.07e-08, "hashing", "join"),
    "built_values": Price(2.25e-08, "hashing", "join"),
    "built_texts": Price(0, "hashing", "join"),
    "probe_misses": Price(4.56e-08, "hashing", "join"),
    "far_rows": Price(0, "hashing", "join"),
    "indexed_values": Price(1.14e-08, "hashing", "join"),
    "indexed_texts": Price(3.36e-08, "hashing", "join"),
    "indexed_rows": Price(6.6e-09, "hashing", "join"),
    "joined_values": Price(0, "hashing", "join"),
    "pairs": Price(3.4e-09, "computing", "join"),
    "paired_rows": Price(6e-09, "computing", "join"),
    "made_rows": Price(2e-10, "computing", "join"),
    "direct_rows": Price(7.4e-09, "hashing", "group"),
    "grouped_keys": Price(8.95e-09, "hashing", "group"),
    "grouped_texts": Price(2.43e-09, "hashing", "group"),
    "group_misses": Price(2.52e-08, "hashing", "group"),
    "groups": Price(1.71e-07, "hashing", "group"),
    "far_groups": Price(2.62e-08, "hashing", "group"),
    "aggregated_values": Price(1.22e-09, "computing", "group"),
    "kept_values": Price(3.37e-08, "hashing", "group"),
    "topped_rows": Price(1.02e-08, "sorting", "order"),
    "sorted_rows": Price(7.21e-08, "sorting", "order"),
    "sorted_texts": Price(1.92e-07, "sorting", "order"),
    "windowed_rows": Price(1.7e-07, "sorting", "order"),
    "framed_rows": Price(3.31e-07, "sorting", "order"),
    "cached_values": Price(5.14e-11, "computing", "answer"),
    "output_values": Price(2.03e-08, "computing", "answer"),
    "output_texts": Price(6.7e-09, "computing", "answer"),
}

EDITION = f"{zlib.crc32(repr((START_S, OPERATOR_S, sorted(PRICES.items()))).encode()):08x}"
"""Another one where prices are others: factors hold for the prices that they were learnt with."""


@dataclass(frozen=True, slots=True)
class Rates:
    """How much longer this machine takes than the reference, by what it does."""

    computing: float = 1.0
    hashing: float = 1.0
    sorting: float = 1.0


REFERENCE = Rates()


@dataclass(frozen=True, slots=True)
class ScanFeatures:
    """One read of a table; bytes are those of the columns read, decompressed."""

    table: str
    rows: float
    columns: int
    bytes: float


@dataclass(frozen=True, slots=True)
class OperatorFeatures:
    """What one operator of a plan does, the rows and bytes it gives, and what it holds in memory.

    `doubt` is the expected squared error of the logarithm of its rows. `lanes` is how many slots
    can work on it at once.
    """

    amounts: Mapping[Amount, float]
    rows: float
    bytes: float
    doubt: float = 0.0
    held_bytes: float = 0.0
    lanes: float = math.inf


@dataclass(frozen=True, slots=True)
class Features:
    """What a plan does: amounts by kind, the reads among them, and the rows it gives.

    Operators come in the order of the plan, each before those it reads from.
    """

    amounts: Mapping[Amount, float]
    scans: tuple[ScanFeatures, ...] = ()
    rows: float = 0.0
    operators: tuple[OperatorFeatures, ...] = ()
    # What it took to plan it here, which running it takes again.
    planning_s: float = 0.0


def seconds_of(amounts: Mapping[Amount, float], rates: Rates = REFERENCE) -> float:
    """Core-seconds of some amounts.

    >>> [round(seconds_of({"text_bytes": 1e9}, rates), 1) for rates in (REFERENCE, Rates(2.0))]
    [3.3, 6.6]
    """
    return sum(
        amount * PRICES[name].seconds * float(getattr(rates, PRICES[name].kind))
        for name, amount in amounts.items()
    )


def operator_s(operator: OperatorFeatures, rates: Rates = REFERENCE) -> float:
    """Core-seconds of one operator."""
    return OPERATOR_S * rates.computing + seconds_of(operator.amounts, rates)


def by_part(features: Features, rates: Rates = REFERENCE) -> dict[Part, float]:
    """Core-seconds of a plan by what it does."""
    start_s = START_S + OPERATOR_S * len(features.operators)
    found: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
    found["start"] = start_s * rates.computing + features.planning_s
    for name, amount in features.amounts.items():
        price = PRICES[name]
        found[price.part] += amount * price.seconds * float(getattr(rates, price.kind))
    return found


def doubt_of(features: Features) -> float:
    """The expected squared error of the logarithm of a plan's work that comes of its rows alone.

    An operator counts by its share of the work; errors of rows run through a plan, so that they
    add up.
    """
    shares = [operator_s(operator) for operator in features.operators]
    total = sum(shares)
    if total <= 0:
        return 0.0
    weighted = (
        share / total * math.sqrt(operator.doubt)
        for share, operator in zip(shares, features.operators, strict=True)
    )
    return float(sum(weighted) ** 2)


def bounded(work_s: float) -> float:
    """Core-seconds as they are up to an hour; beyond, their logarithm, so that more stays more.

    >>> [round(bounded(work_s)) for work_s in (7.0, 3600.0, 1e6, 1e12)]
    [7, 3600, 23857, 73592]
    """
    return work_s if work_s <= LONG_S else LONG_S * (1 + math.log(work_s / LONG_S))


def total_of(features: Sequence[Features], rates: Rates = REFERENCE) -> dict[Part, float]:
    """Core-seconds of several plans together."""
    found: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
    for one in features:
        for part, seconds in by_part(one, rates).items():
            found[part] += seconds
    return found
