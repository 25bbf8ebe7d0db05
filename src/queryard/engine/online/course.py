"""How an answer has become better: the answers after one part, two parts, … in a row.

A statement reads several parts, and an answer is given after some statements; but partial rows are
kept per part, so the estimates after every part can be computed afterwards, all at once. There is
no interval here: only values, of the groups that are shown after the last part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from queryard.estimate.online import error_left, shares_around

from .evaluating import NO_NUMBER, evaluated_rows, without
from .measure import Measure
from .ordering import ordered, shown
from .partial_rows import PartialRows, aggregates, flat, grouped

if TYPE_CHECKING:
    from queryard.sql.online import OnlinePlan, OutputColumn

# So many groups are looked at, in the order of the answer.
MOST_GROUPS = 200
_ZERO = pa.scalar(0.0)
_ONE = pa.scalar(1.0)
_NOTHING = pa.array([None], pa.float64())


class Course:
    """Sums of the shown groups after each part: for one group after all parts, then for the next.

    `found` are the groups of `OnlinePlan.gathered_sql`, `parts` the numbers and rows of those read,
    in order, `rows` those of the whole table. For each group the first place is the state before
    the first part.
    """

    def __init__(
        self,
        plan: OnlinePlan,
        found: pa.Table,
        parts: Sequence[tuple[Any, float]],
        rows: float,
        measure: Measure,
    ) -> None:
        found = found.combine_chunks()
        self._plan = plan
        self._found = found
        self._measure = measure
        self._read = len(parts)
        partial = PartialRows(plan, found, dict(parts))
        read = [0.0, *accumulate(n for _, n in parts)]
        self._fraction = read[-1] / rows if rows else 1.0
        scale = rows / max(1.0, read[-1])
        self._chosen = chosen = _shown(plan, found, partial, scale, measure)
        self._groups = len(chosen)
        # Where the partial row of each group and part is; the first of each group has none.
        self._width = width = len(parts) + 1
        every = _up_to(self._groups * width)
        group = pc.divide(every, width)
        numbers = pa.array([number for number, _ in parts], partial.files.type)
        part = pc.index_in(partial.files, value_set=numbers).cast(pa.int64())
        of_row = pc.index_in(partial.group, value_set=chosen).cast(pa.int64())
        cell = pc.add(pc.multiply(of_row, width), pc.add(part, 1))
        self._row = pc.index_in(every, value_set=cell)
        self._start = pc.multiply(group, width)

        scales = pa.array([rows / each if each else None for each in read], pa.float64())
        scales = scales.take(_round(len(every), width))
        one = pa.repeat(_ONE, len(partial.group))
        self._seen = pc.greater(self._after(one), _ZERO)
        scaled = {
            name: pc.multiply(self._after(summand), scales)
            for name, summand in partial.summands.items()
        }
        self._columns = aggregates(plan.additives, scaled)
        for name in found.column_names:
            if name.startswith("k"):
                self._columns[name] = flat(found[name]).take(chosen).take(group)

    def moves(self, before: int) -> list[float]:
        """How far the answer moved with each part after the first `before` ones, from 0 to 1.

        It is the mean relative change of the values that count; a group that was not seen before
        moves by its whole value. Where the user has a function, it is the relative change of its
        value.
        """
        if not self._counts:
            return [0.0] * (self._read - before)
        if self._measure.has_function:
            return [_relative(new, old) for old, new in pairwise(self._numbers(before))]
        new, old = self._steps(self._values)
        by = pc.coalesce(without(pc.abs(new), _ZERO), _ONE)
        share = pc.divide(pc.abs(pc.subtract(new, old)), by)
        share = pc.min_element_wise(share, _ONE, skip_nulls=False)
        share = pc.if_else(pc.is_finite(share), share, NO_NUMBER)
        [mean] = grouped(_round(len(new), self._read), [(share, "mean")], self._read)
        return [float(each) for each in pc.fill_null(mean, 0.0).to_pylist()][before:]

    def left(self) -> float | None:
        """The share of the first answer's error that is expected to be left.

        None where nothing counts, and where the user has a function, of whose value no error is
        known.
        """
        if self._measure.has_function or not self._counts:
            return None
        values = pc.fill_null(self._values, 0.0)
        new, old = self._steps(values)
        step, change = _round(len(new), self._read), pc.subtract(new, old)
        # A mean moves with its n-th part by an n-th of how far the part is from the mean before.
        weight = pc.multiply(step, pc.add(step, 1)).cast(pa.float64())
        square = pc.multiply(weight, pc.multiply(change, change))
        count = len(new) // self._read
        of_value = pc.divide(_up_to(len(new)), self._read)
        [squares] = grouped(of_value, [(square, "sum")], count)
        variance = pc.divide(squares, float(max(1, self._read - 1)))
        at = pc.multiply(_up_to(count), self._read)
        first, newest = new.take(at), new.take(pc.add(at, self._read - 1))
        told = zip(first.to_pylist(), newest.to_pylist(), variance.to_pylist(), strict=True)
        finite = [each for each in told if all(map(math.isfinite, each))]
        return error_left(finite, self._read, self._fraction)

    @property
    def _counts(self) -> bool:
        """Whether anything does."""
        return bool(self._groups and self._measure.places)

    @cached_property
    def _values(self) -> Any:
        """What counts after each part: one value after all parts, then the next.

        NULL before the first part, and for groups that were not seen by then.
        """
        return pa.concat_arrays([self._column(place) for place in self._measure.places])

    def _column(self, place: int) -> Any:
        """The estimates of a column."""
        field = self._plan.fields[place]
        if field.measure is not None:
            formula = self._plan.formulas[field.measure]
            found = evaluated_rows(formula, self._columns, len(self._seen))
        else:
            found = self._quantile(field)
        return pc.if_else(self._seen, found, NO_NUMBER)

    def _numbers(self, before: int) -> list[float | None]:
        """What the user's function makes of the rows, from the state after some parts on."""
        keys = [flat(self._found[f"o{i}"]).take(self._chosen) for i in self._measure.keys]
        columns = [self._column(place) for place in self._measure.places]
        found: list[float | None] = []
        for step in range(before, self._width):
            here = pc.add(pc.multiply(_up_to(self._groups), self._width), step)
            seen = self._seen.take(here)
            rows = (
                [key.filter(seen) for key in keys],
                [column.take(here).filter(seen) for column in columns],
            )
            found.append(self._measure.value(*rows) if pc.any(seen).as_py() else None)
        return found

    def _steps(self, values: Any) -> tuple[Any, Any]:
        """The values after each part, and those before it; what was not there is 0."""
        after = pc.greater(_round(len(values), self._width), 0)
        before = pa.concat_arrays([_NOTHING, values.slice(0, len(values) - 1)])
        return values.filter(after), pc.fill_null(before.filter(after), 0.0)

    def _quantile(self, field: OutputColumn) -> Any:
        """The mean of the quantiles of parts: it moves as that of all their rows does."""
        place = next(i for i, each in enumerate(self._plan.fields) if each is field)
        wanted = field.share or 0.0
        shares = shares_around(wanted)
        middle = min(range(len(shares)), key=lambda i: abs(shares[i] - wanted))
        told = pc.list_flatten(flat(self._found[f"o{place}"]))
        rows = pc.struct_field(told, "n").cast(pa.float64())
        value = pc.list_element(pc.struct_field(told, "v"), middle)
        total, count = self._after(pc.multiply(rows, value)), self._after(rows)
        return pc.divide(total, without(count, _ZERO))

    def _after(self, column: Any) -> Any:
        """Sums of a column of partial rows over the parts up to each.

        They are differences of one running sum over all groups: the last digits are lost where
        groups differ by many orders of magnitude, but this is no answer.
        """
        each = pc.fill_null(column.take(self._row), 0.0)
        running = pc.cumulative_sum(each)
        return pc.subtract(running, running.take(self._start))


