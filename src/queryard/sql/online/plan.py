"""An online plan: plain data from which the statements of an online answer are made.

Partial rows have the columns `file`, the keys of the group, `n` (the rows that passed) and the
partial columns of each aggregate; there is one per file and group. Dimensions are made before, as
temporary tables, in order: a later one may read an earlier one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from queryard.sql.planner.oracle import Field

from .calls import Direction
from .formulas import Formula

ColumnKind = Literal["key", "estimated", "bound", "quantile"]
PartialKind = Literal["additive", "moments", "min", "max", "flag", "distinct", "quantile"]
Comparison = Literal["above", "below"]


@dataclass(frozen=True, slots=True)
class Partial:
    """A column of the partial rows. `moments` are counts, means and squared deviations."""

    name: str
    kind: PartialKind


@dataclass(frozen=True, slots=True)
class Dimension:
    """Rows that every statement joins with: made once as a temporary table of this name."""

    name: str
    sql: str
    tables: tuple[str, ...]
    rows_expected: float
    bytes_expected: float

    def create_sql(self) -> str:
        return f"CREATE TEMP TABLE {self.name} AS {self.sql}"


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of the answer. `measure` is the place of its estimate, if it has one."""

    name: str
    type: str
    kind: ColumnKind
    measure: int | None = None
    direction: Direction = ""
    share: float | None = None  # of a quantile


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of HAVING: a measure that must lie above or below 0.

    Without a measure the condition is on something of which there is no interval, unless it is
    `exact`: then it is on keys only.
    """

    measure: int | None
    side: Comparison | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Ordering:
    """ORDER BY … LIMIT over groups. The first key decides: a measure, or a key of the group."""

    measure: int | None
    descending: bool
    limit: int | None
    offset: int


@dataclass(frozen=True, slots=True)
class SortKey:
    """What rows are ordered by: a measure, or a rank r0, r1, … that DuckDB gives to keys."""

    measure: int | None = None
    rank: int | None = None
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Additive:
    """An aggregate that is estimated, and where its numbers stand in a partial row.

    From `place` on there are as many numbers as its partial form has, and from `ends` on the least
    and the largest value, if there are any.
    """

    name: str
    function: str
    place: int
    numbers: int
    ends: int | None

    @property
    def moments(self) -> int:
        """How many moments its values must have, so that its estimate has an interval."""
        return 4 if self.function.startswith(("var_", "stddev_")) else 2


@dataclass(frozen=True, slots=True)
class OnlinePlan:
    """How a query is answered from some files of one table.

    `rows_expected` are the rows that pass all filters and joins, of the whole table; the error of
    an estimate depends on them. `merges` is False if the partial rows of all files do not give the
    exact answer; then the last answer is the statement itself.
    """

    sql: str
    table: str
    columns: tuple[str, ...]
    dimensions: tuple[Dimension, ...]
    keys: tuple[Field, ...]
    partials: tuple[Partial, ...]
    fields: tuple[OutputColumn, ...]
    having: tuple[Condition, ...]
    ordering: Ordering | None
    rows_expected: float
    groups_expected: float
    partial_texts: tuple[str, str, str]
    tailless_texts: tuple[str, str, str]
    final_texts: tuple[str, str]
    gathered_texts: tuple[str, str]
    additives: tuple[Additive, ...]
    formulas: tuple[Formula, ...]
    kept: tuple[Formula, ...]
    sorting: tuple[SortKey, ...]
    merges: bool = True

    @property
    def measures(self) -> int:
        """How many estimates there are of each group."""
        return len(self.formulas)

    def partial_sql(self, relation: str, file: str = "filename", tails: bool = True) -> str:
        """Partial rows of the files that a relation of the sampled table's columns holds.

        `file` is an expression over the relation's columns that tells the batch of a row. Files of
        shuffled rows may be cut into slices by it, for more batches early on; all batches of an
        estimate should be slices, or all files. Blocks may not: their rows are alike. With
        `tails` the least and largest values are found as well, by which heavy tails are noticed
        before an interval is believed. They cost up to a sixth of a query of many sums; the first
        ten files are enough, so statements over many files may do without. Variances always have
        them.
        """
        before, between, after = self.partial_texts if tails else self.tailless_texts
        return f"{before}{file}{between}{relation}{after}"

    def final_sql(self, partials: str) -> str:
        """The exact answer, from the partial rows of all files."""
        before, after = self.final_texts
        return f"{before}{partials}{after}"

    def gathered_sql(self, partials: str) -> str:
        """All groups, in any order, with their partial rows and what keys alone decide.

        - `n`: rows of the group that were read and passed; `files`: files that have any;
        - `f`: these files; `v`: per file the numbers of the aggregates (`additives`);
        - `o0`, `o1`, …: keys and bounds among the columns of the answer, rows and values per file
          of quantiles, NULL of the right type for estimates;
        - `k0`, `k1`, …: what formulas need of keys; `r0`, `r1`, …: ranks by keys.
        """
        before, after = self.gathered_texts
        return f"{before}{partials}{after}"
