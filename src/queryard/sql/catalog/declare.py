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
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from queryard.core.errors import unknown_name

from . import csv_files, json_files
from .contents import Contents
from .csv_files import CsvTable
from .database import is_database, open_database, with_files
from .file_table import FileTable
from .formats import NO_ARROW, Format, format_of, is_arrow
from .frames import FrameTable, is_frame
from .json_files import JsonTable
from .listing import Listing, state_of
from .locations import list_files, local_path, scheme_of
from .metadata import MetadataReader
from .model import CatalogError, DataFile, InvalidEntry
from .open_files import definitions
from .parquet import ParquetTable
from .quoting import split_name

COMMON = ("path", "format", "hive", "types", "filename", "places")
OPTIONS: Mapping[Format, tuple[str, ...]] = {
    "parquet": (*COMMON, "union_by_name", "binary_as_string"),
    "csv": (*COMMON, "columns", "union_by_name", *csv_files.OPTIONS),
    "json": (*COMMON, "columns", *json_files.OPTIONS),
    "database": ("path", "format"),
}
SWITCHES = (
    "hive",
    "header",
    "null_padding",
    "binary_as_string",
    "union_by_name",
    "ignore_errors",
    "strict_mode",
)
TEXTS = (
    "delimiter",
    "quote",
    "escape",
    "comment",
    "encoding",
    "decimal_separator",
    "thousands",
    "date_format",
    "timestamp_format",
    "compression",
)
CLASSES: Mapping[Format, type[FileTable]] = {
    "parquet": ParquetTable,
    "csv": CsvTable,
    "json": JsonTable,
}
SYNONYMS = {"tsv": "csv", "jsonl": "json", "ndjson": "json", "duckdb": "database"}


def declare(
    name: str,
    value: object,
    base: Path | None,
    metadata: MetadataReader,
    listing: Listing | None = None,
) -> Contents:
    """The table (or the database) that a name stands for; relative paths start at `base`.

    What is wrong with the entry as it is written is an InvalidEntry; any other CatalogError is
    about the data.
    """
    listing = listing or Listing()
    schema, own = name_parts(name)
    if is_frame(value):
        return Contents([FrameTable(own, schema, value, metadata)])
    options = dict(value) if isinstance(value, Mapping) else {"path": value}
    paths = _paths(name, options)
    chosen: Format | None = _given_format(name, options)
    if chosen == "database" or (chosen is None and _names_database(paths, base, listing)):
        return _declare_database(name, paths, options, base, metadata, listing)
    try:
        files = _list_all(name, paths, base, listing)
        found = listing.kept(
            "format", (chosen, files), lambda: chosen or _common_format(name, files)
        )
    except CatalogError:
        _check_known(name, options)
        raise
    if "format" in options and options["format"] == "tsv":
        options.setdefault("delimiter", "\t")
    check_options(name, options, found)
    return Contents([file_table(own, schema, files, found, options, metadata, listing)])


def file_table(
    name: str,
    schema: str,
    files: tuple[DataFile, ...],
    chosen: Format,
    options: Mapping[str, object],
    metadata: MetadataReader,
    listing: Listing,
) -> FileTable:
    """A table over files that are known: the one of the last look, if they are the same."""
    seen = (files, chosen, options)
    return listing.kept(
        (schema, name), seen, lambda: CLASSES[chosen](name, schema, files, options, metadata)
    )


def check_options(name: str, options: Mapping[str, object], chosen: Format) -> None:
    """Every option must be one of the format, and of the right kind."""
    for option, value in options.items():
        if option not in OPTIONS[chosen]:
            what = f"option of the {chosen} table {name}:"
            raise InvalidEntry(unknown_name(what, option, OPTIONS[chosen]), option)
        if option in SWITCHES:
            _expect(name, option, value, isinstance(value, bool), "true or false")
        if option in ("columns", "types"):
            fits = isinstance(value, Mapping) and all(
                isinstance(k, str) and isinstance(v, str) for k, v in value.items()
            )
            _expect(
                name, option, value, fits and bool(value), "names with types, as {id = 'BIGINT'}"
            )
        if option == "places":
            fits = isinstance(value, Mapping) and bool(value) and all(map(_is_place, value.items()))
            what = "patterns of files with machines, as {'eu/*' = ['10.0.0.5']}"
            _expect(name, option, value, fits, what)
        if option in ("skip", "maximum_object_size", "maximum_line_size"):
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            _expect(name, option, value, fits, "a whole number")
        if option in TEXTS:
            _expect(name, option, value, isinstance(value, str), "a text")
        if option == "filename":
            fits = isinstance(value, bool) or (isinstance(value, str) and value != "")
            _expect(name, option, value, fits, "true, false or the name of the column")
    if options.get("union_by_name") is True and "columns" in options:
        raise InvalidEntry(
            f"table {name}: columns and union_by_name exclude each other, as columns are named in "
            "the order of one file; say the types of some columns in types",
            "columns",
        )


