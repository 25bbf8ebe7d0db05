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
from dataclasses import dataclass, field

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
    """

    prices: Prices
    _text: _Factor = field(default_factory=_Factor)
    _columns: dict[str, _Factor] = field(default_factory=dict)
    _ride: _Factor = field(default_factory=_Factor)

    @classmethod
    def of(cls, kind: str) -> SharingCosts:
        """With the prior of a kind of files."""
        if kind not in PRIORS:
            raise QueryardError(unknown_name("kind of files", kind, PRIORS))
        return cls(PRIORS[kind])

    @property
    def makes(self) -> int:
        """How many segments were seen to be made, at most 20."""
        return self._text.seen

    @property
    def rides(self) -> int:
        """How many rides were seen, at most 20."""
        return self._ride.seen

    def scan_s(self, size_bytes: float, rows: float, columns: Collection[str]) -> float:
        """What a query takes to read some columns by itself."""
        prices = self.prices
        values = math.fsum(self._column(name) for name in columns)
        return prices.byte_s * size_bytes * self._text.value + prices.value_s * rows * values

    def make_s(self, size_bytes: float, rows: float, columns: Collection[str]) -> float:
        """What it takes to read some columns and write them down."""
        prices = self.prices
        values = math.fsum(self._column(name) for name in columns)
        byte_s = prices.byte_s if prices.made_byte_s is None else prices.made_byte_s
        value_s = prices.value_s if prices.made_value_s is None else prices.made_value_s
        value_s += prices.copy_s
        return byte_s * size_bytes * self._text.value + value_s * rows * values

    def cut_s(self, size_bytes: float) -> float:
        """What it takes to find the segments of a table."""
        return self.prices.cut_byte_s * size_bytes * self._text.value

    def ride_s(self, rows: float, segments: float) -> float:
        """What a query takes on what was made of so many segments."""
        prices = self.prices
        return (prices.segment_s * segments + prices.row_s * rows) * self._ride.value

    def saw_make(
        self, size_bytes: float, rows: float, columns: Collection[str], seconds: float
    ) -> None:
        """A segment was read and written down."""
        self._saw(self.make_s(size_bytes, rows, columns), columns, seconds)

    def saw_ride(self, rows: float, segments: float, seconds: float) -> None:
        """A query has read what was made of so many segments."""
        expected_s = self.ride_s(rows, segments)
        if seconds > 0.0 and expected_s > 0.0:
            self._ride.learn(seconds / expected_s)

    def _saw(self, expected_s: float, columns: Collection[str], seconds: float) -> None:
        """Move everything that was part of it: which part was off cannot be seen at once."""
        if not (seconds > 0.0 and expected_s > 0.0):
            return
        ratio = seconds / expected_s
        self._text.learn(ratio)
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
