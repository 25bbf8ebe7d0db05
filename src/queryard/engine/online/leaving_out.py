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

from .evaluating import NO_NUMBER, evaluated, without

if TYPE_CHECKING:
    from queryard.sql.online import Additive, OnlinePlan

_OPTIONS = {"stddev": pc.VarianceOptions(ddof=1)}
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
    columns = _aggregates(plan.additives, sums.scaled)
    for name in found.column_names:
        if name.startswith("k"):
            columns[name] = _flat(found[name]).take(sums.group)
    count = len(sums.group)
    groups = found.num_rows
    told = found.drop_columns(["f", "v"])
    measures = [_array(evaluated(formula, columns), count) for formula in plan.formulas]
    for i, measure in enumerate(measures):
        told = told.append_column(f"m{i}", measure.slice(0, groups))
    told = _with_changes(told, measures, sums)
    for name, column in sums.tails.items():
        told = told.append_column(name, column)
    of_all = {name: column.slice(0, groups) for name, column in columns.items()}
    kept = pa.repeat(pa.scalar(True), groups)
    for condition in plan.kept:
        kept = pc.and_(kept, pc.fill_null(_array(evaluated(condition, of_all), groups), False))
    return _ordered(plan, told.append_column("kept", kept))


class _Sums:
    """Scaled sums: of all groups, then of each with something left out.

    `group` has the place of the group. `weight` says how many files are left out so: -1 where
    nothing is, 0 where a single row is.
    """

    def __init__(
        self, plan: OnlinePlan, found: pa.Table, files: Mapping[Any, float], rows: float, few: int
    ) -> None:
        parts = _Parts(plan, found, files)
        self.tails = parts.tails
        self._groups = found.num_rows
        read, count = sum(files.values()), len(files)
        every = pa.array(range(self._groups), pa.int64())
        many = pc.greater_equal(_flat(found["n"]), few)
        here = many.take(parts.group)
        with_files = _flat(found["files"]).cast(pa.float64())
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
        return _grouped(self.group, columns, self._groups)


class _Parts:
    """The numbers of all partial rows, and their sums by group.

    `group` has the place of the group of each, `rows` the rows of its file; `present` are the rows
    of all files that have rows of a group. `summands` add up over files, to `totals`.
    """

    def __init__(self, plan: OnlinePlan, found: pa.Table, files: Mapping[Any, float]) -> None:
        listed = _flat(found["f"])
        self.group = pc.list_parent_indices(listed).cast(pa.int64())
        self.rows = _rows_of(pc.list_flatten(listed), files)
        self.summands: dict[str, Any] = {}
        self._groups = found.num_rows
        self._numbers = pc.list_flatten(_flat(found["v"])) if plan.additives else None
        tailed = [a for a in plan.additives if a.ends is not None]
        ends = self._by_group(
            [
                (self._column(a.ends or 0, end), function)
                for a in tailed
                for end, function in enumerate(("min", "max"))
            ]
        )
        self._ends = {a.name: ends[2 * i : 2 * i + 2] for i, a in enumerate(tailed)}
        self._centres: dict[str, Any] = {}
        for a in plan.additives:
            raw = [self._column(a.place, i) for i in range(a.numbers)]
            numbers = self._centred(a.name, *raw) if _is_spread(a) else raw
            self.summands |= {f"{a.name}_x{i}": each for i, each in enumerate(numbers)}
        self.tails = self._deviations(tailed)
        sums = [(self.rows, "sum"), *((each, "sum") for each in self.summands.values())]
        present, *totals = self._by_group(sums)
        self.present = pc.fill_null(present, 0.0)
        self.totals = dict(zip(self.summands, totals, strict=True))

    def of_row(self, a: Additive, summand: str) -> list[Any] | None:
        """What the least and the largest row of an aggregate add to a summand; None: nothing."""
        if not summand.startswith(f"{a.name}_x"):
            return None
        place, ends = int(summand.rsplit("_x", 1)[1]), self._ends[a.name]
        one = pa.repeat(_ONE, self._groups)
        if not _is_spread(a):
            return [one, one] if place else ends
        off = [pc.subtract(end, self._centres[a.name]) for end in ends]
        return [one, one] if not place else off if place == 1 else [pc.multiply(o, o) for o in off]

    def _deviations(self, tailed: Sequence[Additive]) -> dict[str, Any]:
        """How much the logarithms of the largest values of files differ, and of how many."""
        wanted: list[tuple[Any, str]] = []
        for a in tailed:
            ends = [self._column(a.ends or 0, end) for end in range(2)]
            if _is_spread(a):
                # From the mean of the file itself: means that drift are no tails.
                ends = [pc.subtract(end, self._column(a.place, 1)) for end in ends]
            largest = without(pc.max_element_wise(*(pc.abs(end) for end in ends)), _ZERO)
            logs = pc.ln(largest)
            wanted += [(logs, "stddev"), (logs, "count")]
        found = self._by_group(wanted)
        names = [f"{a.name}_{suffix}" for a in tailed for suffix in "sk"]
        return dict(zip(names, found, strict=True))

    def _column(self, place: int, more: int) -> Any:
        return pc.list_element(self._numbers, place + more)

    def _centred(self, name: str, n: Any, mean: Any, squares: Any) -> list[Any]:
        """Count, sum and sum of squares around the mean of the group: so no digits are lost."""
        total, rows, low, high = self._by_group(
            [(pc.multiply(n, mean), "sum"), (n, "sum"), (mean, "min"), (mean, "max")]
        )
        centre = pc.divide(total, without(rows, _ZERO))
        # The mean of equal values may be off by a bit; between minimum and maximum it is not.
        centre = pc.max_element_wise(low, pc.min_element_wise(high, centre))
        self._centres[name] = centre
        off = pc.subtract(mean, centre.take(self.group))
        return [n, pc.multiply(n, off), pc.add(squares, pc.multiply(n, pc.multiply(off, off)))]

    def _by_group(self, columns: Sequence[tuple[Any, str]]) -> list[Any]:
        return _grouped(self.group, columns, self._groups)


