"""Aggregates of an online answer: partial columns per file, and their merge.

The exact merge is the planner's (`Call.merge`). What is estimated of the partial columns is
computed outside of DuckDB (`engine.online.leaving_out`).
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
        # To convert the two is much less work than to convert every value.
        value, kept = self.call.argument, self._filter()
        return (
            (f"{self.out}_lo", f"CAST(min({value}){kept} AS DOUBLE)"),
            (f"{self.out}_hi", f"CAST(max({value}){kept} AS DOUBLE)"),
        )

    @property
    def needs_extremes(self) -> bool:
        """Variances: their tails are the heaviest, and the partial form finds both ends anyway."""
        return self.call.function in _SPREAD

    def _filter(self) -> str:
        return "" if self.call.condition is None else f" FILTER (WHERE {self.call.condition})"

    def centre(self, keys: str) -> tuple[str, str] | None:
        """A column that the merge needs beside every partial row."""
        return self.call.centre(keys)

    def merge(self) -> str:
        """The exact aggregate of a group, from the partial rows of all files."""
        if self.kind == "quantile":
            return f"list({{'n': {self.out}_n, 'v': {self.out}_v}})"
        if self.call.distinct:
            return f"coalesce(len(list_distinct(flatten(list({self.out}_v)))), 0)"
        return self.call.merge()


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
