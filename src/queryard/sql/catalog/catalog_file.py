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

from queryard.core.errors import unknown_name

from .declare import OPTIONS, Contents, declare
from .folder import read_folder
from .locations import local_path
from .metadata import MetadataReader
from .model import CatalogError
from .quoting import identifier

FIELDS = ("tables", "databases", "folders")
# Of the session that uses the tables; they are read where they are used.
SETTINGS = ("session", "tenants", "limits")


def read_catalog_file(file: Path, metadata: MetadataReader) -> Contents:
    """The tables a TOML file names."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise CatalogError(f"{file}: cannot be read ({error.strerror or error})") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{file}: is not text in UTF-8 (byte {error.start})") from error
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CatalogError(f"{file}: not valid TOML: {error}") from error
    try:
        return read_catalog(data, file.parent, metadata)
    except CatalogError as error:
        raise CatalogError(f"{file}: {error}") from error


def read_catalog(data: Mapping[str, object], base: Path, metadata: MetadataReader) -> Contents:
    """The tables that data, as TOML gives it, names."""
    for key in data:
        if key not in FIELDS + SETTINGS:
            raise CatalogError(unknown_name("key", key, FIELDS + SETTINGS))
    contents = Contents(settings={key: data[key] for key in SETTINGS if key in data})
    for name, value in _named(data, "tables"):
        for key, inner in _tables_of(name, value):
            contents.add(declare(key, inner, base, metadata))
    for name, value in _named(data, "databases"):
        options = {"path": value, "format": "database"}
        contents.add(declare(_part(name), options, base, metadata))
    for name, value in _named(data, "folders"):
        if not isinstance(value, str):
            raise CatalogError(f"folders.{name}: must be a path, got {value!r}")
        contents.add(_folder(name, local_path(value, base), metadata))
    if not contents.tables and not contents.skipped:
        raise CatalogError("names no table; add one under [tables], [databases] or [folders]")
    return contents


def _named(data: Mapping[str, object], field: str) -> Iterator[tuple[str, object]]:
    section = data.get(field, {})
    if not isinstance(section, Mapping):
        raise CatalogError(f"{field}: must be a table of names, as [{field}], got {section!r}")
    yield from section.items()


def _tables_of(name: str, value: object) -> Iterator[tuple[str, object]]:
    """A table, or those of a schema: `sales.orders = …` is a table within a table in TOML."""
    options = {option for valid in OPTIONS.values() for option in valid}
    if isinstance(value, Mapping) and "path" not in value and not value.keys() <= options:
        for inner, own in value.items():
            if not isinstance(own, str | list | Mapping):
                raise CatalogError(f'table {name}: says nothing of its path; add path = "…"')
            yield f"{_part(name)}.{_part(inner)}", own
    else:
        yield _part(name), value


def _part(name: str) -> str:
    """A part of a name, in quotes where it must be."""
    return name if name and "." not in name and '"' not in name else identifier(name)


def _folder(name: str, path: Path, metadata: MetadataReader) -> Contents:
    if not path.is_dir():
        raise CatalogError(f"folders.{name}: {path} is no folder")
    contents = read_folder(path, metadata)
    kept = Contents(databases=contents.databases, skipped=contents.skipped)
    for table in contents.tables:
        if not table.schema:
            table.schema = name
        elif table.kind != "database":
            reason = f"is a schema inside the schema {name!r}; name its tables by themselves"
            kept.skipped.append((f"{path}/{table.schema}/{table.name}", reason))
            continue
        kept.tables.append(table)
    return kept
