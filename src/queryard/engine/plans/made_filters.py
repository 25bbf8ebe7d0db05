"""What filters keep that test what an aggregate or a window has made: no sample has such values.

Rows of a group are taken for geometrically distributed, and sums of a group for exponentially,
since most keys are skewed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

from .streams import Column, bare, source

_COMPARED = re.compile(r"\(?(.+?) (<=|>=|<|>|=) (\d+(?:\.\d+)?)\)?")
_PRESENT = re.compile(r"\(?(.+) IS NOT NULL\)?")
_RANKS = ("row_number", "rank", "dense_rank")
_SHIFTS = ("lag", "lead")
_ADDED = re.compile(r"sum(?:_no_overflow)?\((.+)\)")
_PARTITIONED = re.compile(r"OVER \(PARTITION BY (.+?)(?: ORDER BY .*)?\)$")


Mean = Callable[[Column], float | None]
"""The mean of the values of a column, where it is known."""


def aggregated(call: str, below: Sequence[Column], group_rows: float) -> Column:
    """What an aggregate makes of groups of so many rows."""
    added = _ADDED.fullmatch(call)
    return Column(
        call=call, group_rows=group_rows, added=None if added is None else source(added[1], below)
    )


def partition_keys(call: str) -> list[str] | None:
    """By what the partitions of a rank are made; None of other windows.

    >>> partition_keys("rank() OVER (PARTITION BY a, b ORDER BY c DESC)"), partition_keys("sum(a)")
    (['a', 'b'], None)
    >>> partition_keys("row_number() OVER (ORDER BY c)")
    []
    """
    if _function(call) not in _RANKS:
        return None
    found = _PARTITIONED.search(call)
    return [] if found is None else found[1].split(", ")


def made_share(
    conditions: Sequence[str],
    columns: Sequence[Column],
    meanings: Mapping[str, str],
    mean: Mean = lambda column: None,
) -> float | None:
    """The share of rows that pass; None unless that can be told of all conditions.

    >>> count = Column(call="count_star()", group_rows=2.0)
    >>> made_share(["(n > 2)"], [count], {"n": "count(*)"}), made_share(["(n > 2)"], [count], {})
    (0.25, None)
    >>> made_share(["(#0 <= 3)"], [Column(call="rank() OVER ()", group_rows=60.0)], {})
    0.05
    >>> total = Column(call="sum(#1)", group_rows=4.0, added=Column("x"))
    >>> round(made_share(["(#0 > 300)"], [total], {}, lambda column: 25.0), 3)
    0.05
    """
    share = 1.0
    for text in conditions:
        found = _share(text, lambda name: _made(name, columns, meanings), mean)
        if found is None:
            return None
        share *= found
    return share


def _share(text: str, made: Callable[[str], Column | None], mean: Mean) -> float | None:
    compared, present = _COMPARED.fullmatch(text), _PRESENT.fullmatch(text)
    if compared is not None:
        column = made(compared[1])
        sign, value = compared[2], float(compared[3])
        if column is not None and column.added is not None:
            return _share_of_sums(column, column.added, sign, value, mean)
        below = _below_of(column)
        if below is None:
            return None
        # How many values are below the number, and how many are not above it.
        less, most = below(math.ceil(value)), below(math.floor(value) + 1)
        kept = {"<": less, "<=": most, ">=": 1 - less, ">": 1 - most, "=": most - less}
        return kept[sign]
    if present is not None and (column := made(present[1])) is not None:
        return 1.0 if _function(column.call) in _SHIFTS else None
    return None


def _share_of_sums(
    column: Column, added: Column, sign: str, value: float, mean: Mean
) -> float | None:
    each = mean(added)
    if each is None or each <= 0 or sign == "=":
        return None
    above = math.exp(-value / (each * max(1.0, column.group_rows)))
    return above if sign.startswith(">") else 1 - above


def _below_of(column: Column | None) -> Callable[[float], float] | None:
    """The share of the values of a count or a rank that are below a number."""
    if column is None or column.group_rows <= 0:
        return None
    mean = max(1.0, column.group_rows)
    if _function(column.call) in _RANKS:
        return lambda number: min(1.0, max(0.0, number - 1) / mean)
    if column.call == "count_star()":
        return lambda number: 1 - (1 - 1 / mean) ** max(0.0, number - 1)
    return None


def _made(name: str, columns: Sequence[Column], meanings: Mapping[str, str]) -> Column | None:
    """What an aggregate or a window has made, by its place or its name."""
    found = source(name, columns)
    if found is not None:
        return found if found.call else None
    inner = bare(name)
    function = _function(meanings.get(inner.strip('"').lower(), inner))
    alike = [one for one in columns if one.call and _function(one.call) == function]
    return alike[0] if len({one.call for one in alike}) == 1 else None


def _function(call: str) -> str:
    if call.lower().replace(" ", "").startswith(("count(*)", "count()")):
        return "count_star"
    return call.partition("(")[0].strip().lower()
