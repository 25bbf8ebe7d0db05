"""Jobs in the making: fragments are closed into jobs, and rows are sent between their phases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from queryard.core.model import Operator
from queryard.sql.catalog.canonical import canonical_splits, is_text_table
from queryard.sql.catalog.model import NotSplittable

from .contract import CatalogLike, SplitLike
from .costs import SCAN_ROW_S, SCAN_VALUE_S, SHUFFLE_VALUE_S, WRITE_VALUE_S, Sizing, tasks_for
from .errors import NotStageable
from .fragment import (
    ChunkSource,
    ExchangeSource,
    Fragment,
    NoSource,
    Piece,
    Source,
    TableSource,
    Wrap,
)
from .oracle import Field
from .plan import PART, Branch, ChunkRead, NothingRead, Read, ReadSplit, StagedJob, TableRead
from .types import packed, unpacked


@dataclass(slots=True)
class OpenJob:
    """A job with a reduce phase that still grows."""

    name: str
    operator: Operator
    partitions: int
    branches: list[Branch]
    story: tuple[str, ...]
    side_bytes: list[float]
    scan_bytes: float
    fold_sql: str = ""


class Assembly:
    """The jobs of one plan, in an order in which they can run."""

    def __init__(self, catalog: CatalogLike, sizing: Sizing) -> None:
        self.jobs: list[StagedJob] = []
        self.frames: dict[str, Any] = {}
        self._catalog = catalog
        self._sizing = sizing
        self._open: dict[str, OpenJob] = {}
        self._numbers = itertools.count(1)

    def splits(self, table: str, target_bytes: float) -> tuple[SplitLike, ...]:
        """The splits of a table, if it has any to offer."""
        try:
            return tuple(self._catalog[table].splits(target_bytes))
        except NotSplittable as error:
            raise NotStageable(str(error)) from error

    def mappable(self, fragment: Fragment) -> Fragment:
        """The fragment, or what it gives as a job's result if it is a reduce phase."""
        return fragment if fragment.open_job is None else self.reading(self.closed(fragment))

    def closed(self, fragment: Fragment) -> StagedJob:
        """The fragment as a job; others read its result."""
        fragment = flushed(fragment)
        source = fragment.pieces[0].source
        if fragment.untouched and isinstance(source, ChunkSource):
            return next(job for job in self.jobs if job.name == source.job)
        items = ", ".join(packed(f.name, f.type) for f in fragment.fields) or "1 AS one"
        written = replace(
            fragment,
            pieces=[piece.around(Wrap(f"SELECT {items} FROM ")) for piece in fragment.pieces],
            seconds=fragment.seconds + fragment.rows * WRITE_VALUE_S * len(fragment.fields),
        )
        return self.finished(written)

    def finished(self, fragment: Fragment) -> StagedJob:
        """The fragment as a job, its columns as they are."""
        found = fragment.open_job
        if found is not None:
            job = self._closed_reduce(self._open.pop(found), fragment)
        else:
            joins = any("join" in part for part in fragment.story)
            operator: Operator = "join" if joins else "extract"
            if any(part.startswith("group") for part in fragment.story):
                operator = "groupby"
            job = StagedJob(
                name=self._name(),
                operator=operator,
                description=", ".join(fragment.story),
                branches=tuple(self._branches(fragment, 0)),
                fields=fragment.fields,
                rows_expected=fragment.rows,
                bytes_expected=fragment.bytes,
                map_scan_bytes=fragment.scan_bytes,
                most_rows=fragment.most_rows,
            )
        self.jobs.append(job)
        return job

    def _closed_reduce(self, job: OpenJob, fragment: Fragment) -> StagedJob:
        (piece,) = fragment.pieces
        story = list(dict.fromkeys([*job.story, *fragment.story]))
        return StagedJob(
            name=job.name,
            operator=job.operator,
            description=", ".join(story),
            branches=tuple(job.branches),
            fields=fragment.fields,
            rows_expected=fragment.rows,
            bytes_expected=fragment.bytes,
            partitions=job.partitions,
            reduce_sql=piece.text(""),
            reduce_builds=piece.builds,
            side_bytes_expected=tuple(job.side_bytes),
            map_scan_bytes=job.scan_bytes,
            reduce_scan_bytes=fragment.scan_bytes,
            most_rows=fragment.most_rows,
            fold_sql=job.fold_sql,
        )

    def reading(self, job: StagedJob) -> Fragment:
        """A fragment that reads the result of a job."""
        items = ", ".join(unpacked(field.name, field.type) for field in job.fields) or "1 AS one"
        chunks = job.result_tasks
        seconds = job.rows_expected * (SCAN_ROW_S + SCAN_VALUE_S * len(job.fields)) / 2
        many = self._sizing.target_bytes is not None and (
            job.bytes_expected > self._sizing.target_bytes
        )
        groups = chunks if many else min(chunks, tasks_for(seconds, 0.0))
        piece = Piece(ChunkSource(job.name, chunks, groups), f"SELECT {items} FROM ")
        return Fragment(
            [piece],
            job.fields,
            job.rows_expected,
            job.bytes_expected,
            seconds,
            story=(f"read {job.name}",),
            untouched=True,
            most_rows=job.most_rows,
        )

    def gathered(self, fragment: Fragment) -> Fragment:
        """The fragment with all rows of a job's result in one task."""
        (piece,) = fragment.pieces
        source = piece.source
        if isinstance(source, ChunkSource):
            piece = replace(piece, source=replace(source, groups=1))
        return replace(fragment, pieces=[piece])

    def exchange(
        self, sides: Sequence[tuple[Fragment, Sequence[str]]], operator: Operator, work_s: float
    ) -> Fragment:
        """Open a job that brings rows with equal keys together; side 0 as a fragment."""
        fragments = [flushed(self.mappable(fragment)) for fragment, _ in sides]
        size = sum(fragment.bytes for fragment in fragments)
        keys = sides[0][1]
        partitions = self._sizing.partitions_for(size, work_s) if keys else 1
        job = OpenJob(self._name(), operator, partitions, [], (), [], 0.0)
        self._open[job.name] = job
        for fragment, (_, expressions) in zip(fragments, sides, strict=True):
            self.send(job.name, fragment, expressions)
        return self.received(job.name, 0, fragments[0])

    def send(self, job_name: str, fragment: Fragment, keys: Sequence[str]) -> int:
        """Let the map tasks of an open job send a fragment, by hashes of keys; its side."""
        job = self._open[job_name]
        sql = _sending(fragment.fields, keys, job.partitions)
        shuffle_s = fragment.rows * SHUFFLE_VALUE_S * len(fragment.fields)
        sent = replace(
            fragment,
            pieces=[piece.around(sql) for piece in fragment.pieces],
            seconds=fragment.seconds + shuffle_s,
        )
        side = len(job.side_bytes)
        job.branches += self._branches(sent, side)
        job.story = (*job.story, *fragment.story)
        job.side_bytes.append(fragment.bytes)
        job.scan_bytes += fragment.scan_bytes
        return side

    def fold(self, received: Fragment, keys: Sequence[str], combined: Wrap) -> None:
        """Let outputs of the maps of an open job, its first side, be put together on the way."""
        (piece,) = received.pieces
        assert received.open_job is not None
        job = self._open[received.open_job]
        sent = piece.around(combined).around(_sending(received.fields, keys, job.partitions))
        job.fold_sql = sent.text("")

    def received(self, job_name: str, side: int, sent: Fragment) -> Fragment:
        """What arrives of a side in the reduce tasks of an open job."""
        job = self._open[job_name]
        items = ", ".join(unpacked(f.name, f.type) for f in sent.fields) or "1 AS one"
        piece = Piece(
            ExchangeSource(job_name, job.partitions), f"SELECT {items} FROM x_{job_name}_{side}"
        )
        return Fragment([piece], sent.fields, sent.rows, sent.bytes, 0.0)

    def _branches(self, fragment: Fragment, side: int) -> list[Branch]:
        work_s = fragment.seconds / max(len(fragment.pieces), 1)
        return [
            Branch(
                self._read(piece.source, work_s, fragment),
                piece.before,
                piece.after,
                piece.builds,
                side,
            )
            for piece in fragment.pieces
        ]

    def _read(self, source: Source, work_s: float, fragment: Fragment) -> Read:
        if isinstance(source, TableSource):
            splits, canonical = source.splits, False
            if splits is None:
                splits, canonical = self._cut(source, work_s, fragment.build_seconds)
            self.frames.update((s.relation, s.frame) for s in splits if s.frame is not None)
            table = self._catalog[source.table]
            is_text = canonical and is_text_table(table)
            read = tuple(
                ReadSplit(s.relation, s.bytes, s.frame is not None, is_text, s.places)
                for s in splits
            )
            fingerprint = table.fingerprint if canonical else ""
            return TableRead(
                source.table, read, source.empty, canonical, source.columns, fingerprint
            )
        if isinstance(source, ChunkSource):
            job = next(job for job in self.jobs if job.name == source.job)
            groups = _even(source.chunks, source.groups)
            return ChunkRead(source.job, groups, job.bytes_expected)
        assert isinstance(source, NoSource)
        return NothingRead()

    def _cut(
        self, source: TableSource, work_s: float, build_s: float
    ) -> tuple[tuple[SplitLike, ...], bool]:
        """The canonical splits of a table, and True; or fewer, if each task builds large tables."""
        table = self._catalog[source.table]
        try:
            splits = tuple(canonical_splits(table, self._sizing.split_bytes))
        except NotSplittable as error:
            raise NotStageable(str(error)) from error
        count = tasks_for(work_s, build_s)
        is_own = build_s > 0 and count < len(splits) and not is_text_table(table)
        if is_own or any(split.frame is not None for split in splits):
            return self.splits(source.table, max(math.ceil(source.bytes / count), 1)), False
        return splits, True

    def _name(self) -> str:
        return f"j{next(self._numbers)}"