def _is_place(entry: tuple[object, object]) -> bool:
    pattern, places = entry
    several = places if isinstance(places, list | tuple) else [places]
    return isinstance(pattern, str) and all(isinstance(one, str) and one for one in several)


def _check_known(name: str, options: Mapping[str, object]) -> None:
    """Every option must be one of some format, even of a table without data."""
    known = sorted({option for valid in OPTIONS.values() for option in valid})
    for option in options:
        if option not in known:
            raise InvalidEntry(unknown_name(f"option of the table {name}:", option, known), option)


def _expect(name: str, option: str, value: object, fits: bool, what: str) -> None:
    if not fits:
        raise InvalidEntry(f"table {name}: {option} must be {what}, got {value!r}", option)


def name_parts(name: object) -> tuple[str, str]:
    """The schema, or "", and the name of a table."""
    parts = split_name(name) if isinstance(name, str) else ()
    if not 1 <= len(parts) <= 2 or not all(parts):
        raise InvalidEntry(
            f"table name {name!r}: must be a name, or a schema and a name with a dot between; "
            "put a name that holds a dot in double quotes"
        )
    return ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _paths(name: str, options: Mapping[str, Any]) -> list[str]:
    if "path" not in options:
        _check_known(name, options)
        raise InvalidEntry(f'table {name}: says nothing of its path; add path = "…"')
    given = options["path"]
    several = given if isinstance(given, list | tuple) else [given]
    for path in several:
        if not isinstance(path, str | os.PathLike):
            raise InvalidEntry(
                f"table {name}: a {type(path).__name__} is neither a path nor a frame; give a "
                "path, a pattern, a URI, a list of them, an Arrow table, a pandas or Polars frame"
            )
    if not several:
        raise InvalidEntry(f"table {name}: the list of its paths is empty", "path")
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


def _names_database(paths: Sequence[str], base: Path | None, listing: Listing) -> bool:
    if len(paths) != 1 or scheme_of(paths[0]):
        return False
    path = local_path(paths[0], base)
    if format_of(path.name) == "database" or not path.is_file():
        return format_of(path.name) == "database"
    return listing.kept("is_database", state_of(str(path)), lambda: is_database(path))


def _declare_database(
    name: str,
    paths: Sequence[str],
    options: Mapping[str, object],
    base: Path | None,
    metadata: MetadataReader,
    listing: Listing,
) -> Contents:
    check_options(name, options, "database")
    if len(paths) != 1 or scheme_of(paths[0]):
        raise InvalidEntry(f"database {name}: must be one local file, got {list(paths)}")
    if len(split_name(name)) != 1:
        raise InvalidEntry(f"database {name}: its name is an alias and may not hold a dot")
    alias = split_name(name)[0]
    return database_contents(alias, local_path(paths[0], base), None, metadata, listing)


def database_contents(
    alias: str, path: Path, schema: str | None, metadata: MetadataReader, listing: Listing
) -> Contents:
    """The tables of a database file, which is opened only if it is not as it was.

    While clients of this process write rows and say that they have defined nothing, it is looked at
    once per second, for its size.
    """

    def read() -> Contents:
        number = definitions(path)
        seen: object = object() if number is None else (number, int(time.monotonic()))
        database, tables = listing.kept(
            ("definitions", alias), seen, lambda: open_database(alias, path, metadata, schema)
        )
        return Contents(with_files(tables), [database])

    return listing.kept(("database", alias), state_of(str(path), f"{path}.wal"), read)


def _list_all(
    name: str, paths: Sequence[str], base: Path | None, listing: Listing
) -> tuple[DataFile, ...]:
    listed: list[Sequence[DataFile]] = []
    for path in paths:
        try:
            listed.append(list_files(path, base, listing))
        except CatalogError as error:
            raise CatalogError(f"table {name}: {error}") from error
    if len(listed) == 1:
        return tuple(listed[0])
    return tuple({file.uri: file for files in listed for file in files}.values())


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
