"""Catalogs in TOML. Relative paths start at the folder of the file.

[tables]
orders = "orders/*.parquet"
sales.customers = ["customers-1.csv", "customers-2.csv"]   # the table sales.customers
[tables.events]
path = "events/"
format = "json"

[databases]
shop = "shop.duckdb"            # its tables are shop.…

[folders]
archive = "/data/archive"       # every table of the folder, in the schema archive
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from queryard.core.errors import unknown_name
from queryard.core.positions import toml_lines

from .contents import Contents, broken
from .declare import OPTIONS
from .entries import declared
from .folder import read_schema
from .listing import Listing, state_of
from .locations import local_path
from .model import CatalogError, InvalidEntry
from .quoting import identifier
from .survey import Survey

FIELDS = ("tables", "databases", "folders")
# Of the session or the server that uses the tables; they are read where they are used.
SETTINGS = ("session", "backend", "tenants", "limits", "service")


def read_catalog_file(file: Path, survey: Survey) -> Contents:
    """The tables a TOML file names."""
    text, data = survey.catalog_file(lambda: _kept(file, survey))
    try:
        return read_catalog(data, file.parent, survey)
    except InvalidEntry as error:
        raise CatalogError(f"{file}{_line(text, error)}: {error}") from error
    except CatalogError as error:
        raise CatalogError(f"{file}: {error}") from error


def _kept(file: Path, survey: Survey) -> tuple[str, dict[str, Any]]:
    """The file as it is now; it is parsed if it has changed."""
    return survey.own.kept("catalog file", state_of(str(file)), lambda: _parsed(file))


def _parsed(file: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogError(f"{file}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{file}: is not text in UTF-8 (byte {error.start})") from error
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{file}: not valid TOML: {error}") from error


def _line(text: str, error: InvalidEntry) -> str:
    """Where the entry stands, or the key of it that is at fault."""
    lines = toml_lines(text)
    path = error.path if error.option is None else (*error.path, error.option)
    while path and path not in lines:
        path = path[:-1]
    return f", line {lines[path]}" if path else ""


def read_catalog(data: Mapping[str, object], base: Path, survey: Survey) -> Contents:
    """The tables that data, as TOML gives it, names.

    An entry with data that cannot be used is left out, with the reason. One that cannot be meant as
    it is written is an error.
    """
    for key in data:
        if key not in FIELDS + SETTINGS:
            raise InvalidEntry(unknown_name("key", key, FIELDS + SETTINGS), key)
    contents = Contents(settings={key: data[key] for key in SETTINGS if key in data})
    for name, value in _named(data, "tables"):
        for path, key, inner in _tables_of(name, value):
            contents.add(declared(key, inner, survey, base, path))
    for name, value in _named(data, "databases"):
        options = {"path": value, "format": "database"}
        contents.add(declared(_part(name), options, survey, base, ("databases", name)))
    for name, value in _named(data, "folders"):
        if not isinstance(value, str):
            problem = f"folders.{name}: must be a path, got {value!r}"
            raise InvalidEntry(problem, path=("folders", name))
        contents.add(_folder(name, local_path(value, base), survey))
    if not contents.tables and contents.broken:
        raise CatalogError("; ".join(contents.broken.values()))
    if not contents.tables and not contents.skipped:
        raise CatalogError("names no table; add one under [tables], [databases] or [folders]")
    return contents


def _named(data: Mapping[str, object], field: str) -> Iterator[tuple[str, object]]:
    section = data.get(field, {})
    if not isinstance(section, Mapping):
        raise InvalidEntry(
            f"{field}: must be a table of names, as [{field}], got {section!r}", field
        )
    yield from section.items()


def _tables_of(name: str, value: object) -> Iterator[tuple[tuple[str, ...], str, object]]:
    """A table, or those of a schema: `sales.orders = …` is a table within a table in TOML."""
    options = {option for valid in OPTIONS.values() for option in valid}
    path = ("tables", name)
    if isinstance(value, Mapping) and "path" not in value and not value.keys() <= options:
        for inner, own in value.items():
            if not isinstance(own, str | list | Mapping):
                problem = f'table {name}: says nothing of its path; add path = "…"'
                raise InvalidEntry(problem, path=path)
            yield (*path, inner), f"{_part(name)}.{_part(inner)}", own
    else:
        yield path, _part(name), value


def _part(name: str) -> str:
    """A part of a name, in quotes where it must be."""
    return name if name and "." not in name and '"' not in name else identifier(name)


def _folder(name: str, folder: Path, survey: Survey) -> Contents:
    def look(listing: Listing) -> Contents:
        if not folder.is_dir():
            return broken(name, CatalogError(f"folders.{name}: {folder} is no folder"))
        try:
            return read_schema(folder, name, survey.metadata, listing)
        except CatalogError as error:
            return broken(name, CatalogError(f"folders.{name}: {error}"))

    return survey.at(("folders", name, folder), name, look)
