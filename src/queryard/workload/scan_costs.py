"""What it costs to parse a table for oneself, to parse it for all, and to ride on what was kept.

Measured with DuckDB on lineitem, as multiples of one query's own scan. Text was kept as Parquet in
memory (ten aggregations over CSV: a query alone 1.02 s, to parse and keep 2.49 s, a rider 0.041 s).
Of long strings in Parquet the break-even (1.4 to 2.4 riders) and the gain of ten riders (2.1 to
4.6) were measured; the costs are those that give the middle of both. Narrow columns of Parquet cost
less to decode than to write down (twenty riders: 284 ms apart, 329 ms together).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from queryard.core.errors import InvalidModel, unknown_name

from .model import JobTruth


@dataclass(frozen=True, slots=True)
class ScanCosts:
    """Parsing and keeping, and riding, as multiples of a query's own scan.

    `kept` is what is kept of a byte of the table.
    """

    make: float
    ride: float
    kept: float

    @property
    def break_even(self) -> float:
        """From how many riders on sharing pays.

        >>> round(SCAN_COSTS["text"].break_even, 1), round(SCAN_COSTS["narrow"].break_even)
        (2.5, 84)
        """
        return self.make / (1.0 - self.ride)


SCAN_COSTS: Mapping[str, ScanCosts] = {
    "text": ScanCosts(make=2.44, ride=0.04, kept=19 / 120),
    "strings": ScanCosts(make=1.56, ride=0.18, kept=1.0),
    "narrow": ScanCosts(make=4.2, ride=0.95, kept=1.0),
}


def with_scan_costs(truth: JobTruth, kind: str) -> JobTruth:
    """The truth of a job that reads a table of this kind: text, (long) strings, narrow columns.

    >>> truth = with_scan_costs(JobTruth(map_s=2.0), "text")
    >>> truth.make_s, truth.ride_s
    (4.88, 0.08)
    """
    costs = SCAN_COSTS.get(kind)
    if costs is None:
        raise InvalidModel(unknown_name("kind of table", kind, SCAN_COSTS))
    scan_s = truth.work_s or truth.map_s
    return replace(truth, make_s=costs.make * scan_s, ride_s=costs.ride * scan_s)
