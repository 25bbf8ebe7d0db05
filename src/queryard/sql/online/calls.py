"""Aggregates of an online answer: partial columns per file, their merge, and their estimate.

The exact merge is the planner's (`Call.merge`). The estimate works on numbers that add up over
files, as DOUBLE: to leave a file out is to subtract its numbers, and to scale up is to multiply.
A variance is made of the count, sum and sum of squares around the mean of its group, which add up
and lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from queryard.estimate.online import shares_around
from queryard.sql.planner.aggregates import Call

from .errors import NotOnline

Kind = Literal["additive", "bound", "quantile"]
Direction = Literal["at least", "at most", ""]

_SPREAD = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
_DIRECTIONS: dict[str, Direction] = {"min": "at most", "max": "at least"}
_BOUNDS = frozenset({"min", "max", "bool_and", "bool_or"})


@dataclass(frozen=True, slots=True)
class OnlineCall:
    """An aggregate and what a part of the rows says of it."""

    call: Call
    kind: Kind
    direction: Direction = ""

    @property
    def out(self) -> str:
        return self.call.out

    def partial(self) -> tuple[tuple[str, str], ...]:
        """The columns of a file and a group: names, and how they are computed from rows."""
        share, kept = self.call.share, self._filter()
        if share is not None:
            values = f"CAST({self.call.argument} AS DOUBLE)"
            asked = ", ".join(map(repr, shares_around(share)))
            return (
                (f"{self.out}_n", f"count({values}){kept}"),
                (f"{self.out}_v", f"quantile_disc({values}, [{asked}]){kept}"),
            )
        if self.call.distinct:
            value = self.call.argument
            kept = f"{value} IS NOT NULL"
            if self.call.condition is not None:
                kept += f" AND {self.call.condition}"
            return ((f"{self.out}_v", f"list(DISTINCT {value}) FILTER (WHERE {kept})"),)
        return self.call.partial()

    def extremes(self) -> tuple[tuple[str, str], ...]:
        """The least and the largest value of a file and a group: they tell of heavy tails."""
        if self.kind != "additive" or self.call.function in ("count", "count_if"):
            return ()
        value, kept = f"CAST({self.call.argument} AS DOUBLE)", self._filter()
        return (
            (f"{self.out}_lo", f"min({value}){kept}"),
            (f"{self.out}_hi", f"max({value}){kept}"),
        )

    @property
    def needs_extremes(self) -> bool:
        """Variances: their tails are the heaviest, and the partial form finds both ends anyway."""
        return self.call.function in _SPREAD

    def _filter(self) -> str:
        return "" if self.call.condition is None else f" FILTER (WHERE {self.call.condition})"

    def centre(self, keys: str) -> tuple[str, str] | None:
        """A column that the merge and the estimate need beside every partial row."""
        return self.call.centre(keys)

    def merge(self) -> str:
        """The exact aggregate of a group, from the partial rows of all files."""
        if self.kind == "quantile":
            return f"list({{'n': {self.out}_n, 'v': {self.out}_v}})"
        if self.call.distinct:
            return f"coalesce(len(list_distinct(flatten(list({self.out}_v)))), 0)"
        return self.call.merge()

    def summands(self) -> tuple[tuple[str, str], ...]:
        """Numbers of a partial row that add up over files, NULL for nothing: names and SQL."""
        out, function = self.out, self.call.function
        if self.kind != "additive":
            return ()
        if function in _SPREAD:
            n, m, q, c = (f"{out}_{suffix}" for suffix in "nmqc")
            return (
                (f"{out}_x0", f"CAST({n} AS DOUBLE)"),
                (f"{out}_x1", f"{n} * ({m} - {c})"),
                (f"{out}_x2", f"{q} + {n} * ({m} - {c}) * ({m} - {c})"),
            )
        names = (f"{out}_s", f"{out}_n") if function == "avg" else (f"{out}_p",)
        return tuple((f"{out}_x{i}", f"CAST({name} AS DOUBLE)") for i, name in enumerate(names))

    def of_row(self, value: str) -> tuple[str, ...]:
        """What a single row of this value adds to each of the summands."""
        if self.call.function in _SPREAD:
            c = f"{self.out}_c"
            return "1", f"{value} - {c}", f"({value} - {c}) * ({value} - {c})"
        return (value, "1") if self.call.function == "avg" else (value,)

    def estimate(self) -> str:
        """The aggregate from its summands (or, of a bound, from its merged column)."""
        out, function = self.out, self.call.function
        if self.kind != "additive":
            return f"{out}_b"
        if function == "count":
            return f"coalesce({out}_x0, 0)"
        if function == "avg":
            return f"({out}_x0 / nullif({out}_x1, 0))"
        if function not in _SPREAD:
            return f"{out}_x0"
        n, s, q = (f"{out}_x{i}" for i in range(3))
        least, under = (0, n) if function.endswith("_pop") else (1, f"({n} - 1)")
        squares = f"greatest({q} - {s} * {s} / {n}, 0)"
        spread = f"CASE WHEN {n} > {least} THEN {squares} / {under} END"
        return f"sqrt({spread})" if function.startswith("stddev") else f"({spread})"


def online_call(call: Call) -> OnlineCall:
    """What a part of the rows says of an aggregate; refused if that is nothing.

    >>> online_call(Call("c9", "max", "c1"))
    OnlineCall(call=Call(out='c9', function='max', argument='c1', distinct=False, \
condition=None), kind='bound', direction='at least')
    """
    if call.share is not None:
        return OnlineCall(call, "quantile")
    if call.distinct:
        if call.function != "count":
            raise NotOnline(
                f"{call.function}(DISTINCT …) of a part of the rows says little about all of them"
            )
        return OnlineCall(call, "bound", "at least")
    if call.function in _BOUNDS:
        return OnlineCall(call, "bound", _DIRECTIONS.get(call.function, ""))
    if call.function.startswith("bit_"):
        raise NotOnline(f"{call.function} of a part of the rows says little about all of them")
    return OnlineCall(call, "additive")
