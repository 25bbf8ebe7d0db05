"""What a catalog query gives: rows with PostgreSQL's types, or an error with its SQLSTATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from queryard.core.errors import QueryardError


class UnknownCatalogQuery(QueryardError):
    """A catalog query that cannot be answered rightly, so that it is not answered at all.

    `sqlstate` is 0A000 for what PostgreSQL has and this server has not, else PostgreSQL's own code
    for the mistake: 42P01 (no such relation), 42703 (column), 42883 (function), 42704 (type or
    setting), 42601 (syntax), 22P02 (a value of the wrong form) …
    """

    def __init__(self, message: str, sqlstate: str = "0A000") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class UnknownRelation(UnknownCatalogQuery):
    """A name without a schema that is no relation of the catalogs; it may be one of data."""

    def __init__(self, name: str) -> None:
        super().__init__(f'relation "{name}" does not exist', "42P01")
        self.name = name


class DataBesideCatalogs(UnknownCatalogQuery):
    """A query that reads the catalogs, and data as well."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} is data, and cannot be read together with the catalogs; ask in two statements"
        )


@dataclass(frozen=True, slots=True)
class Described:
    """The columns and parameters of a catalog query; all types are OIDs of PostgreSQL."""

    names: tuple[str, ...]
    oids: tuple[int, ...]
    parameters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    """The rows of a catalog query.

    `table` is a pyarrow.Table, one column per OID: bool (16), int16 (21), int32 (23), int64 (20),
    uint32 (oid 26, xid 28, cid 29), float (700), double (701), string for texts, names, "char"
    and json, and lists of these for arrays, int2vector and oidvector. Values of regclass and its
    kin are strings: the names.
    """

    table: Any
    names: tuple[str, ...]
    oids: tuple[int, ...]
    settings: tuple[tuple[str, str, bool], ...] = ()
    """What `set_config` asked for: the name, the value, and whether for this transaction only."""