def _shown(
    plan: OnlinePlan, found: pa.Table, partial: PartialRows, scale: float, measure: Measure
) -> Any:
    """The places of the groups that count of those in the answer after all parts, in its order."""
    every = _up_to(found.num_rows)
    if (
        not plan.kept
        and not plan.sorting
        and plan.ordering is None
        and found.num_rows <= MOST_GROUPS
    ):
        return flat(measure.counting(found.append_column("group", every))["group"])
    by = pa.scalar(scale)
    scaled = {name: pc.multiply(total, by) for name, total in partial.totals.items()}
    columns = aggregates(plan.additives, scaled)
    told = found.drop_columns(["f", "v"])
    for name in found.column_names:
        if name.startswith("k"):
            columns[name] = flat(found[name])
    for i, formula in enumerate(plan.formulas):
        told = told.append_column(f"m{i}", evaluated_rows(formula, columns, found.num_rows))
    chosen = shown(plan, ordered(plan, told.append_column("group", every), columns))
    chosen = measure.counting(chosen)
    return flat(chosen["group"]).slice(0, MOST_GROUPS)


def _relative(new: float | None, old: float | None) -> float:
    """By how much of itself a number differs from the one before, at most by 1."""
    if new is None or not math.isfinite(new):
        return 0.0
    before = old if old is not None and math.isfinite(old) else 0.0
    return min(1.0, abs(new - before) / (abs(new) or 1.0))


def _up_to(count: int) -> Any:
    """0, 1, 2, … as an array."""
    return pc.subtract(pc.cumulative_sum(pa.repeat(pa.scalar(1), count)), 1)


def _round(count: int, length: int) -> Any:
    """0, 1, … up to a length, again and again."""
    every = _up_to(count)
    return pc.subtract(every, pc.multiply(pc.divide(every, length), length))
