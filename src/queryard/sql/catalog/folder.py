"""A folder of files as a catalog. Nothing is opened: names decide.

- A file is a table, named as the file without its endings: `orders.csv.gz` is `orders`.
- A database file is attached; its tables are `shop.orders` for `shop.duckdb`.
- A folder is **one table**, named as the folder, if all data files below it are of one format and
  either lie in `key=value` folders (hive partitions), or look like parts: they differ in numbers
  only (`part-0001`, `2024-01`), or there is one that is numbered, is called like the folder, or is
  called `part` or `data`.
- Any other folder is a **schema**; its files, and its folders that are tables, are `folder.name`.
- Hidden things (`.x`, `_x`) and files of other formats are passed over. What looks like data and
  is no table (a schema inside a schema, a Delta or Iceberg table, an Arrow file) is listed in
  `skipped`.

If that guesses wrong, name the tables in a catalog file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from .database import is_database, open_database
from .declare import Contents, file_table
from .formats import (
    NO_ARROW,
    Format,
    format_of,
    is_arrow,
    is_hidden,
    is_hive_folder,
    looks_like_parts,
    stem,
)
from .locations import data_files_below, local_file
from .metadata import MetadataReader
from .model import CatalogError


def read_folder(folder: Path, metadata: MetadataReader) -> Contents:
    """All tables of a folder."""
    contents = Contents()
    files, folders = _entries(folder)
    for file in files:
        _add_file(contents, file, "", metadata)
    for inner in folders:
        if not _add_as_table(contents, inner, "", metadata):
            _add_schema(contents, inner, metadata)
    return contents


def _add_schema(contents: Contents, folder: Path, metadata: MetadataReader) -> None:
    files, folders = _entries(folder)
    for file in files:
        _add_file(contents, file, folder.name, metadata)
    for inner in folders:
        if not _add_as_table(contents, inner, folder.name, metadata):
            reason = "is a schema inside the schema " + repr(folder.name)
            if next(data_files_below(inner), None) is not None:
                contents.skipped.append(
                    (str(inner), f"{reason}; name its tables in a catalog file")
                )


def _add_file(contents: Contents, file: Path, schema: str, metadata: MetadataReader) -> None:
    found = format_of(file.name)
    if found == "database" or (file.suffix == ".db" and is_database(file)):
        alias = file.stem
        try:
            database, tables = open_database(alias, file, metadata)
        except CatalogError as error:
            problem = str(error).removeprefix(f"{file}: ")
            reason = problem if problem.startswith("is ") else f"cannot be opened: {problem}"
            contents.skipped.append((str(file), reason))
            return
        contents.databases.append(database)
        contents.tables.extend(tables)
    elif found is not None:
        table = file_table(stem(file.name), schema, [local_file(file)], found, {}, metadata)
        contents.tables.append(table)
    elif is_arrow(file.name):
        contents.skipped.append((str(file), NO_ARROW))


def _add_as_table(contents: Contents, folder: Path, schema: str, metadata: MetadataReader) -> bool:
    """Whether the folder was one table (or nothing at all)."""
    if lake := _lake(folder):
        reason = f"is a {lake} table, whose files may not be read by themselves"
        contents.skipped.append((str(folder), f"{reason}; export it to Parquet"))
        return True
    files = list(data_files_below(folder))
    if not files:
        return True
    found = _one_table(folder, files)
    if found is None:
        return False
    listed = [local_file(file) for file in files]
    contents.tables.append(file_table(folder.name, schema, listed, found, {}, metadata))
    return True


def _one_table(folder: Path, files: Sequence[Path]) -> Format | None:
    """The format of the table a folder is, or None if it is none."""
    formats = {format_of(file.name) for file in files}
    if len(formats) != 1:
        return None
    found = formats.pop()
    if found is None or found == "database":
        return None
    within = [file.relative_to(folder).parts[:-1] for file in files]
    if all(parts and all(map(is_hive_folder, parts)) for parts in within):
        return found
    if any(within):
        return None  # folders that are no partitions hold something of their own
    return found if looks_like_parts([stem(file.name) for file in files], folder.name) else None


def _lake(folder: Path) -> str | None:
    if (folder / "_delta_log").is_dir():
        return "Delta Lake"
    if any((folder / "metadata").glob("*.metadata.json")):
        return "Iceberg"
    return None


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """Files and folders of a folder, sorted, without the hidden ones."""
    files: list[Path] = []
    folders: list[Path] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise CatalogError(f"{folder}: cannot be listed ({error.strerror or error})") from error
    for entry in entries:
        if not is_hidden(entry.name):
            (folders if entry.is_dir() else files).append(Path(entry.path))
    return files, folders
