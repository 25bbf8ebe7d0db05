"""What online queries read: a table in parts, in an order that makes the first parts a sample."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from queryard.core.errors import QueryardError
from queryard.sql.catalog.model import Column

Kind = Literal["shuffled copy", "random blocks"]

PART_COLUMN = "queryard_part"


class SampleError(QueryardError):
    """A sample that cannot be made or read; the message says why and what helps."""


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a sample that are read together: a file, or a run of rows of a file.

    `number` is the value of the part column in each of its rows. `first_row` is None for a whole
    file.
    """

    number: int
    rows: int
    bytes: float
    file: str
    first_row: int | None = None


class Sample(Protocol):
    """A table in parts: each row of the table is in exactly one.

    Parts stand in a random circular order. From any start on, the first of them are a simple
    random sample of all of them, without replacement.
    """

    @property
    def kind(self) -> Kind:
        """In parts of a shuffled copy rows are random; in random blocks they are neighbours."""

    @property
    def table(self) -> str:
        """The key of the table."""

    @property
    def fingerprint(self) -> str:
        """Of the data of the table when the sample was made (`store.data_fingerprint`)."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the table."""

    @property
    def part_column(self) -> str:
        """The column after those, an INTEGER: the number of the part that a row is in."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """All parts, in order."""

    @property
    def files(self) -> Sequence[Path]:
        """The files that the parts lie in."""

    @property
    def total_rows(self) -> int:
        """How many rows all parts have."""

    def relation(self, parts: Sequence[Part]) -> str:
        """SQL for `FROM {relation} AS t`: the rows of one part or more, with the part column."""

    def held(self) -> AbstractContextManager[None]:
        """Keep what it reads from being removed within the context."""

    def is_current(self) -> bool:
        """Whether the files that it reads are still those of which it was made."""

    def start(self, offset: int) -> Sample:
        """The same sample from another part of the circle on."""


def rotated(parts: tuple[Part, ...], offset: int) -> tuple[Part, ...]:
    """The parts from one of them on, around the circle.

    >>> parts = tuple(Part(number, 1, 1.0, "f") for number in range(4))
    >>> [part.number for part in rotated(parts, 6)]
    [2, 3, 0, 1]
    """
    at = offset % len(parts) if parts else 0
    return parts[at:] + parts[:at]


def part_column(columns: Iterable[Column]) -> str:
    """A name for the part column that the table does not have.

    >>> part_column([Column("a", "INTEGER")]), part_column([Column("Queryard_Part", "INTEGER")])
    ('queryard_part', 'queryard_part_')
    """
    taken = {column.name.lower() for column in columns}
    name = PART_COLUMN
    while name in taken:
        name += "_"
    return name
