"""Whether a query should ride on a shared scan of text, or DuckDB should run it as it is.

Text costs more to parse than to work on, so queries that read one table at the same time should
parse it once. A query that is alone begins a shared scan if that costs little more than DuckDB's
own, measured by how many queries are likely to follow: to find where a file can be cut takes a look
at all of it, and what was parsed is written down only for others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence, Set
from typing import Literal, NamedTuple

from queryard.engine.segments import SegmentStore
from queryard.estimate.sharing import FurtherRiders, sharing_pays
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.canonical import is_text_table
from queryard.sql.catalog.model import CatalogError
from queryard.sql.catalog.segments import known_segments

# A table that is parsed in less than so many core-seconds is not worth planning for.
SMALL_S = 0.25
# No text takes longer, so that a small table need not be opened to know it.
MOST_BYTE_S = 1e-7
# What planning a query that rides and an instance for its tasks take, whatever it reads.
FIXED_S = 0.06
# For so long an earlier query over a table makes another one likely.
WINDOW_S = 10.0
# A query that is alone waits so long for company, if it takes GRACE_FROM_S of a core or more.
GRACE_S = 0.03
GRACE_FROM_S = 1.0
# Columns that a query is taken to read, and how many bytes a row is taken to have.
TYPICAL_COLUMNS = 4
TYPICAL_ROW_BYTES = 100.0
# By how much text is taken to be compressed.
COMPRESSION = 3.0


class TextScan(NamedTuple):
    """A table of text that a query reads: what parsing it takes alone, for all, and riding."""

    table: str
    scan_s: float
    make_s: float
    ride_s: float
    is_kept: bool = False  # at least some of it, in parsed segments


class Choice(NamedTuple):
    """Which plan, why, and the tables of which parsed segments are worth keeping."""

    plan: Literal["native", "staged"]
    reason: str
    keeps: frozenset[str] = frozenset()


def text_scans(catalog: Catalog, names: Set[str], store: SegmentStore) -> tuple[TextScan, ...]:
    """The tables of text among these names, in lower case, that are worth sharing."""
    found = []
    for table in catalog.tables.values():
        if not is_text_table(table) or table.name.lower() not in names or table.elsewhere:
            continue
        packed = any(file.uri.lower().endswith((".gz", ".zst")) for file in table.files)
        size = table.bytes * (COMPRESSION if packed else 1.0)
        if size * MOST_BYTE_S < SMALL_S:
            continue
        rows = size / TYPICAL_ROW_BYTES
        columns = [f"column {number}" for number in range(TYPICAL_COLUMNS)]
        try:
            costs = store.costs(table)
        except CatalogError:
            continue  # DuckDB will say what is wrong with it
        scan_s = costs.scan_s(size, rows, columns)
        if scan_s >= SMALL_S:
            segments = max(1.0, size / store.target_bytes)
            make_s = costs.make_s(size, rows, columns)
            known = known_segments(table, store.target_bytes)
            if known is None:
                make_s += costs.cut_s(size)
            ride_s = FIXED_S + costs.ride_s(rows, segments)
            is_kept = known is not None and store.keeps_most(known)
            found.append(TextScan(table.key, scan_s, make_s, ride_s, is_kept))
    return tuple(found)


class _Arrivals:
    """When queries over one table came, and how many follow one, as seen so far."""

    def __init__(self) -> None:
        self.times: deque[float] = deque(maxlen=100)
        self.followers = FurtherRiders()
        self._judged: deque[list[float]] = deque()  # the time of a query, and how many followed

    def add(self, now: float) -> None:
        self._settle(now)
        for each in self._judged:
            each[1] += 1.0
        self._judged.append([now, 0.0])
        self.times.append(now)

    def since(self, time_s: float) -> int:
        return sum(each >= time_s for each in self.times)

    def expected(self, now: float) -> float:
        """How many queries are expected to follow one within `WINDOW_S`."""
        self._settle(now)
        return self.followers.expected

    def _settle(self, now: float) -> None:
        while self._judged and now - self._judged[0][0] > WINDOW_S:
            self.followers.saw_pass(self._judged.popleft()[1])


class ScanChoices:
    """Decides for each query as it comes, by the queries over its tables that came before it."""

    def __init__(self) -> None:
        self._arrivals: dict[str, _Arrivals] = {}

    def arrived(self, scans: Sequence[TextScan], now: float) -> None:
        """A query over these tables has come."""
        for scan in scans:
            self._arrivals.setdefault(scan.table, _Arrivals()).add(now)

    def may_wait(self, scans: Sequence[TextScan]) -> bool:
        """Whether a query takes so long that it may wait a moment for company."""
        return max((scan.scan_s for scan in scans), default=0.0) >= GRACE_FROM_S

    def choose(
        self,
        scans: Sequence[TextScan],
        riding: Mapping[str, int],
        now: float,
        came_before: int = 0,
    ) -> Choice:
        """The plan of one more query; `riding` counts those on shared scans, by table.

        `came_before` is how many of the arrivals so far are those of the query itself.
        """
        if not scans:
            return Choice("native", "it reads no text that is worth sharing")
        scan = max(scans, key=lambda each: each.scan_s)
        on_it = riding.get(scan.table, 0)
        window_s = max(WINDOW_S, scan.scan_s)
        arrivals = self._arrivals.get(scan.table) or _Arrivals()
        recent = arrivals.since(now - window_s) - came_before
        # Those that ride are among the recent ones; as many as the others are likely to come.
        further = max(float(recent - on_it), arrivals.expected(now))
        scans_s, rides_s = [scan.scan_s] * (1 + on_it), [scan.ride_s] * (1 + on_it)
        if not sharing_pays(scans_s, scan.make_s, rides_s, further):
            if scan.is_kept:
                return Choice("staged", f"parsed segments of {scan.table} are kept")
            alone = f"no other query reads {scan.table}, so sharing saves nothing"
            company = f"too few queries read {scan.table} for a shared scan to pay"
            return Choice("native", company if recent else alone)
        costs = f"to ride takes about {scan.ride_s:.2g} s of a core instead of {scan.scan_s:.2g}"
        if not recent:
            reason = (
                f"it begins a shared scan of {scan.table}, which is text: that takes about "
                f"{scan.make_s + scan.ride_s:.2g} s of a core instead of {scan.scan_s:.2g}, and "
                f"{further:.2g} queries are expected to join"
            )
        else:
            others = f"{on_it} on it now" if on_it else f"{recent} in the last {window_s:.0f} s"
            reason = (
                f"it rides on the shared scan of {scan.table}, which is text ({others}): {costs}"
            )
        return Choice("staged", reason, frozenset([scan.table]))