def _sending(fields: Sequence[Field], keys: Sequence[str], partitions: int) -> Wrap:
    """Columns as they are sent to a reduce phase, each row with the number of its partition."""
    columns = [packed(field.name, field.type) for field in fields]
    if partitions > 1:
        # Hashed twice: DuckDB's own hash tables use the bits of the first.
        narrow = "UTINYINT" if partitions <= 256 else "USMALLINT"
        place = f"hash(hash({', '.join(keys)})) % {partitions}"
        columns.append(f"CAST({place} AS {narrow}) AS {PART}")
    return Wrap(f"SELECT {', '.join(columns) or '1 AS one'} FROM ")


def flushed(fragment: Fragment) -> Fragment:
    """The fragment with a pending ORDER BY or LIMIT put around its SQL."""
    if not fragment.tail:
        return fragment
    pieces = [piece.around(Wrap("SELECT * FROM ", fragment.tail)) for piece in fragment.pieces]
    return replace(fragment, pieces=pieces, tail="", untouched=False)


def _even(count: int, groups: int) -> tuple[tuple[int, ...], ...]:
    """The numbers below `count` in as equal groups as can be.

    >>> _even(5, 2)
    ((0, 1, 2), (3, 4))
    """
    bounds = [math.ceil(i * count / groups) for i in range(groups + 1)]
    return tuple(tuple(range(a, b)) for a, b in itertools.pairwise(bounds))
