"""From partial rows to answers: what was read so far, and what that says of all.

Partial rows lie in a temporary table of the query's instance. A small statement gathers them by
group, and the rest is computed of that on the calling thread: a few milliseconds in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queryard.estimate.online import FEW_FILES, FEW_ROWS, SampleKind, files_for
from queryard.estimate.online import Sample as Read
from queryard.results.online import Eta, Mark, OnlineAnswer
from queryard.sql.catalog.quoting import identifier

from ..instances.instance import Connection
from .course import Course
from .evaluating import typed
from .leaving_out import estimates
from .measure import Measure, WrongMeasure
from .wish import OnlineWish

if TYPE_CHECKING:
    from queryard.sql.online import OnlinePlan, OnlineRow, OnlineRows

    from ..sampling import Sample

PARTIALS = "queryard_partials"
# So many groups are looked at, in the order of the answer.
MOST_GROUPS = 20_000

# By the largest values of so many parts heavy tails are noticed; to look for them costs.
TAILED_PARTS = 10
# The columns of `OnlinePlan.gathered_sql` before those of the answer.
BEFORE = 4
# Numbers without an interval that do not keep a query from being near enough: they never have one.
PASSED_OVER = ("few rows", "all zero")


class Refining:
    """The statements of one online query, and its answers."""

    def __init__(self, plan: OnlinePlan, sample: Sample, wish: OnlineWish) -> None:
        self._plan = plan
        self._sample = sample
        self._wish = wish
        self._is_filled = False
        # The groups after so many parts, and the types of their columns.
        self._gathered: tuple[int, pa.Table, Sequence[str]] | None = None
        self._newest_error: float | None = None
        self._measure = Measure(plan.fields, wish)
        self._estimated, self._labels = self._measure.estimated, self._measure.labels

    def begin_at(self, place: int) -> None:
        """Go round the sample from a place on."""
        self._sample = self._sample.start(place)

    # --- statements ------------------------------------------------------------------------------

    @property
    def setup(self) -> list[str]:
        """Filtered dimensions become tables, once."""
        return [dimension.create_sql() for dimension in self._plan.dimensions]

    def batch(self, first: int, count: int) -> str:
        """Add the partial rows of some parts."""
        relation = self._sample.relation(self._sample.parts[first : first + count])
        part = f"t.{identifier(self._sample.part_column)}"
        select = self._plan.partial_sql(relation, part, tails=first < TAILED_PARTS)
        if self._is_filled:
            return f"INSERT INTO {PARTIALS} {select}"
        self._is_filled = True
        return f"CREATE TEMP TABLE {PARTIALS} AS {select}"

    @property
    def teardown(self) -> list[str]:
        """The instance is for other queries again."""
        made = [PARTIALS, *(dimension.name for dimension in self._plan.dimensions)]
        return [f"DROP TABLE IF EXISTS temp.{name}" for name in made]

    def dimension_rows(self, connection: Connection) -> int:
        """The rows of the largest dimension."""
        counts = [
            int(connection.rows(f"SELECT count(*) AS n FROM {dimension.name}")[0]["n"])
            for dimension in self._plan.dimensions
        ]
        return max(counts, default=0)

    def passed(self, connection: Connection) -> tuple[int, int]:
        """How many rows of the first part had an effect on the answer, and in how many groups."""
        [row] = connection.rows(f"SELECT sum(n) AS n, count(*) AS groups FROM {PARTIALS}")
        return int(row["n"] or 0), int(row["groups"])

    # --- answers ---------------------------------------------------------------------------------

    def exact(self, connection: Connection, elapsed_s: float) -> OnlineAnswer:
        """All parts were read."""
        table, types = connection.table(self._plan.final_sql(PARTIALS))
        fields = self._plan.fields
        ends = {self._labels[i]: _numbers(table.column(i)) for i in self._estimated}
        return OnlineAnswer(
            table.rename_columns([field.name for field in fields]),
            types,
            1.0,
            True,
            elapsed_s,
            self._wish.confidence,
            error=0.0,
            low=ends,
            high=ends,
            sample=self._sample.kind,
        )

    def answer(
        self, connection: Connection, read: int, elapsed_s: float, part_s: float
    ) -> OnlineAnswer:
        """What the parts that were read say of all."""
        # The planner is there already: it made the plan.
        from queryard.sql.online import online_rows

        plan = self._plan
        gathered, types = self._groups(connection, read)
        parts = {part.number: float(part.rows) for part in self._sample.parts[:read]}
        found = estimates(plan, gathered, parts, self._sample.total_rows, FEW_ROWS)
        seen = self._seen(read)
        told = online_rows(
            plan, found.slice(0, MOST_GROUPS).to_pylist(), seen, self._wish.confidence
        )
        unseen = self._measure.unseen(gathered)
        error = self._newest_error = None if unseen else self._error(told.rows)
        return OnlineAnswer(
            self._shown(found, told),
            tuple(
                "DOUBLE" if field.kind == "quantile" else types[BEFORE + i]
                for i, field in enumerate(plan.fields)
            ),
            seen.fraction,
            False,
            elapsed_s,
            self._wish.confidence,
            error,
            {self._labels[i]: [_ends(row, i)[0] for row in told.rows] for i in self._estimated},
            {self._labels[i]: [_ends(row, i)[1] for row in told.rows] for i in self._estimated},
            tuple(self._mark(row) for row in told.rows),
            self._eta(error, seen, part_s, read),
            self._sample.kind,
            self._notes(told, found.num_rows, unseen),
        )

    def check_groups(self, connection: Connection, read: int) -> None:
        """All parts were read: a wanted group that was in none of them is not there."""
        gathered, _ = self._groups(connection, read)
        if unseen := self._measure.unseen(gathered):
            raise WrongMeasure(unseen)

    def course(self, connection: Connection, read: int) -> Course:
        """How the answer has become better so far."""
        gathered, _ = self._groups(connection, read)
        parts = [(part.number, float(part.rows)) for part in self._sample.parts[:read]]
        rows = float(self._sample.total_rows)
        return Course(self._plan, gathered, parts, rows, self._measure)

    def _groups(self, connection: Connection, read: int) -> tuple[pa.Table, Sequence[str]]:
        """The groups of the parts that were read, gathered once."""
        if self._gathered is None or self._gathered[0] != read:
            self._gathered = read, *connection.table(self._plan.gathered_sql(PARTIALS))
        return self._gathered[1:]

    def _shown(self, found: pa.Table, told: OnlineRows) -> pa.Table:
        """The rows that are shown, in the types of the exact answer; a quantile is a DOUBLE."""
        first = 0 if self._plan.ordering is None else self._plan.ordering.offset
        rows = found.slice(first, len(told.rows))
        columns = []
        for place, field in enumerate(self._plan.fields):
            column = rows.column(f"o{place}")
            if field.kind == "quantile":
                column = pa.array([row.values[place] for row in told.rows], pa.float64())
            elif field.measure is not None:
                column = typed(rows.column(f"m{field.measure}"), column.type)
            columns.append(column)
        return pa.table(columns, [field.name for field in self._plan.fields])

    def _seen(self, read: int) -> Read:
        parts = self._sample.parts
        kind: SampleKind = "shuffled" if self._sample.kind == "shuffled copy" else "blocks"
        rows = sum(part.rows for part in parts[:read])
        return Read(read, len(parts), rows, self._sample.total_rows, kind)

    def _error(self, rows: Sequence[OnlineRow]) -> float | None:
        """The largest relative half-width; None where there is none, or one cannot be given.

        Groups of a few rows and sums that are 0 so far have no interval and do not count.
        """
        largest: float | None = None
        for row in (row for row in rows if self._measure.counts(row.values)):
            for place in self._measure.places:
                found = row.estimates[place]
                if found is None or found.value is None or found.note in PASSED_OVER:
                    continue
                if found.error is None:
                    return None
                largest = max(largest or 0.0, found.error)
        return largest

    def _mark(self, row: OnlineRow) -> Mark:
        """What to know of a row."""
        notes = {found.note for found in row.estimates if found is not None}
        if "few rows" in notes:
            return "few rows"
        if "heavy tail" in notes:
            return "heavy tail"
        return "unsettled" if row.settled is None else ""

    def needed(self, read: int, wanted: float) -> int | None:
        """After how many parts the error is as small as wanted; None if that is not known."""
        if read < FEW_FILES:
            return FEW_FILES
        if self._newest_error is None:
            return None
        return files_for(self._newest_error, self._seen(read), wanted, self._wish.confidence)

    def _eta(self, error: float | None, seen: Read, part_s: float, read: int) -> Eta:
        exact_s = part_s * (len(self._sample.parts) - read)
        wanted = self._wish.stop_at
        if wanted is None or error is None or not 0 < seen.fraction < 1:
            return Eta(None, exact_s)
        files = files_for(error, seen, wanted, self._wish.confidence)
        return Eta(part_s * (files - read), exact_s)

    def _notes(self, told: OnlineRows, groups: int, unseen: str) -> tuple[str, ...]:
        notes = []
        if unseen:
            notes.append(unseen)
        if self._plan.keys:
            notes.append(f"a group not seen yet has fewer than about {told.hidden:,.0f} rows")
        if "heavy tail" in told.notes:
            notes.append("a few rows make most of the spread: no interval of a sample is honest")
        if "all zero" in told.notes:
            notes.append("what is 0 so far has no interval: other values may still come")
        bounds = [
            f"{field.name} is {field.direction} this" if field.direction else f"{field.name} so far"
            for field in self._plan.fields
            if field.kind == "bound"
        ]
        if bounds:
            notes.append(f"of the rows read so far: {', '.join(bounds)}")
        if groups > MOST_GROUPS:
            notes.append(f"of {groups:,} groups the first {MOST_GROUPS:,} are shown")
        return tuple(notes)


def _numbers(column: Any) -> list[float | None]:
    """The values of an exact column, which are both ends of its intervals."""
    return [None if value is None else float(value) for value in column.to_pylist()]


def _ends(row: OnlineRow, place: int) -> tuple[float | None, float | None]:
    found = row.estimates[place]
    return (None, None) if found is None else (found.low, found.high)
