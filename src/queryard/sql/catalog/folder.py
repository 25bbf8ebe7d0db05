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
from functools import partial
from pathlib import Path

from .contents import Contents
from .database import is_database
from .declare import database_contents, file_table
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
from .listing import Listing, state_of
from .metadata import MetadataReader
from .model import CatalogError, DataFile
from .survey import Look, Survey


def read_folder(folder: Path, survey: Survey) -> Contents:
    """All tables of a folder; each of its files and folders is a place of its own."""

    def places(listing: Listing) -> list[tuple[Path, str, Look]]:
        entries = _entries(folder)
        return listing.kept("places", entries, lambda: _places(*entries, survey.metadata))

    contents = Contents()
    for place, name, look in survey.around(folder, places):
        contents.add(survey.at(place, name, look))
    return contents


def _places(
    files: Sequence[str], folders: Sequence[str], metadata: MetadataReader
) -> list[tuple[Path, str, Look]]:
    """Each file and folder, the name of what it holds, and how to look at it."""
    found: list[tuple[Path, str, Look]] = []
    for file in map(Path, files):
        name = stem(file.name) if format_of(file.name) else file.stem
        found.append((file, name, partial(_read_file, file, "", metadata)))
    inner = ((path, path.name, partial(_read_inner, path, metadata)) for path in map(Path, folders))
    return [*found, *inner]


def read_schema(folder: Path, schema: str, metadata: MetadataReader, listing: Listing) -> Contents:
    """The tables of a folder that is a schema."""
    contents = Contents()
    files, folders = _entries(folder)
    for file in map(Path, files):
        contents.add(_read_file(file, schema, metadata, listing))
    for inner in map(Path, folders):
        found = _read_table(inner, schema, metadata, listing)
        if found is None:
            reason = f"is a schema inside the schema {schema!r}; name its tables in a catalog file"
            found = Contents(skipped=[(str(inner), reason)])
        contents.add(found)
    return contents


def _read_inner(folder: Path, metadata: MetadataReader, listing: Listing) -> Contents:
    """A folder of a folder: one table, or a schema."""
    try:
        found = _read_table(folder, "", metadata, listing)
        return read_schema(folder, folder.name, metadata, listing) if found is None else found
    except CatalogError as error:
        return Contents(skipped=[_passed_over(folder, error)])


def _read_file(file: Path, schema: str, metadata: MetadataReader, listing: Listing) -> Contents:
    found = format_of(file.name)
    try:
        if found == "database" or (file.suffix == ".db" and _is_database(file, listing)):
            return database_contents(file.stem, file, None, metadata, listing)
        if found is not None:
            files = (listing.file(str(file)),)
            table = file_table(stem(file.name), schema, files, found, {}, metadata, listing)
            return Contents([table])
    except CatalogError as error:
        if not file.exists():  # it has just gone
            return Contents()
        return Contents(skipped=[_passed_over(file, error)])
    return Contents(skipped=[(str(file), NO_ARROW)] if is_arrow(file.name) else [])


def _passed_over(place: Path, error: CatalogError) -> tuple[str, str]:
    problem = str(error).removeprefix(f"{place}: ")
    return str(place), problem if problem.startswith(("is ", "cannot ")) else (
        f"cannot be opened: {problem}"
    )


def _is_database(file: Path, listing: Listing) -> bool:
    return listing.kept(("is_database", file), state_of(str(file)), lambda: is_database(file))


def _read_table(
    folder: Path, schema: str, metadata: MetadataReader, listing: Listing
) -> Contents | None:
    """The one table that a folder is, or nothing at all; None if it is a schema."""
    if lake := _lake(folder):
        reason = f"is a {lake} table, and its files may not be read by themselves"
        return Contents(skipped=[(str(folder), f"{reason}; export it to Parquet")])
    files = listing.below(str(folder))
    if not files:
        return Contents()
    found = listing.kept(("one", folder), files, lambda: _one_table(folder, files))
    if found is None:
        return None
    return Contents([file_table(folder.name, schema, files, found, {}, metadata, listing)])


def _one_table(folder: Path, files: Sequence[DataFile]) -> Format | None:
    """The format of the table a folder is, or None if it is none."""
    formats = {format_of(file.uri) for file in files}
    if len(formats) != 1:
        return None
    found = formats.pop()
    if found is None or found == "database":
        return None
    within = [os.path.relpath(file.uri, folder).split(os.sep)[:-1] for file in files]
    if all(parts and all(map(is_hive_folder, parts)) for parts in within):
        return found
    if any(within):
        return None  # folders that are no partitions hold something of their own
    return found if looks_like_parts([stem(file.uri) for file in files], folder.name) else None


def _lake(folder: Path) -> str | None:
    if (folder / "_delta_log").is_dir():
        return "Delta Lake"
    if any((folder / "metadata").glob("*.metadata.json")):
        return "Iceberg"
    return None


def _entries(folder: Path) -> tuple[list[str], list[str]]:
    """The paths of the files and folders of a folder, sorted, without the hidden ones."""
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not is_hidden(entry.name):
                    (folders if entry.is_dir() else files).append(entry.path)
    except OSError as error:
        raise CatalogError(f"{folder}: cannot be listed ({error.strerror or error})") from error
    return sorted(files), sorted(folders)
