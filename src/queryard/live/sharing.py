"""Whether a query should ride on a shared scan of text, or DuckDB should run it as it is.

Text costs more to parse than to work on, so queries that read one table at the same time should
parse it once. A query that is alone begins a shared scan if that costs little more than DuckDB's
own, measured by how many queries are likely to follow: to find where a file can be cut takes a look
at all of it, and what was parsed is written down only for others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Literal, NamedTuple

from queryard.engine.segments import SegmentStore
from queryard.engine.syntax.classify import Classified, all_names
from queryard.estimate.sharing import FurtherRiders, sharing_pays
from queryard.sql.catalog import Catalog, Table
from queryard.sql.catalog.canonical import is_text_table
from queryard.sql.catalog.model import CatalogError
from queryard.sql.catalog.segments import Segments, known_segments

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
# By how much text is taken to be compressed.
COMPRESSION = 3.0
# Of so large a part of the segments a query must find what it reads, to ride for that alone.
MOST = 0.5
# Words of queries that may end before they have read all.
_ENDING_EARLY = frozenset({"limit", "sample", "tablesample", "fetch", "exists"})
_NONE: Mapping[str, float] = MappingProxyType({})


class TextScan(NamedTuple):
    """A table of text that a query reads: what parsing it takes alone, for all, and riding.

    To parse it for all, `make_s` goes into taking it apart, and more into each of the columns that
    the query names; what is kept by now is not parsed again.
    """

    table: str
    scan_s: float
    make_s: float
    ride_s: float
    columns: Mapping[str, float] = _NONE
    is_kept: bool = False  # some of its columns, in most of the parsed segments
    bytes: float = 0.0
    rows: float = 0.0
    is_all: bool = False  # that the query does is to read it, to its end


class Choice(NamedTuple):
    """Which plan, why, and the tables of which parsed segments are worth keeping."""

    plan: Literal["native", "staged"]
    reason: str
    keeps: frozenset[str] = frozenset()
    needs_kept: bool = False  # it pays only if the columns that the plan reads are kept


def text_scans(
    catalog: Catalog, statements: Sequence[Classified], store: SegmentStore
) -> tuple[TextScan, ...]:
    """The tables of text that statements name and that are worth sharing."""
    names = all_names(statements)
    named = [table for table in catalog.tables.values() if table.name.lower() in names]
    is_all = len(named) == 1 and names.isdisjoint(_ENDING_EARLY)
    found = []
    for table in named:
        if not is_text_table(table) or table.elsewhere or _is_small(table):
            continue
        try:
            costs = store.costs(table)
            columns = columns_named(table, statements)
            statistics = catalog.statistics(table.key)
        except CatalogError:
            continue  # DuckDB will say what is wrong with it
        known = known_segments(table, store.target_bytes)
        size = _text_bytes(table, known)
        rows = costs.rows_in(size)
        if statistics.source == "analysed":
            rows = statistics.rows
        scan_s = costs.scan_s(size, rows, columns)
        if scan_s < SMALL_S:
            continue
        segments = max(1.0, size / store.target_bytes) if known is None else len(known)
        make_s = costs.taking_apart_s(size)
        made = {name: costs.column_s(rows, name) for name in columns}
        is_kept = False
        if known is None:
            make_s += costs.cut_s(size)
        else:
            make_s *= 1.0 - store.share_kept(known, columns)
            kept = {name: store.share_kept(known, [name]) for name in columns}
            made = {name: seconds * (1.0 - kept[name]) for name, seconds in made.items()}
            is_kept = max(kept.values(), default=store.share_kept(known)) >= MOST
        ride_s = FIXED_S + costs.ride_s(rows, segments)
        found.append(TextScan(table.key, scan_s, make_s, ride_s, made, is_kept, size, rows, is_all))
    return tuple(found)


def small_text(catalog: Catalog, statements: Sequence[Classified]) -> str:
    """Why no scan of text is shared by statements that name tables of text; "" if they do not."""
    names = all_names(statements)
    tables = [t for t in catalog.tables.values() if t.name.lower() in names and is_text_table(t)]
    if not tables or any(table.elsewhere for table in tables):
        return ""
    listed = ", ".join(sorted(table.key for table in tables))
    return f"{listed}: parsed in less than {SMALL_S} s of a core, so sharing would save little"


def columns_named(table: Table, statements: Sequence[Classified]) -> tuple[str, ...]:
    """The columns of a table that statements may read, by the words in them.

    A column of another table with the same name counts, too: only planning could tell.
    """
    if any(_reads_all(statement.words) for statement in statements):
        return tuple(column.name for column in table.columns)
    names = all_names(statements)
    return tuple(column.name for column in table.columns if column.name.lower() in names)


def _reads_all(words: Sequence[str]) -> bool:
    """Whether some words ask for all columns: `SELECT *`, `t.*`, `COLUMNS(...)`, `FROM t`."""
    if words[:1] == ("from",) or "columns" in words:
        return True
    return any(
        (word == "*" and before in ("select", "distinct", "all", ",", "."))
        or (word == "from" and before == "(")
        for before, word in pairwise(words)
    )


def _is_small(table: Table) -> bool:
    return _text_bytes(table, None) * MOST_BYTE_S < SMALL_S


def _text_bytes(table: Table, known: Segments | None) -> float:
    """How large the text of a table is; of compressed files, once they were looked into."""
    if known is not None and all(segment.is_range for segment in known):
        return float(sum(segment.bytes for segment in known))
    packed = any(file.uri.lower().endswith((".gz", ".zst")) for file in table.files)
    return table.bytes * (COMPRESSION if packed else 1.0)


def making_s(riders: Iterable[TextScan]) -> float:
    """What it takes to parse a table for all of its riders: the columns that any of them wants.

    >>> making_s([TextScan("t", 3, 1, 0.1, {"a": 0.2}), TextScan("t", 3, 1, 0.1, {"b": 0.3})])
    1.5
    """
    columns: dict[str, float] = {}
    make_s = 0.0
    for rider in riders:
        make_s = max(make_s, rider.make_s)
        for name, seconds in rider.columns.items():
            columns[name] = max(seconds, columns.get(name, 0.0))
    return make_s + sum(columns.values())


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
        riding: Mapping[str, Sequence[TextScan]],
        now: float,
        came_before: int = 0,
    ) -> Choice:
        """The plan of one more query; `riding` are the scans of those that share, by table.

        `came_before` is how many of the arrivals so far are those of the query itself.
        """
        if not scans:
            return Choice("native", "it reads no text that is worth sharing")
        scan = max(scans, key=lambda each: each.scan_s)
        riders = [scan, *riding.get(scan.table, ())]
        on_it = len(riders) - 1
        window_s = max(WINDOW_S, scan.scan_s)
        arrivals = self._arrivals.get(scan.table) or _Arrivals()
        recent = arrivals.since(now - window_s) - came_before
        # Those that ride are among the recent ones; as many as the others are likely to come.
        further = max(float(recent - on_it), arrivals.expected(now))
        scans_s = [rider.scan_s for rider in riders]
        rides_s = [rider.ride_s for rider in riders]
        make_s = making_s(riders)
        if not sharing_pays(scans_s, make_s, rides_s, further):
            if scan.is_kept:
                reason = f"parsed segments of {scan.table} are kept"
                return Choice("staged", reason, needs_kept=True)
            alone = f"no other query reads {scan.table}, so sharing saves nothing"
            company = f"too few queries read {scan.table} for a shared scan to pay"
            return Choice("native", company if recent else alone)
        costs = f"to ride takes about {scan.ride_s:.2g} s of a core instead of {scan.scan_s:.2g}"
        if not recent:
            reason = (
                f"it begins a shared scan of {scan.table}, which is text: that takes about "
                f"{make_s + scan.ride_s:.2g} s of a core instead of {scan.scan_s:.2g}, and "
                f"{further:.2g} queries are expected to join"
            )
        else:
            others = f"{on_it} on it now" if on_it else f"{recent} in the last {window_s:.0f} s"
            reason = (
                f"it rides on the shared scan of {scan.table}, which is text ({others}): {costs}"
            )
        return Choice("staged", reason, frozenset([scan.table]))
