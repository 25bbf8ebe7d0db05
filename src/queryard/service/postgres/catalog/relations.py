"""The relations of `pg_catalog` and `information_schema`: columns, and which have rows here."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from .types import read_data

Rows = Literal["filled", "empty", "refused"]


class RelationColumn(NamedTuple):
    """A column of a relation of the catalogs; `type` is a name of `pg_type`."""

    name: str
    type: str
    not_null: bool


class Relation(NamedTuple):
    """A relation of PostgreSQL's catalogs.

    `rows` is "filled" for what there is here too; "empty" for what there is not (triggers,
    policies, extensions …), so that no rows are the right answer; "refused" for the others.
    """

    schema: str
    name: str
    oid: int
    kind: str
    rows: Rows
    columns: tuple[RelationColumn, ...]

    @property
    def key(self) -> str:
        """Its name in the small DuckDB instance."""
        return f"{self.schema}.{self.name}"


@cache
def relations() -> dict[tuple[str, str], Relation]:
    """All relations by schema and name."""
    found = {}
    for line in read_data("relations.txt").splitlines():
        schema, name, oid, kind, rows, *columns = line.split(" ")
        found[schema, name] = Relation(
            schema, name, int(oid), kind, _rows(rows), tuple(_column(text) for text in columns)
        )
    return found


_ROWS: tuple[Rows, ...] = ("filled", "empty", "refused")


def _rows(text: str) -> Rows:
    for known in _ROWS:
        if text == known:
            return known
    raise ValueError(f"relations.txt: {text!r} is not filled, empty or refused")


def _column(text: str) -> RelationColumn:
    name, _, type_ = text.partition(":")
    return RelationColumn(name, type_.rstrip("!"), type_.endswith("!"))


@cache
def answered() -> tuple[Relation, ...]:
    """The relations that there are here, with rows or without."""
    return tuple(found for found in relations().values() if found.rows != "refused")
