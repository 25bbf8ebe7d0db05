"""By what error and progress of an online answer are measured: columns, groups, a function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queryard.results.errors import QueryFailed
from queryard.results.online import unlike_labels

from .wish import OnlineWish

if TYPE_CHECKING:
    from queryard.sql.online import OutputColumn

# So many groups are named where one is wrong.
MOST_NAMED = 10


class WrongMeasure(QueryFailed):
    """A wish that names what the query does not have, or a function that fails."""


class Measure:
    """What of an answer counts: all estimated columns of all groups, unless the wish says less."""

    def __init__(self, fields: Sequence[OutputColumn], wish: OnlineWish) -> None:
        self.labels = unlike_labels([field.name for field in fields])
        self._names = [field.name for field in fields]
        # Places of the estimated columns, of those that count, and of the columns of groups.
        self.estimated = [i for i, f in enumerate(fields) if f.kind in ("estimated", "quantile")]
        self.keys = [i for i, field in enumerate(fields) if field.kind == "key"]
        self.places = self._places(wish.columns)
        self._groups = {self._group(each): each for each in wish.groups}
        self._function = wish.measure

    def _places(self, wanted: Sequence[str]) -> list[int]:
        if not wanted:
            return self.estimated
        estimated = {self._names[i].lower() for i in self.estimated}
        for name in wanted:
            if name.lower() not in estimated:
                told = ", ".join(self._names[i] for i in self.estimated) or "none"
                raise WrongMeasure(f"columns: nothing is estimated in {name!r} (estimated: {told})")
        lower = {name.lower() for name in wanted}
        return [i for i in self.estimated if self._names[i].lower() in lower]

    def _group(self, wanted: object) -> tuple[Any, ...]:
        values = wanted if isinstance(wanted, tuple) else (wanted,)
        if len(values) == len(self.keys):
            return _plain(values)
        names = ", ".join(self._names[i] for i in self.keys)
        if not names:
            raise WrongMeasure(
                f"groups: {wanted!r} is no group, as the answer has no group columns"
            )
        raise WrongMeasure(
            f"groups: {wanted!r} must be a value of each group column of the answer ({names})"
        )

    def counts(self, row: Sequence[Any]) -> bool:
        """Whether a row of the answer belongs to a group that counts."""
        return not self._groups or _plain([row[i] for i in self.keys]) in self._groups

    def counting(self, found: pa.Table) -> pa.Table:
        """Of gathered groups those that count; all of them while none of the wanted was seen."""
        if not self._groups:
            return found
        kept = found.filter(pa.array([key in self._groups for key in self._found(found)]))
        return kept if kept.num_rows else found

    def unseen(self, found: pa.Table) -> str:
        """What to say of wanted groups that are not among those gathered; "" if all are."""
        if not self._groups:
            return ""
        there = set(self._found(found))
        missing = [repr(told) for key, told in self._groups.items() if key not in there]
        if not missing:
            return ""
        keys = found.select([f"o{i}" for i in self.keys]).slice(0, MOST_NAMED).to_pylist()
        known = [tuple(row.values()) if len(row) > 1 else next(iter(row.values())) for row in keys]
        told = ", ".join(str(each) for each in known) or "none"
        if found.num_rows > MOST_NAMED:
            told += f" and {found.num_rows - MOST_NAMED:,} more"
        return f"groups: there is no group {', '.join(missing)} in what was read (groups: {told})"

    def _found(self, found: pa.Table) -> list[tuple[Any, ...]]:
        """The groups of gathered rows."""
        columns = [found.column(f"o{i}").to_pylist() for i in self.keys]
        return [_plain(values) for values in zip(*columns, strict=True)]

    # --- a function of the user's ----------------------------------------------------------------

    @property
    def has_function(self) -> bool:
        return self._function is not None

    def value(self, keys: Sequence[Any], values: Sequence[Any]) -> float:
        """What the function makes of some rows: columns of keys and of estimates that count."""
        assert self._function is not None
        names = [self.labels[i] for i in (*self.keys, *self.places)]
        rows = pa.table([*keys, *values], names)
        try:
            found: object = self._function(rows)
        except Exception as error:
            told = str(error) or type(error).__name__
            raise WrongMeasure(f"measure: the function failed: {told}") from error
        if isinstance(found, bool) or not isinstance(found, int | float) or math.isnan(found):
            raise WrongMeasure(f"measure: the function must give a number, it gave {found!r}")
        return float(found)


def _plain(values: Sequence[Any]) -> tuple[Any, ...]:
    """Values in a form in which equal ones are equal, whatever their types.

    >>> _plain([Decimal("1.50"), 2.0, "a", None]) == _plain([1.5, 2, "a", None])
    True
    """
    return tuple(_one(value) for value in values)


def _one(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float | Decimal):
        return float(value)
    return str(value)
