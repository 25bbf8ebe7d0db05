"""What a client may reach, and how an instance of DuckDB is sealed so that it reaches no more.

A client of an embedded session reaches what its process does. A client of a server is *sealed*: its
statements run on instances that read the files of its granted tables and no others, load no
extensions and cannot be told otherwise (`Seal`). Which statements it may put is decided before, by
`queryard.engine.sealing.statements`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from queryard.core.errors import QueryardError
from queryard.sql.catalog import Catalog
from queryard.sql.catalog.granted import GrantedCatalog
from queryard.sql.catalog.open_files import note_writable
from queryard.sql.catalog.quoting import literal, path_pattern

from .hiding import hidden, without_folders

_NOTHING: frozenset[str] = frozenset()
# A database file, and what DuckDB makes beside it while it is written, and reads afterwards.
_OF_DATABASE = ("", ".wal", ".wal.checkpoint", ".wal.recovery")
# Neither extensions nor secrets come from outside.
_CLOSED = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
}


@dataclass(frozen=True)
class Access:
    """What a client may reach; the default is all that an embedded session may.

    `tables` are names of tables, or patterns such as `sales.*`; None means all. A database is
    granted as a whole (`shop.*`). `sealed` clients have no files but those of granted tables, no
    extensions and no ATTACH; they may write to the databases `writes`, by alias, and COPY … TO
    files in the folder `output`, but for those in its folders `private`.

    >>> Access(tables=["Sales.*"], sealed=True).tables
    frozenset({'sales.*'})
    """

    tables: frozenset[str] | None = None
    sealed: bool = False
    writes: frozenset[str] = _NOTHING
    output: Path | None = None
    private: frozenset[Path] = frozenset()

    def __post_init__(self) -> None:
        if self.tables is not None:
            object.__setattr__(self, "tables", _names("tables", self.tables))
        object.__setattr__(self, "writes", _names("writes", self.writes))
        if self.output is not None:
            object.__setattr__(self, "output", Path(self.output).resolve())
        private = frozenset(Path(folder).resolve() for folder in self.private)
        object.__setattr__(self, "private", private)
        if not self.sealed and (self.writes or self.output is not None):
            raise QueryardError(
                "access: `writes` and `output` are grants of sealed clients; other clients are "
                "opened for writing as a whole (writes=True)"
            )

    @property
    def lets_write(self) -> bool:
        """Whether it grants to write anything that outlives the client."""
        return bool(self.writes) or self.output is not None


def _names(field: str, given: Iterable[object]) -> frozenset[str]:
    if isinstance(given, str) or not all(isinstance(name, str) and name for name in given):
        raise QueryardError(f"access: {field} must be a list of names, got {given!r}")
    return frozenset(str(name).lower() for name in given)


ALL = Access()
"""All that an embedded session reaches."""


@dataclass(frozen=True)
class Seal:
    """The files and folders that an instance may open; it can open no others, ever.

    DuckDB takes no further paths once external access is off, so other files mean another seal,
    and another instance. Its own folder for spilled rows is always open to an instance.
    """

    paths: frozenset[str] = _NOTHING
    folders: frozenset[str] = _NOTHING

    def with_paths(self, more: Iterable[str]) -> Seal:
        """The same, with further files."""
        return replace(self, paths=self.paths.union(more))

    def with_folders(self, more: Iterable[str]) -> Seal:
        """The same, with further folders and all that lies in them."""
        return replace(self, folders=self.folders.union(more))

    def settings(self) -> dict[str, str]:
        """What DuckDB is told, in this order; after the last it can be told nothing else."""
        # It looks for a path as it was written: a name with signs of patterns goes by two.
        paths = sorted(self.paths.union(map(path_pattern, self.paths)))
        return {
            **_CLOSED,
            "allowed_paths": _list(paths),
            "allowed_directories": _list(sorted(self.folders)),
            "enable_external_access": "false",
        }


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, texts))}]"


class Reach:
    """What the queries of a client reach, as of now: the catalog as it sees it, and the seal."""

    def __init__(self, access: Access, whole: Catalog) -> None:
        """`whole` is the catalog of the host."""
        self.access = access
        is_all = access.tables is None and not access.sealed
        self.catalog = whole if is_all else GrantedCatalog(whole, access.tables, access.sealed)
        self._held: tuple[int, Seal] | None = None

    @property
    def sealed(self) -> bool:
        return self.access.sealed

    def seal(self) -> Seal | None:
        """What an instance may open for it: exactly the granted files; None for no seal."""
        if not self.access.sealed:
            return None
        version = self.catalog.version
        held = self._held
        if held is None or held[0] != version:
            output = self.access.output
            folders = _NOTHING if output is None else frozenset({str(output)})
            held = self._held = version, Seal(frozenset(self._paths()), folders)
            for database in self.catalog.databases:
                if database.alias.lower() in self.access.writes:
                    note_writable(database.path)
        return held[1]

    def told(self, error: BaseException) -> BaseException:
        """An error as its clients may see it."""
        return hidden(error, self._folders()) if self.access.sealed else error

    def hide(self, text: str) -> str:
        """A text as its clients may see it."""
        return without_folders(text, self._folders()) if self.access.sealed else text

    def _folders(self) -> set[str]:
        seal = self.seal()
        return set() if seal is None else {os.path.dirname(path) for path in seal.paths} - {""}

    def _paths(self) -> Iterable[str]:
        for table in self.catalog.tables.values():
            if table.kind != "database":
                yield from (file.uri for file in table.files if "://" not in file.uri)
        for database in self.catalog.databases:
            yield from (database.path + suffix for suffix in _OF_DATABASE)

    def __repr__(self) -> str:
        return f"<Reach {self.access}>"
