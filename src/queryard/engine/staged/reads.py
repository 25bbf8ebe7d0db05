"""The segments of text that a query scans, read once for all tasks of a launch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from queryard.engine.errors import InputMissing
from queryard.engine.segments import SegmentStore, Stop
from queryard.engine.segments.text import rows_of
from queryard.sql.catalog.model import Table

from .task_graph import SegmentRead


class SegmentReads:
    """Tables of text as they were when a query was planned, and the store that parses them.

    `keeps` are the tables of which parsed segments are worth keeping though one query alone reads
    them: others are expected.
    """

    def __init__(
        self, tables: Mapping[str, Table], store: SegmentStore, keeps: frozenset[str] = frozenset()
    ) -> None:
        self._tables = tables
        self._store = store
        self._keeps = keeps

    @contextmanager
    def reading(
        self, reads: Sequence[SegmentRead], stop: Stop | None = None
    ) -> Iterator[tuple[str, ...]]:
        """What goes behind FROM for each of these reads of one segment, parsed once.

        `stop` stops the parsing. A query that is alone reads the text as DuckDB would, unless
        parsed segments are kept.
        """
        first = reads[0]
        table = self._table(first)
        if any(read[:3] != first[:3] for read in reads):
            raise InputMissing(f"table {first.table}: riders read different states of its files")
        segment = self._store.segments(table)[first.number]
        is_alone = len(reads) == 1 and first.table not in self._keeps
        with ExitStack() as stack:
            if is_alone and not self._store.has(segment, first.columns):
                relation, _ = stack.enter_context(rows_of(table, segment))
                yield (relation,)
                return
            every = dict.fromkeys(name for read in reads for name in read.columns)
            sources = []
            for read in reads:
                others = [name for name in every if name not in read.columns]
                sources.append(
                    stack.enter_context(
                        self._store.reading(table, segment, read.columns, others, stop)
                    )
                )
            yield tuple(sources)

    def rode(self, read: SegmentRead, seconds: float) -> None:
        """A task took so many processor seconds on the segment."""
        table = self._tables.get(read.table)
        if table is not None and table.fingerprint == read.fingerprint:
            self._store.rode(table, self._store.segments(table)[read.number], seconds)

    def _table(self, read: SegmentRead) -> Table:
        table = self._tables[read.table]
        if table.fingerprint != read.fingerprint:
            raise InputMissing(f"table {read.table}: its files have changed; run the query again")
        return table
