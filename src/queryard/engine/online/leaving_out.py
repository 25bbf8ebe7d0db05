"""Estimates of groups, and what leaving out each file changes of them (the jackknife).

For every group there are the sums over all files that were read, the same without each file that
has rows of the group, one row for all files that have none, and sums without the least or largest
value. The formulas of the answer are evaluated on all of them at once, and what leaving out a file
changes is summed up per group: that is all the interval needs (`estimate.online`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from .evaluating import NO_NUMBER, evaluated_rows, without
from .ordering import ordered
from .partial_rows import PartialRows, aggregates, flat, grouped

if TYPE_CHECKING:
    from queryard.sql.online import OnlinePlan

_ZERO = pa.scalar(0.0)
_ONE = pa.scalar(1.0)


def estimates(
    plan: OnlinePlan, found: pa.Table, files: Mapping[Any, float], rows: float, few: int
) -> pa.Table:
    """All groups of `OnlinePlan.gathered_sql`, in the order of the answer, with their estimates.

    `files` are those read so far, also without a partial row, with their numbers of rows; `rows`
    are those of the whole table. To the columns of the gathered groups come

    - `m0`, `m1`, …: measures: estimates of the whole table. `m0_d` is the sum, `m0_q` the sum of
      squares and `m0_b` the largest square of the differences that leaving out one file makes,
      `m0_r` the largest that a single row makes; NULL for groups of fewer than `few` rows;
    - `NAME_s` and `NAME_k` of an aggregate: the standard deviation of the logarithms of the largest
      values of files, and how many these are;
    - `kept`: whether HAVING holds for the estimates; `place`: the place by ORDER BY, from 1, among
      the kept rows.
    """
    found = found.combine_chunks()
    sums = _Sums(plan, found, files, rows, few)
    columns = aggregates(plan.additives, sums.scaled)
    for name in found.column_names:
        if name.startswith("k"):
            columns[name] = flat(found[name]).take(sums.group)
    count = len(sums.group)
    groups = found.num_rows
    told = found.drop_columns(["f", "v"])
    measures = [evaluated_rows(formula, columns, count) for formula in plan.formulas]
    for i, measure in enumerate(measures):
        told = told.append_column(f"m{i}", measure.slice(0, groups))
    told = _with_changes(told, measures, sums)
    for name, column in sums.tails.items():
        told = told.append_column(name, column)
    return ordered(plan, told, {name: each.slice(0, groups) for name, each in columns.items()})


class _Sums:
    """Scaled sums: of all groups, then of each with something left out.

    `group` has the place of the group. `weight` says how many files are left out so: -1 where
    nothing is, 0 where a single row is.
    """

    def __init__(
        self, plan: OnlinePlan, found: pa.Table, files: Mapping[Any, float], rows: float, few: int
    ) -> None:
        parts = PartialRows(plan, found, files)
        self.tails = parts.tails
        self._groups = found.num_rows
        read, count = sum(files.values()), len(files)
        every = pa.array(range(self._groups), pa.int64())
        many = pc.greater_equal(flat(found["n"]), few)
        here = many.take(parts.group)
        with_files = flat(found["files"]).cast(pa.float64())
        others = pc.subtract(pa.scalar(float(count)), with_files)
        absent = pc.and_(many, pc.greater(others, _ZERO))
        rows_absent = pc.divide(pc.subtract(pa.scalar(float(read)), parts.present), others)

        # What is left out: nothing; each file with rows of a group; one of the others; one row.
        of_file, of_other, of_row = (
            parts.group.filter(here),
            every.filter(absent),
            every.filter(many),
        )
        tailed = [a for a in plan.additives if a.ends is not None]
        singles = 2 * len(tailed) * len(of_row)
        self.group = pa.concat_arrays([every, of_file, of_other, *[of_row] * (2 * len(tailed))])
        out = pa.concat_arrays(
            [
                _zeros(self._groups),
                parts.rows.filter(here),
                rows_absent.filter(absent),
                _zeros(singles),
            ]
        )
        scale = pc.subtract(pa.scalar(float(read)), out)
        scale = pc.divide(pa.scalar(float(rows)), without(scale, _ZERO))
        self.weight = pa.concat_arrays(
            [
                pa.repeat(pa.scalar(-1.0), self._groups),
                pa.repeat(_ONE, len(of_file)),
                others.filter(absent),
                _zeros(singles),
            ]
        )
        self.scaled = {}
        for name, total in parts.totals.items():
            less = [_zeros(self._groups), parts.summands[name].filter(here), _zeros(len(of_other))]
            for a in tailed:
                ends = parts.of_row(a, name)
                less += (
                    [_zeros(2 * len(of_row))]
                    if ends is None
                    else [end.filter(many) for end in ends]
                )
            left = pc.fill_null(pa.concat_arrays(less), 0.0)
            self.scaled[name] = pc.multiply(pc.subtract(total.take(self.group), left), scale)

    def by_group(self, columns: Sequence[tuple[Any, str]]) -> list[Any]:
        """Aggregates per group of columns as long as `group`."""
        return grouped(self.group, columns, self._groups)


def _with_changes(told: pa.Table, measures: Sequence[Any], sums: _Sums) -> pa.Table:
    """What leaving out a file, or a row, changes of each measure."""
    groups = told.num_rows
    beyond = pc.greater_equal(sums.weight, _ZERO)
    of_file, of_row = pc.greater(sums.weight, _ZERO), pc.equal(sums.weight, _ZERO)
    wanted: list[tuple[Any, str]] = []
    for measure in measures:
        change = pc.subtract(measure, measure.slice(0, groups).take(sums.group))
        change = pc.if_else(beyond, change, NO_NUMBER)
        square = pc.multiply(change, change)
        wanted += [
            (pc.multiply(sums.weight, change), "sum"),
            (pc.multiply(sums.weight, square), "sum"),
            (pc.if_else(of_file, square, NO_NUMBER), "max"),
            (pc.if_else(of_row, square, NO_NUMBER), "max"),
        ]
    found = sums.by_group(wanted)
    for i in range(len(measures)):
        for j, suffix in enumerate("dqbr"):
            column = found[4 * i + j]
            if suffix == "r":
                column = pc.if_else(pc.is_null(found[4 * i]), NO_NUMBER, pc.fill_null(column, 0.0))
            told = told.append_column(f"m{i}_{suffix}", column)
    return told


def _zeros(count: int) -> Any:
    return pa.repeat(_ZERO, count)
