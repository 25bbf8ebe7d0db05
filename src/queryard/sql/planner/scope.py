"""Which names a query can see: the columns of the relations in its FROM, as DuckDB finds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from .errors import NotStageable


@dataclass(frozen=True, slots=True)
class Visible:
    """A column under the name a query uses; a `merged` one of USING answers to table.name only."""

    qualifier: str | None
    name: str | None
    column: str
    merged: bool = False


@dataclass(slots=True)
class Scope:
    """The visible columns in the order of `*`."""

    columns: list[Visible] = field(default_factory=list)

    def unqualified(self, name: str) -> str | None:
        """The plan's column for a bare name; None if there is none."""
        found = {v.column for v in self.columns if not v.merged and _same(v.name, name)}
        if len(found) > 1:
            raise NotStageable(f"the column name {name!r} is ambiguous here")
        return found.pop() if found else None

    def qualified(self, qualifier: str, name: str) -> str | None:
        found = {
            v.column for v in self.columns if _same(v.qualifier, qualifier) and _same(v.name, name)
        }
        if len(found) > 1:
            raise NotStageable(f"the column {qualifier}.{name} is ambiguous here")
        return found.pop() if found else None

    def has_relation(self, name: str) -> bool:
        return any(_same(v.qualifier, name) for v in self.columns)

    def star(self) -> list[Visible]:
        return [v for v in self.columns if not v.merged]

    def star_of(self, qualifier: str) -> list[Visible]:
        found = [v for v in self.columns if _same(v.qualifier, qualifier)]
        if any(v.merged for v in self.columns) or not found:
            raise NotStageable(f"{qualifier}.* is not analysed here")
        return found

    def beside(self, other: Scope) -> Scope:
        """The columns of both sides of a join."""
        mine = {v.qualifier.lower() for v in self.columns if v.qualifier}
        if any(v.qualifier and v.qualifier.lower() in mine for v in other.columns):
            raise NotStageable("two relations have the same name")
        return Scope(self.columns + other.columns)

    def merged(self, pairs: Iterable[tuple[str, str, str, str]]) -> Scope:
        """After USING: (name, left column, right column, column of both) for each name.

        The common column takes the place of the left one; both stay visible by their table.
        """
        columns = list(self.columns)
        for name, left, right, both in pairs:
            place = next(i for i, v in enumerate(columns) if v.column == left and not v.merged)
            columns = [
                replace(v, merged=True) if v.column in (left, right) and _same(v.name, name) else v
                for v in columns
            ]
            columns.insert(place, Visible(None, columns[place].name, both))
        return Scope(columns)


def _same(one: str | None, other: str) -> bool:
    return one is not None and one.lower() == other.lower()
