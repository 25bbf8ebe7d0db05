"""Parsed segments that are kept, each on its host, within a budget: part of the hidden truth."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping

from queryard.core.model import Table

# The kernel is told of what is kept whenever it has changed by this share of a table.
STEP = 0.125
# A segment: its table and its place there.
Segment = tuple[str, int]


class Segments:
    """What was parsed and kept, the segment that was read last at the end.

    Of a byte of the table `kept_share` bytes are kept. `believed` are shares of tables that are
    taken to be kept, in a forecast, which does not know where and which segments.
    """

    def __init__(
        self, budget_bytes: float, kept_share: float, believed: Mapping[str, float]
    ) -> None:
        self._budget_bytes = budget_bytes
        self._kept_share = kept_share
        self._believed = dict(believed)
        self._hosts: dict[str, OrderedDict[Segment, float]] = {}
        self._used: dict[str, float] = {}
        # Table -> its segments that are kept on some host, how often; its number of splits; and
        # the share that the kernel knows of.
        self._counts: dict[str, dict[int, int]] = {}
        self._splits: dict[str, int] = {}
        self._told: dict[str, float] = {}

    def kept(self, host: str, table: Table, index: int) -> float:
        """How much of a segment is there to ride on: 1 or 0, or what a forecast believes."""
        segments = self._hosts.get(host)
        if segments is not None and (table.name, index) in segments:
            segments.move_to_end((table.name, index))
            return 1.0
        return self._believed.get(table.name, 0.0)

    def keep(self, host: str, table: Table, index: int) -> None:
        """A segment was parsed for all; what was not read for longest makes room for it."""
        size = table.splits[index].bytes * self._kept_share
        if size > self._budget_bytes or not self._budget_bytes:
            return
        segments = self._hosts.setdefault(host, OrderedDict())
        if (table.name, index) in segments:
            return
        segments[table.name, index] = size
        self._count(table.name, index, 1)
        self._splits[table.name] = len(table.splits)
        used = self._used.get(host, 0.0) + size
        while used > self._budget_bytes:
            (name, gone), freed = segments.popitem(last=False)
            self._count(name, gone, -1)
            used -= freed
        self._used[host] = used

    def drop(self, table: str) -> None:
        """A table has changed: what was kept of it is of no use any more."""
        self._believed.pop(table, None)
        self._counts.pop(table, None)
        self._told.pop(table, None)
        for host, segments in self._hosts.items():
            for segment in [each for each in segments if each[0] == table]:
                self._used[host] -= segments.pop(segment)

    def lose(self, host: str) -> None:
        """A host is gone, with what it kept."""
        for name, index in self._hosts.pop(host, ()):
            self._count(name, index, -1)
        self._used.pop(host, None)

    def changed_shares(self) -> Iterator[tuple[str, float]]:
        """(table, share of it that is kept) where the kernel should hear of it."""
        for table, counts in self._counts.items():
            share = len(counts) / self._splits[table]
            told = self._told.get(table, 0.0)
            if share != told and (share in (0.0, 1.0) or abs(share - told) >= STEP):
                self._told[table] = share
                yield table, share

    def _count(self, table: str, index: int, by: int) -> None:
        counts = self._counts.setdefault(table, {})
        counts[index] = counts.get(index, 0) + by
        if not counts[index]:
            del counts[index]
