"""Aggregates that can be computed in parts, and how: partial columns, and how to merge them.

Sums of integers and decimals stay exact (HUGEINT and DECIMAL(38, s) as in DuckDB). Variances are
merged from counts, means and sums of squared deviations around the common mean (Chan, Golub and
LeVeque 1979), never from sums of squares.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import NotStageable

# Every name accepted, with the name it is computed under.
AGGREGATES = {
    "count": "count",
    "count_star": "count",
    "count_if": "count_if",
    "countif": "count_if",
    "sum": "sum",
    "avg": "avg",
    "mean": "avg",
    "min": "min",
    "max": "max",
    "bool_and": "bool_and",
    "bool_or": "bool_or",
    "bit_and": "bit_and",
    "bit_or": "bit_or",
    "bit_xor": "bit_xor",
    "var_pop": "var_pop",
    "var_samp": "var_samp",
    "variance": "var_samp",
    "stddev_pop": "stddev_pop",
    "stddev_samp": "stddev_samp",
    "stddev": "stddev_samp",
}
# Quantiles need all values of a group: no part of a staged plan has them, but estimates do.
# They are computed under the name `quantile_cont@SHARE`.
QUANTILES = frozenset({"median", "quantile_cont"})
_MERGED_BY_ITSELF = frozenset({"sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or"})
_SPREAD = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
# A value more or less of these makes no difference, so DISTINCT means nothing.
_BLIND_TO_DUPLICATES = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or"})
_NUMBER = re.compile(r"^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|U?INTEGER|DOUBLE|FLOAT|DECIMAL\(.*\))$")


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate over columns of its input: `argument` is None for count(*)."""

    out: str
    function: str
    argument: str | None = None
    distinct: bool = False
    condition: str | None = None  # the column behind FILTER

    @property
    def on_empty(self) -> str:
        """What the aggregate gives for no rows at all."""
        return "0" if self.function == "count" else "NULL"

    @property
    def share(self) -> float | None:
        """Of a quantile: the share of values below it.

        >>> Call("c9", "quantile_cont@0.5", "c1").share
        0.5
        """
        name, _, share = self.function.partition("@")
        return float(share) if name == "quantile_cont" else None

    def text(self) -> str:
        """The call as DuckDB writes it.

        >>> Call("c9", "sum", "c1", distinct=True, condition="c2").text()
        'sum(DISTINCT c1) FILTER (WHERE c2)'
        """
        argument = "*" if self.argument is None else self.argument
        if self.share is not None:
            return self._filtered(f"quantile_cont({argument}, {self.share!r})")
        return self._filtered(f"{self.function}({'DISTINCT ' if self.distinct else ''}{argument})")

    def _filtered(self, call: str) -> str:
        return call if self.condition is None else f"{call} FILTER (WHERE {self.condition})"

    def partial(self) -> tuple[tuple[str, str], ...]:
        """The columns of a partial result: their names and how they are computed."""
        if self.function in _SPREAD:
            value = f"CAST({self.argument} AS DOUBLE)"
            low, high, mean, count = (
                self._filtered(f"{name}({value})") for name in ("min", "max", "avg", "count")
            )
            # The mean of equal values may be off by a bit; between minimum and maximum it is not.
            return (
                (f"{self.out}_n", count),
                (f"{self.out}_m", f"greatest({low}, least({high}, {mean}))"),
                (f"{self.out}_q", f"{self._filtered(f'var_pop({value})')} * {count}"),
            )
        if self.function == "avg":
            total = self._filtered(f"sum({self.argument})")
            return (
                (f"{self.out}_s", total),
                (f"{self.out}_n", self._filtered(f"count({self.argument})")),
            )
        return ((f"{self.out}_p", self.text()),)

    def centre(self, keys: str) -> tuple[str, str] | None:
        """A column the merge needs beside every partial result: the common mean of a group."""
        if self.function not in _SPREAD:
            return None
        over = f"OVER (PARTITION BY {keys})" if keys else "OVER ()"
        n, m = f"{self.out}_n", f"{self.out}_m"
        mean = f"sum({n} * {m}) {over} / sum({n}) {over}"
        return f"{self.out}_c", f"greatest(min({m}) {over}, least(max({m}) {over}, {mean}))"

    def combine(self) -> tuple[tuple[str, str], ...]:
        """One partial result from several (and their common mean): columns as of `partial`."""
        if self.function in _SPREAD:
            n, m, q, c = (f"{self.out}_{suffix}" for suffix in "nmqc")
            squares = f"sum({q}) + sum({n} * ({m} - {c}) * ({m} - {c}))"
            return ((n, f"sum({n})"), (m, f"any_value({c})"), (q, squares))
        if self.function == "avg":
            return tuple((name, f"sum({name})") for name in (f"{self.out}_s", f"{self.out}_n"))
        own = self.function in _MERGED_BY_ITSELF or self.function == "bit_xor"
        name = f"{self.out}_p"
        return ((name, f"{self.function if own else 'sum'}({name})"),)

    def merge(self) -> str:
        """The aggregate from partial results (and the common mean)."""
        if self.function in _MERGED_BY_ITSELF or self.function == "bit_xor":
            return f"{self.function}({self.out}_p)"
        if self.function == "count_if":  # for DuckDB the sum of a condition, NULL over nothing
            return f"sum({self.out}_p)"
        if self.function == "count":
            return f"coalesce(sum({self.out}_p), 0)"
        if self.function == "avg":
            return f"CAST(sum({self.out}_s) AS DOUBLE) / sum({self.out}_n)"
        n, m, q, c = (f"{self.out}_{suffix}" for suffix in "nmqc")
        squares = f"(sum({q}) + sum({n} * ({m} - {c}) * ({m} - {c})))"
        count = f"CAST(sum({n}) AS DOUBLE)"
        if self.function.endswith("_pop"):
            spread = f"CASE WHEN sum({n}) > 0 THEN {squares} / {count} END"
        else:
            spread = f"CASE WHEN sum({n}) > 1 THEN {squares} / ({count} - 1) END"
        return f"sqrt({spread})" if self.function.startswith("stddev") else spread


def checked(call: Call, argument_type: str) -> Call:
    """The call, if its argument has a type for which the partial form is exact."""
    needs_number = call.function in ("sum", "avg") or call.function in _SPREAD
    needs_number = needs_number or call.share is not None
    if needs_number and not _NUMBER.match(argument_type) and argument_type != "BOOLEAN":
        raise NotStageable(f"{call.function} over {argument_type} has no exact partial form here")
    if call.distinct and call.function in _BLIND_TO_DUPLICATES:
        return Call(call.out, call.function, call.argument, False, call.condition)
    return call