def _aggregates(additives: Sequence[Additive], scaled: Mapping[str, Any]) -> dict[str, Any]:
    """The aggregates from the sums that they are made of."""
    found = {}
    for a in additives:
        x = [scaled[f"{a.name}_x{i}"] for i in range(a.numbers)]
        if a.function == "count":
            found[a.name] = pc.fill_null(x[0], 0.0)
        elif a.function == "avg":
            found[a.name] = pc.divide(x[0], without(x[1], _ZERO))
        elif _is_spread(a):
            found[a.name] = _spread(a.function, *x)
        else:
            found[a.name] = x[0]
    return found


def _spread(function: str, n: Any, total: Any, squares: Any) -> Any:
    least, under = (0.0, n) if function.endswith("_pop") else (1.0, pc.subtract(n, _ONE))
    around = pc.subtract(squares, pc.divide(pc.multiply(total, total), without(n, _ZERO)))
    found = pc.divide(pc.max_element_wise(around, _ZERO), without(under, _ZERO))
    found = pc.if_else(pc.fill_null(pc.greater(n, least), False), found, NO_NUMBER)
    return pc.sqrt(found) if function.startswith("stddev") else found


def _is_spread(a: Additive) -> bool:
    return a.function.startswith(("var_", "stddev_"))


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


def _ordered(plan: OnlinePlan, told: pa.Table) -> pa.Table:
    """The rows that HAVING keeps first, each by ORDER BY."""
    by: dict[str, Any] = {"kept": told["kept"].cast(pa.int8())}
    ways = [("kept", "descending")]
    for i, key in enumerate(plan.sorting):
        if key.rank is not None:
            by[f"s{i}"] = told[f"r{key.rank}"]
            ways.append((f"s{i}", "ascending"))
            continue
        values = told[f"m{key.measure}"]
        by[f"n{i}"] = pc.is_null(values).cast(pa.int8())
        ways.append((f"n{i}", "descending" if key.nulls_first else "ascending"))
        by[f"s{i}"] = pc.fill_null(values, 0.0)
        ways.append((f"s{i}", "descending" if key.descending else "ascending"))
    told = told.take(pc.sort_indices(pa.table(by), sort_keys=ways))
    kept = pc.sum(told["kept"]).as_py() or 0
    places = [*range(1, kept + 1), *range(1, told.num_rows - kept + 1)]
    return told.append_column("place", pa.array(places, pa.int64()))


def _grouped(group: Any, columns: Sequence[tuple[Any, str]], groups: int) -> list[Any]:
    """Aggregates of columns per group, NULL for groups of which there is nothing."""
    if not columns:
        return []
    names = [f"c{i}" for i in range(len(columns))]
    table = pa.table([group, *(column for column, _ in columns)], ["g", *names])
    asked = [(name, function) for name, (_, function) in zip(names, columns, strict=True)]
    how = [(name, function, _OPTIONS.get(function)) for name, function in asked]
    found = table.group_by("g", use_threads=False).aggregate(how)
    at = pc.index_in(pa.array(range(groups), pa.int64()), value_set=_flat(found["g"]))
    return [_flat(found[f"{name}_{function}"]).take(at) for name, function in asked]


def _rows_of(files: Any, rows: Mapping[Any, float]) -> Any:
    """The number of rows of each file."""
    known = pa.array(list(rows), files.type)
    return pa.array(list(rows.values()), pa.float64()).take(pc.index_in(files, value_set=known))


def _zeros(count: int) -> Any:
    return pa.repeat(_ZERO, count)


def _array(found: Any, count: int) -> Any:
    return pa.repeat(found, count) if isinstance(found, pa.Scalar) else found


def _flat(column: Any) -> Any:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
