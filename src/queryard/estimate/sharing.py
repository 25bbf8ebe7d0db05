"""Whether queries over one table should share its parsing: a rule, and the costs that it needs.

A query that reads a table by itself pays `scan`: for taking the text apart (tokenising), and for
the values of its own columns. Shared, the values of all columns that any rider wants are made once
and written down (`make`), and every rider reads them there (`ride`). With K riders sharing pays if
`K * scan > make + K * ride`. All amounts are processor seconds.

The priors are measured on lineitem (16 columns, 128 bytes per row), at scale 1 on a quiet core;
what each table really takes is learnt from what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from queryard.core.errors import QueryardError, unknown_name


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds per byte of text, value made, value written down, segment ridden on, and row read.

    Where segments are parsed by another reader than that of a query by itself, `made_byte_s` and
    `made_value_s` are its prices. `cut_byte_s` is what finding the segments takes.
    """

    byte_s: float
    value_s: float
    copy_s: float
    made_byte_s: float | None = None
    made_value_s: float | None = None
    cut_byte_s: float = 0.8e-9
    segment_s: float = 2e-3
    row_s: float = 27e-9


PRIORS: Mapping[str, Prices] = {
    "csv": Prices(3.4e-9, 38e-9, 21e-9, made_byte_s=2.2e-9, made_value_s=27e-9),
    "csv.gz": Prices(4.9e-9, 38e-9, 21e-9, made_byte_s=4.3e-9, made_value_s=27e-9, cut_byte_s=3e-9),
    # Files that only DuckDB reads, because of their dialect or types.
    "odd csv": Prices(3.4e-9, 38e-9, 36e-9, made_byte_s=4.3e-9),
    "odd csv.gz": Prices(4.9e-9, 38e-9, 36e-9, made_byte_s=6.4e-9, cut_byte_s=3e-9),
    "json": Prices(0.8e-9, 60e-9, 36e-9, made_byte_s=1.7e-9),
    "json.gz": Prices(2.0e-9, 65e-9, 36e-9, made_byte_s=3.8e-9, cut_byte_s=3e-9),
    # Nothing is taken apart: a narrow column costs less to decode than to write down.
    "parquet": Prices(0.0, 6e-9, 21e-9, cut_byte_s=0.0),
}
"""By the kind of the files; sizes are those of the text. Measured by `bench/shared/segments.py`."""


TYPICAL_ROW_BYTES = 100.0
"""Of a row of text, where no rows were counted."""
MOST_AT_ONCE = 2.0
"""A query that takes more than so many times its scan does something else besides."""
# What is no pace, where one is read that was kept.
_MOST_LOG = math.log(1e4)


def sharing_pays(
    scans_s: Sequence[float], make_s: float, rides_s: Sequence[float], further: float = 0.0
) -> bool:
    """Whether riders are served with less work together than each by itself.

    `scans_s` and `rides_s` are what each rider takes alone and on what was made. `further` riders
    are expected to come before what was made is gone; they are like those that are here.

    >>> sharing_pays([1.0], 1.5, [0.05]), sharing_pays([1.0, 1.0], 1.5, [0.05, 0.05])
    (False, True)
    >>> sharing_pays([1.0], 1.5, [0.05], further=1.0)
    True
    >>> sharing_pays([0.04] * 20, 0.1, [0.05] * 20)  # narrow Parquet: never
    False
    """
    return saving_s(scans_s, make_s, rides_s, further) > 0.0


def saving_s(
    scans_s: Sequence[float], make_s: float, rides_s: Sequence[float], further: float = 0.0
) -> float:
    """The processor seconds that sharing saves; below 0 if it costs more.

    >>> saving_s([1.0, 1.0], 1.5, [0.25, 0.25])
    0.0
    """
    if len(scans_s) != len(rides_s):
        raise QueryardError(
            f"{len(scans_s)} scans and {len(rides_s)} rides: give one of each per rider"
        )
    if not scans_s:
        return 0.0
    gains = [scan - ride for scan, ride in zip(scans_s, rides_s, strict=True)]
    return math.fsum(gains) * (1.0 + further / len(gains)) - make_s


