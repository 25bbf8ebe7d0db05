"""The vocabulary of the catalog: columns, files, splits, and the interface of every table."""

from __future__ import annotations

import hashlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from queryard.core.errors import QueryardError

from .quoting import identifier

Kind = Literal["parquet", "csv", "json", "database", "frame"]


class CatalogError(QueryardError):
    """A table, file or catalog that cannot be used as it is."""


class InvalidEntry(CatalogError):
    """An entry of a catalog that cannot be meant as it is written, whatever the data is.

    `path` leads to the entry in a catalog file, `option` is the key of it that is at fault.
    """

    def __init__(self, message: str, option: str | None = None, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.option = option
        self.path = path


class NotSplittable(CatalogError):
    """A table that can only be read whole; the message says why."""


class Column(NamedTuple):
    """A column and its type, in DuckDB's own words (as DESCRIBE prints it)."""

    name: str
    type: str


class Constraint(NamedTuple):
    """What a database demands of the rows of a table.

    A foreign key names the `table` of the same schema that it refers to, and its columns there. A
    check has its condition as SQL.
    """

    kind: Literal["primary", "unique", "foreign", "check", "not null"]
    name: str
    columns: tuple[str, ...]
    table: str = ""
    referenced: tuple[str, ...] = ()
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a database says of a table beside its columns; files say nothing of the kind."""

    view: bool = False
    definition: str | None = None
    comment: str | None = None
    constraints: tuple[Constraint, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()
    comments: tuple[tuple[str, str], ...] = ()
    """The comments on its columns, by name."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a table.

    `uri` is an absolute path for a local file, and a URI with its scheme for any other. The
    fingerprint is another one as soon as the file is.
    """

    uri: str
    bytes: int
    fingerprint: str


@dataclass(frozen=True, slots=True)
class AttachedDatabase:
    """A DuckDB file with tables in the catalog; to be attached READ_ONLY under the alias."""

    alias: str
    path: str


@dataclass(frozen=True, slots=True)
class SourceSplit:
    """A part of a table that one task reads. The splits of a table are exactly its rows, once each.

    `relation` is SQL for `FROM {relation} AS t` and has exactly the table's columns, in order. For
    a registered frame it is a bare name, under which the reader of the split registers `frame` (a
    slice of the table, a pyarrow.Table without copied data). The name belongs to that slice only.
    `places` are names of machines that hold all of it, where the catalog says so.
    """

    table: str
    index: int
    bytes: float
    rows: float | None
    relation: str
    frame: Any = None
    places: tuple[str, ...] = ()


class Table(ABC):
    """Something to read from. Nothing but its files is looked at before it is asked for.

    Errors of the data (an unreadable file, two files of different columns) are raised by the first
    of `columns`, `rows`, `splits` that is used, and name the file.
    """

    kind: Kind

    def __init__(self, name: str, schema: str = "") -> None:
        self.name = name
        self.schema = schema
        self._opening = threading.RLock()

    @property
    def key(self) -> str:
        """The name in `Catalog.tables`: `name`, or `schema.name`; a name with a dot is quoted."""
        parts = (*(self.schema.split(".") if self.schema else ()), _with_dots_quoted(self.name))
        return ".".join(parts)

    @property
    @abstractmethod
    def columns(self) -> tuple[Column, ...]:
        """What a SELECT * gives."""

    @property
    @abstractmethod
    def files(self) -> tuple[DataFile, ...]:
        """The files that hold it; none for a frame."""

    @property
    def elsewhere(self) -> str:
        """The first of its files that does not lie on this machine; "" if all do."""
        return next((file.uri for file in self.files if "://" in file.uri), "")

    @property
    @abstractmethod
    def bytes(self) -> float:
        """Its size where it lies: files as they are (compressed), frames in memory."""

    @property
    @abstractmethod
    def rows(self) -> float | None:
        """How many rows, where that is known without reading data."""

    @property
    @abstractmethod
    def relation(self) -> str:
        """SQL to be used in FROM for the whole table."""

    @property
    def declared(self) -> Declared:
        """Its keys, comments and defaults, where it lies in a database that knows them."""
        return Declared()

    @property
    def given_options(self) -> tuple[str, ...]:
        """The options that say how its files are read, as texts."""
        return ()

    @property
    def fingerprint(self) -> str:
        """Another one whenever a file is added, removed or changed, or is to be read otherwise."""
        files = (f"{file.uri}\n{file.fingerprint}" for file in self.files)
        return combined_fingerprint([*files, *self.given_options])

    @abstractmethod
    def splits(self, target_bytes: float) -> tuple[SourceSplit, ...]:
        """At least one split, each of about `target_bytes`, or as small as the format allows.

        Raises NotSplittable where the table can be read as a whole only.
        """

    @abstractmethod
    def row_group_splits(self) -> tuple[SourceSplit, ...]:
        """The finest splits there are: a row group, a text file, a chunk of a frame."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key}>"


def combined_fingerprint(parts: Iterable[str]) -> str:
    """One fingerprint of many.

    >>> combined_fingerprint(["a", "b"]) == combined_fingerprint(["a", "c"])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogateescape"))
        digest.update(b"\0")
    return digest.hexdigest()[:32]


def checked_target(target_bytes: float) -> float:
    """A size of splits that can be meant."""
    if not target_bytes > 0:
        raise CatalogError(f"splits of {target_bytes!r} bytes: must be above 0")
    return target_bytes


def _with_dots_quoted(name: str) -> str:
    return identifier(name) if "." in name else name
