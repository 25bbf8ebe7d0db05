"""A piece of a plan that is still open: the same SQL over every part of its input.

Operators that need no other rows than those of their task are put around the SQL. An operator
that needs rows of other tasks closes the fragment: it becomes a job, or the reduce phase of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .contract import SplitLike
from .oracle import Field


@dataclass(slots=True)
class TableSource:
    """A table, read in splits; how many is decided when the work on them is known."""

    table: str
    empty: str
    bytes: float
    columns: tuple[str, ...] = ()  # that are read
    splits: tuple[SplitLike, ...] | None = None  # None: the canonical ones, or fewer


@dataclass(slots=True)
class ChunkSource:
    """The results of the tasks of a closed job."""

    job: str
    chunks: int
    groups: int


@dataclass(slots=True)
class ExchangeSource:
    """A partition of what map tasks sent to the reduce phase of an open job."""

    job: str
    partitions: int


@dataclass(slots=True)
class NoSource:
    """One row from nothing."""


Source = TableSource | ChunkSource | ExchangeSource | NoSource


class Wrap(NamedTuple):
    """SQL to put around other SQL: what stands before it and what behind."""

    head: str
    tail: str = ""


@dataclass(slots=True)
class Piece:
    """SQL over one source, which comes between `before` and `after`.

    >>> piece = Piece(NoSource(), "SELECT a FROM ", " AS t")
    >>> piece.around(Wrap("SELECT a + 1 FROM ", " LIMIT 1")).text("t1")
    'SELECT a + 1 FROM (SELECT a FROM t1 AS t) LIMIT 1'
    """

    source: Source
    before: str
    after: str = ""
    builds: tuple[str, ...] = ()

    def around(self, wrap: Wrap, builds: Sequence[str] = ()) -> Piece:
        """The piece within more SQL."""
        return Piece(
            self.source,
            f"{wrap.head}({self.before}",
            f"{self.after}){wrap.tail}",
            tuple(dict.fromkeys([*self.builds, *builds])),
        )

    def text(self, relation: str) -> str:
        return f"{self.before}{relation}{self.after}"


@dataclass(slots=True)
class Fragment:
    """Pieces; their rows together are a relation.

    `apart` lists sets of columns: rows that agree on one of them are all in the same task. `hashed`
    lists the keys (columns and the types they were hashed in) the partitions were made by.
    """

    pieces: list[Piece]
    fields: tuple[Field, ...]
    rows: float
    bytes: float
    seconds: float
    scan_bytes: float = 0.0  # of the columns of tables that are read
    build_seconds: float = 0.0  # once for each task: hash tables of what it joins with
    apart: list[frozenset[str]] = field(default_factory=list)
    hashed: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    story: tuple[str, ...] = ()
    tail: str = ""  # ORDER BY and LIMIT, not yet put around the SQL
    untouched: bool = False  # exactly the rows of a closed job
    most_rows: float = math.inf  # however many rows it reads

    @property
    def columns(self) -> str:
        return ", ".join(field.name for field in self.fields) or "1 AS one"

    @property
    def single(self) -> bool:
        """Whether one task has all rows."""
        return len(self.pieces) == 1 and _tasks(self.pieces[0].source) == 1

    @property
    def open_job(self) -> str | None:
        """The job that has this as its reduce phase, if it is one."""
        sources = [piece.source for piece in self.pieces]
        found = [source.job for source in sources if isinstance(source, ExchangeSource)]
        return found[0] if found else None

    def renamed(
        self, new_names: Mapping[str, str]
    ) -> tuple[list[frozenset[str]], list[tuple[tuple[str, ...], tuple[str, ...]]]]:
        """`apart` and `hashed` under other names; sets that lose a column are lost."""
        apart = [
            frozenset(new_names[name] for name in names)
            for names in self.apart
            if all(name in new_names for name in names)
        ]
        hashed = [
            (tuple(new_names[name] for name in names), types)
            for names, types in self.hashed
            if all(name in new_names for name in names)
        ]
        return apart, hashed


def _tasks(source: Source) -> int:
    """Tasks over a source; a table without decided splits has several."""
    if isinstance(source, TableSource):
        return 2 if source.splits is None else max(len(source.splits), 1)
    if isinstance(source, ChunkSource):
        return source.groups
    if isinstance(source, ExchangeSource):
        return source.partitions
    return 1