@dataclass(slots=True)
class _Factor:
    """By how much something takes longer than the prior says: a mean of logarithms."""

    log: float = 0.0
    seen: int = 0

    def learn(self, ratio: float) -> None:
        # The prior counts like one observation; what is old is forgotten at last.
        self.seen = min(self.seen + 1, 20)
        self.log += math.log(ratio) / (self.seen + 1)

    @property
    def value(self) -> float:
        return math.exp(self.log)

    def take_state(self, state: Any) -> None:
        """Go on from another one; what is none is ignored."""
        match state:
            case [int() | float() as log, int() as seen] if abs(log) <= _MOST_LOG and seen >= 0:
                self.log, self.seen = float(log), min(seen, 20)


@dataclass(slots=True)
class SharingCosts:
    """What one table takes to be scanned, made and ridden on, learnt from what was seen.

    >>> costs = SharingCosts.of("csv")
    >>> round(costs.scan_s(773e6, 6_001_215, ["a", "b"]), 1)
    3.1
    >>> round(costs.make_s(773e6, 6_001_215, ["a", "b"]), 1)
    2.3
    >>> round(costs.ride_s(6_001_215, 23), 2)
    0.21
    >>> for _ in range(8):
    ...     costs.saw_make(773e6, 6_001_215, ["a", "b"], 4.6)
    >>> round(costs.scan_s(773e6, 6_001_215, ["a", "b"]), 1)
    5.8

    Scans and makes have a pace each. Until one of them is seen, it is taken to be that of the
    other: on a slow machine both are slow.
    """

    prices: Prices
    _make: _Factor = field(default_factory=_Factor)
    _scan: _Factor = field(default_factory=_Factor)
    _columns: dict[str, _Factor] = field(default_factory=dict)
    _ride: _Factor = field(default_factory=_Factor)
    # Of what was made so far, older segments counting less.
    _bytes: float = 0.0
    _rows: float = 0.0

    @classmethod
    def of(cls, kind: str) -> SharingCosts:
        """With the prior of a kind of files."""
        if kind not in PRIORS:
            raise QueryardError(unknown_name("kind of files", kind, PRIORS))
        return cls(PRIORS[kind])

    @property
    def makes(self) -> int:
        """How many segments were seen to be made, at most 20."""
        return self._make.seen

    @property
    def scans(self) -> int:
        """How many queries were seen that scanned the table by themselves, at most 20."""
        return self._scan.seen

    @property
    def rides(self) -> int:
        """How many rides were seen, at most 20."""
        return self._ride.seen

    def rows_in(self, size_bytes: float) -> float:
        """How many rows so much text has, after those that were counted."""
        if not self._rows or not self._bytes:
            return size_bytes / TYPICAL_ROW_BYTES
        return size_bytes * self._rows / self._bytes

    def scan_s(self, size_bytes: float, rows: float, columns: Collection[str]) -> float:
        """What a query takes to read some columns by itself."""
        prices = self.prices
        pace = self._scan if self._scan.seen else self._make
        values = math.fsum(self._column(name) for name in columns)
        return prices.byte_s * size_bytes * pace.value + prices.value_s * rows * values

    def make_s(self, size_bytes: float, rows: float, columns: Collection[str]) -> float:
        """What it takes to read some columns and write them down."""
        values_s = math.fsum(self.column_s(rows, name) for name in columns)
        return self.taking_apart_s(size_bytes) + values_s

    def taking_apart_s(self, size_bytes: float) -> float:
        """The part of `make_s` that is the same for any columns."""
        prices = self.prices
        pace = self._make if self._make.seen else self._scan
        byte_s = prices.byte_s if prices.made_byte_s is None else prices.made_byte_s
        return byte_s * size_bytes * pace.value

    def column_s(self, rows: float, name: str) -> float:
        """The part of `make_s` that is for one column."""
        prices = self.prices
        value_s = prices.value_s if prices.made_value_s is None else prices.made_value_s
        return (value_s + prices.copy_s) * rows * self._column(name)

    def cut_s(self, size_bytes: float) -> float:
        """What it takes to find the segments of a table."""
        pace = self._make if self._make.seen else self._scan
        return self.prices.cut_byte_s * size_bytes * pace.value

    def ride_s(self, rows: float, segments: float) -> float:
        """What a query takes on what was made of so many segments."""
        prices = self.prices
        return (prices.segment_s * segments + prices.row_s * rows) * self._ride.value

    def saw_make(
        self, size_bytes: float, rows: float, columns: Collection[str], seconds: float
    ) -> None:
        """A segment was read and written down."""
        self._bytes = 0.9 * self._bytes + size_bytes
        self._rows = 0.9 * self._rows + rows
        expected_s = self.make_s(size_bytes, rows, columns)
        if seconds > 0.0 and expected_s > 0.0:
            self._saw(self._make, self._scan, columns, seconds / expected_s)

    def saw_scan(
        self, size_bytes: float, rows: float, columns: Collection[str], seconds: float
    ) -> None:
        """A query has read some columns by itself, and did little else."""
        expected_s = self.scan_s(size_bytes, rows, columns)
        if seconds > 0.0 and expected_s > 0.0:
            ratio = min(MOST_AT_ONCE, max(1 / MOST_AT_ONCE, seconds / expected_s))
            self._saw(self._scan, self._make, columns, ratio)

    def saw_ride(self, rows: float, segments: float, seconds: float) -> None:
        """A query has read what was made of so many segments."""
        expected_s = self.ride_s(rows, segments)
        if seconds > 0.0 and expected_s > 0.0:
            self._ride.learn(seconds / expected_s)

    def to_state(self) -> dict[str, Any]:
        """What was learnt, as plain data."""
        return {
            "prices": list(astuple(self.prices)),
            "make": [self._make.log, self._make.seen],
            "scan": [self._scan.log, self._scan.seen],
            "ride": [self._ride.log, self._ride.seen],
            "columns": {name: [each.log, each.seen] for name, each in self._columns.items()},
            "bytes": self._bytes,
            "rows": self._rows,
        }

    def take_state(self, state: Any) -> None:
        """Go on from what such costs have learnt, if they began with the same prices.

        >>> taught, new = SharingCosts.of("json"), SharingCosts.of("json")
        >>> taught.saw_make(1e6, 1e4, ["a"], 1.0)
        >>> new.take_state(taught.to_state())
        >>> new == taught
        True
        """
        if not isinstance(state, Mapping) or state.get("prices") != list(astuple(self.prices)):
            return
        for factor, name in ((self._make, "make"), (self._scan, "scan"), (self._ride, "ride")):
            factor.take_state(state.get(name))
        columns = state.get("columns")
        for name, seen in columns.items() if isinstance(columns, Mapping) else ():
            self._columns.setdefault(str(name), _Factor()).take_state(seen)
        match state.get("bytes"), state.get("rows"):
            case (int() | float() as size, int() | float() as rows) if size >= 0 and rows >= 0:
                self._bytes, self._rows = float(size), float(rows)

    def _saw(self, pace: _Factor, other: _Factor, columns: Collection[str], ratio: float) -> None:
        """Move everything that was part of it: which part was off cannot be seen at once."""
        if not pace.seen:
            pace.log = other.log
        pace.learn(ratio)
        for name in columns:
            self._columns.setdefault(name, _Factor()).learn(ratio)

    def _column(self, name: str) -> float:
        found = self._columns.get(name)
        return 1.0 if found is None else found.value


@dataclass(slots=True)
class FurtherRiders:
    """How many more riders are to be expected once a table has begun to be read.

    A mean over earlier passes of the table, in which old ones count less; the prior is half a
    rider, with the weight of two passes.

    >>> riders = FurtherRiders()
    >>> riders.expected
    0.5
    >>> for joined in (4, 4, 4, 4):
    ...     riders.saw_pass(joined)
    >>> round(riders.expected, 1)
    3.0
    """

    forget: float = 0.9
    _riders: float = 1.0
    _passes: float = 2.0

    @property
    def expected(self) -> float:
        return self._riders / self._passes

    def saw_pass(self, joined: float) -> None:
        """A pass has ended which so many riders have joined after it had begun."""
        if joined < 0.0:
            raise QueryardError(f"{joined} riders joined: must be 0 or more")
        self._riders = self.forget * self._riders + joined
        self._passes = self.forget * self._passes + 1.0
