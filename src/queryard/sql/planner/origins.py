"""Where the columns of a plan come from: expressions over the columns of one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .expressions import Expr, references, substituted, text


class Origin(NamedTuple):
    """A column of a plan as an expression over the table that a scan reads."""

    scan: int
    expression: Expr


@dataclass(frozen=True, slots=True)
class Scanned:
    """The rows of a scan that are left by the conditions on its table alone.

    `ranged` are the conditions that histograms tell best, since the rows lie in the order of their
    column; `others` are judged on the sample. Those of both that read one column only are
    `on_column`. `share` is what is left of the table, `ranged_share` and `others_share` what
    statistics alone say.
    """

    table: str
    rows: float
    ranged: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    on_column: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ranged_share: float = 1.0
    others_share: float = 1.0
    share: float = 1.0

    @property
    def left(self) -> float:
        """How many rows the conditions leave."""
        return self.rows * self.share

    @property
    def condition(self) -> str:
        """All conditions; "" if there are none."""
        return " AND ".join((*self.ranged, *self.others))


def origin_of(expression: Expr, origins: Mapping[str, Origin | None]) -> Origin | None:
    """Of an expression, if all its columns come from one scan."""
    found: set[int] = set()
    replacements = {}
    for name in references(expression):
        origin = origins.get(name)
        if origin is None:
            return None
        found.add(origin.scan)
        replacements[name] = origin.expression
    if len(found) != 1:
        return None
    return Origin(found.pop(), substituted(expression, replacements))


def sql_of(origin: Origin) -> str:
    """Its text, for a question about the table."""
    return text(origin.expression)


def only_column(expression: Expr) -> str | None:
    """The column of the table that an expression reads, if it is one."""
    names = references(expression)
    return next(iter(names)) if len(names) == 1 else None
