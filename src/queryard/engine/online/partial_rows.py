"""Partial rows as columns: the sums of each aggregate by part and group, and their totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from .evaluating import NO_NUMBER, without

if TYPE_CHECKING:
    from queryard.sql.online import Additive, OnlinePlan

_OPTIONS = {"stddev": pc.VarianceOptions(ddof=1)}
_ZERO = pa.scalar(0.0)
_ONE = pa.scalar(1.0)


class PartialRows:
    """The numbers of all partial rows, and their sums by group.

    `group` has the place of the group of each, `files` its file, `rows` the rows of its file;
    `present` are the rows of all files that have rows of a group. `summands` add up over files, to
    `totals`.
    """

    def __init__(self, plan: OnlinePlan, found: pa.Table, files: Mapping[Any, float]) -> None:
        listed = flat(found["f"])
        self.group = pc.list_parent_indices(listed).cast(pa.int64())
        self.files = pc.list_flatten(listed)
        self.rows = _rows_of(self.files, files)
        self.summands: dict[str, Any] = {}
        self._groups = found.num_rows
        self._numbers = pc.list_flatten(flat(found["v"])) if plan.additives else None
        self._tailed = [a for a in plan.additives if a.ends is not None]
        self._centres: dict[str, Any] = {}
        for a in plan.additives:
            raw = [self._column(a.place, i) for i in range(a.numbers)]
            numbers = self._centred(a.name, *raw) if _is_spread(a) else raw
            self.summands |= {f"{a.name}_x{i}": each for i, each in enumerate(numbers)}

    @cached_property
    def present(self) -> Any:
        return pc.fill_null(self._by_group([(self.rows, "sum")])[0], 0.0)

    @cached_property
    def totals(self) -> dict[str, Any]:
        sums = self._by_group([(each, "sum") for each in self.summands.values()])
        return dict(zip(self.summands, sums, strict=True))

    @cached_property
    def _ends(self) -> dict[str, list[Any]]:
        """The least and the largest value of each aggregate in each group."""
        wanted = [
            (self._column(a.ends or 0, end), function)
            for a in self._tailed
            for end, function in enumerate(("min", "max"))
        ]
        ends = self._by_group(wanted)
        return {a.name: ends[2 * i : 2 * i + 2] for i, a in enumerate(self._tailed)}

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

    @cached_property
    def tails(self) -> dict[str, Any]:
        """How much the logarithms of the largest values of files differ, and of how many."""
        wanted: list[tuple[Any, str]] = []
        for a in self._tailed:
            ends = [self._column(a.ends or 0, end) for end in range(2)]
            if _is_spread(a):
                # From the mean of the file itself: means that drift are no tails.
                ends = [pc.subtract(end, self._column(a.place, 1)) for end in ends]
            largest = without(pc.max_element_wise(*(pc.abs(end) for end in ends)), _ZERO)
            logs = pc.ln(largest)
            wanted += [(logs, "stddev"), (logs, "count")]
        found = self._by_group(wanted)
        names = [f"{a.name}_{suffix}" for a in self._tailed for suffix in "sk"]
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
        return grouped(self.group, columns, self._groups)


def aggregates(additives: Sequence[Additive], scaled: Mapping[str, Any]) -> dict[str, Any]:
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


def grouped(group: Any, columns: Sequence[tuple[Any, str]], groups: int) -> list[Any]:
    """Aggregates of columns per group, NULL for groups of which there is nothing."""
    if not columns:
        return []
    names = [f"c{i}" for i in range(len(columns))]
    table = pa.table([group, *(column for column, _ in columns)], ["g", *names])
    asked = [(name, function) for name, (_, function) in zip(names, columns, strict=True)]
    how = [(name, function, _OPTIONS.get(function)) for name, function in asked]
    found = table.group_by("g", use_threads=False).aggregate(how)
    at = pc.index_in(pa.array(range(groups), pa.int64()), value_set=flat(found["g"]))
    return [flat(found[f"{name}_{function}"]).take(at) for name, function in asked]


def _rows_of(files: Any, rows: Mapping[Any, float]) -> Any:
    """The number of rows of each file."""
    known = pa.array(list(rows), files.type)
    return pa.array(list(rows.values()), pa.float64()).take(pc.index_in(files, value_set=known))


def flat(column: Any) -> Any:
    """A column as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
