"""One table as a user names it: a path, a pattern, a URI, several of them, a frame, or options.

"data/orders.parquet"                      a file
"data/orders/"                             a folder: all its data files are parts of the table
"logs/*.jsonl.gz"                          a pattern
["a.csv", "b.csv"]                         several, of one format
{"path": "x.txt", "format": "csv", "delimiter": "|", "columns": {"id": "BIGINT"}}
pandas / Polars / Arrow frame              a table in memory
"shop.duckdb"                              a database: the name becomes its alias
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from queryard.core.errors import unknown_name

from . import csv_files, json_files
from .csv_files import CsvTable
from .database import is_database, open_database
from .file_table import FileTable
from .formats import NO_ARROW, Format, format_of, is_arrow
from .frames import FrameTable, is_frame
from .json_files import JsonTable
from .locations import list_files, local_path, scheme_of
from .metadata import MetadataReader
from .model import AttachedDatabase, CatalogError, DataFile, Table
from .parquet import ParquetTable
from .quoting import split_name

COMMON = ("path", "format", "hive", "types")
OPTIONS: Mapping[Format, tuple[str, ...]] = {
    "parquet": (*COMMON, "binary_as_string"),
    "csv": (*COMMON, "columns", *csv_files.OPTIONS),
    "json": (*COMMON, "columns", *json_files.OPTIONS),
    "database": ("path", "format"),
}
CLASSES: Mapping[Format, type[FileTable]] = {
    "parquet": ParquetTable,
    "csv": CsvTable,
    "json": JsonTable,
}
SYNONYMS = {"tsv": "csv", "jsonl": "json", "ndjson": "json", "duckdb": "database"}


@dataclass(slots=True)
class Contents:
    """What a place turned out to hold."""

    tables: list[Table] = field(default_factory=list)
    databases: list[AttachedDatabase] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    """What lies there and is no table, with the reason."""
    settings: dict[str, object] = field(default_factory=dict)
    """What a catalog file says of the session that uses it."""

    def add(self, other: Contents) -> None:
        self.tables += other.tables
        self.databases += other.databases
        self.skipped += other.skipped


def declare(name: str, value: object, base: Path | None, metadata: MetadataReader) -> Contents:
    """The table (or the database) that a name stands for; relative paths start at `base`."""
    schema, own = _name_parts(name)
    if is_frame(value):
        return Contents([FrameTable(own, schema, value, metadata)])
    options = dict(value) if isinstance(value, Mapping) else {"path": value}
    paths = _paths(name, options)
    chosen = _given_format(name, options)
    if chosen == "database" or (chosen is None and _names_database(paths, base)):
        return _declare_database(name, paths, options, base, metadata)
    files = _list_all(name, paths, base)
    chosen = chosen or _common_format(name, files)
    if "format" in options and options["format"] == "tsv":
        options.setdefault("delimiter", "\t")
    check_options(name, options, chosen)
    return Contents([file_table(own, schema, files, chosen, options, metadata)])


def file_table(
    name: str,
    schema: str,
    files: Sequence[DataFile],
    chosen: Format,
    options: Mapping[str, object],
    metadata: MetadataReader,
) -> FileTable:
    """A table over files that are known."""
    return CLASSES[chosen](name, schema, files, options, metadata)


def check_options(name: str, options: Mapping[str, object], chosen: Format) -> None:
    """Every option must be one of the format, and of the right kind."""
    for option, value in options.items():
        if option not in OPTIONS[chosen]:
            what = f"option of the {chosen} table {name}:"
            raise CatalogError(unknown_name(what, option, OPTIONS[chosen]))
        if option in ("hive", "header", "null_padding", "binary_as_string"):
            _expect(name, option, value, isinstance(value, bool), "true or false")
        if option in ("columns", "types"):
            fits = isinstance(value, Mapping) and all(
                isinstance(k, str) and isinstance(v, str) for k, v in value.items()
            )
            _expect(
                name, option, value, fits and bool(value), "names with types, as {id = 'BIGINT'}"
            )
        if option in ("skip", "maximum_object_size"):
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            _expect(name, option, value, fits, "a whole number")


def _expect(name: str, option: str, value: object, fits: bool, what: str) -> None:
    if not fits:
        raise CatalogError(f"table {name}: {option} must be {what}, got {value!r}")


def _name_parts(name: str) -> tuple[str, str]:
    parts = split_name(name)
    if not 1 <= len(parts) <= 2 or not all(parts):
        raise CatalogError(
            f"table name {name!r}: must be a name, or a schema and a name with a dot between; "
            "put a name that holds a dot in double quotes"
        )
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _paths(name: str, options: Mapping[str, Any]) -> list[str]:
    given = options.get("path")
    if given is None:
        raise CatalogError(f'table {name}: says nothing of its path; add path = "…"')
    several = given if isinstance(given, list | tuple) else [given]
    for path in several:
        if not isinstance(path, str | os.PathLike):
            raise CatalogError(
                f"table {name}: a {type(path).__name__} is neither a path nor a frame; give a "
                "path, a pattern, a URI, a list of them, an Arrow table, a pandas or Polars frame"
            )
    if not several:
        raise CatalogError(f"table {name}: the list of its paths is empty")
    return [os.fspath(path) for path in several]


def _given_format(name: str, options: Mapping[str, Any]) -> Format | None:
    given = options.get("format")
    if given is None:
        return None
    chosen = SYNONYMS.get(given, given) if isinstance(given, str) else given
    for valid in get_args(Format):
        if valid == chosen:
            return valid  # type: ignore[no-any-return]
    names = (*get_args(Format), *SYNONYMS)
    raise CatalogError(f"table {name}: {unknown_name('format', given, names)}")


def _names_database(paths: Sequence[str], base: Path | None) -> bool:
    if len(paths) != 1 or scheme_of(paths[0]):
        return False
    path = local_path(paths[0], base)
    return format_of(path.name) == "database" or (path.is_file() and is_database(path))


def _declare_database(
    name: str,
    paths: Sequence[str],
    options: Mapping[str, object],
    base: Path | None,
    metadata: MetadataReader,
) -> Contents:
    check_options(name, options, "database")
    if len(paths) != 1 or scheme_of(paths[0]):
        raise CatalogError(f"database {name}: must be one local file, got {list(paths)}")
    if len(split_name(name)) != 1:
        raise CatalogError(f"database {name}: its name is an alias and may not hold a dot")
    alias = split_name(name)[0]
    database, tables = open_database(alias, local_path(paths[0], base), metadata)
    return Contents(list(tables), [database])


def _list_all(name: str, paths: Sequence[str], base: Path | None) -> list[DataFile]:
    found: dict[str, DataFile] = {}
    for path in paths:
        try:
            listed = list_files(path, base)
        except CatalogError as error:
            raise CatalogError(f"table {name}: {error}") from error
        found.update((file.uri, file) for file in listed)
    return list(found.values())


def _common_format(name: str, files: Sequence[DataFile]) -> Format:
    first: tuple[str, Format] | None = None
    for file in files:
        found = format_of(file.uri)
        if is_arrow(file.uri):
            raise CatalogError(f"{file.uri}: {NO_ARROW}")
        if found is None or found == "database":
            raise CatalogError(
                f"{file.uri}: the ending does not tell the format; "
                f'say it for the table {name}: format = "csv", "json" or "parquet"'
            )
        if first is None:
            first = (file.uri, found)
        elif first[1] != found:
            raise CatalogError(
                f"{file.uri}: is {found}, but {first[0]} is {first[1]}; "
                f"the table {name} must be of one format"
            )
    if first is None:
        raise CatalogError(f"table {name}: there is no file")
    return first[1]
