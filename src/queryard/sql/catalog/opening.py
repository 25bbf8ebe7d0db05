"""From a place, or from names with places, to a catalog."""

from __future__ import annotations

import os
import reprlib
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from .catalog import Catalog
from .catalog_file import read_catalog_file
from .contents import Contents
from .database import is_database
from .declare import database_contents, declare, file_table, name_parts
from .entries import declared
from .folder import read_folder
from .formats import NO_ARROW, format_of, is_arrow, stem
from .frames import is_frame
from .listing import state_of
from .locations import local_path, scheme_of
from .model import CatalogError
from .survey import Clock, Survey

STATISTICS = Path(".queryard", "statistics")


def open_catalog(
    where: str | os.PathLike[str] | None = None,
    tables: Mapping[str, object] | None = None,
    statistics: str | os.PathLike[str] | None = None,
    clock: Clock = time.monotonic,
    *,
    holds_file: bool = False,
) -> Catalog:
    """The tables of a place, and others by name.

    `where` is a folder of data files (see `folder.py` for what becomes a table), a catalog file
    (TOML), one data file, or a DuckDB database. `tables` names more; what a value may be is said in
    `declare.py`. Only names and sizes are looked at: a table is opened when it is first used.

    Data that a catalog file names and that cannot be used is left out, with the reason. What
    `tables` names must be there: otherwise the error names the entry.

    `statistics` is the folder in which `analyze` keeps what it finds: by default `.queryard` beside
    the data (in the folder, or beside the file), or the user's cache for `tables` alone.

    A catalog file is read again when it changes, or with `holds_file` only by `Catalog.reread`: a
    table that it names anew may need settings that are read at another time.

    >>> import pyarrow
    >>> catalog = open_catalog(tables={"numbers": pyarrow.table({"n": [1, 2, 3]})})
    >>> catalog["Numbers"].columns
    (Column(name='n', type='BIGINT'),)
    """
    survey = Survey(clock, holds_file=holds_file)
    place = None if where is None else _local(where)
    beside = None
    if place is not None:
        beside = (place if place.is_dir() else place.parent) / STATISTICS
    folder = beside if statistics is None else local_path(os.fspath(statistics))
    named = _named(tables)
    # Frames are taken over once; files are listed anew whenever the catalog is refreshed.
    frames = [
        declare(name, named.pop(name), None, survey.metadata)
        for name in tuple(named)
        if is_frame(named[name])
    ]
    catalog = Catalog(survey, partial(_read, place, named, frames, survey), folder, place)
    for name in named:
        if name in catalog.broken:
            raise CatalogError(catalog.broken[name])
    return catalog


def _named(given: object) -> dict[str, object]:
    if given is not None and not isinstance(given, Mapping):
        raise CatalogError(
            'tables: must be a dictionary of names, as {"orders": "orders.csv"}, got '
            + reprlib.repr(given)
        )
    named = dict(given or {})
    for name in named:
        name_parts(name)
    return named


def _local(given: object) -> Path:
    if not isinstance(given, str | os.PathLike):
        shown = f"a {type(given).__name__}" if is_frame(given) else reprlib.repr(given)
        raise CatalogError(
            f"{shown} is no place of data: give the path of a folder, a catalog "
            "file, a data file or a DuckDB database. Tables are named one by one with tables={...}"
        )
    where: str = os.fspath(given)
    if scheme_of(where):
        raise CatalogError(
            f"{where}: a catalog lies on this machine, and queries read local files only; copy the "
            "data here. To look at tables that lie elsewhere, name them one by one: "
            f'tables={{"name": "{where}"}}, --table name={where}, or in a catalog file'
        )
    return local_path(where)


def _read(
    place: Path | None,
    tables: Mapping[str, object],
    frames: Sequence[Contents],
    survey: Survey,
) -> Contents:
    contents = Contents() if place is None else _read_place(place, survey)
    for frame in frames:
        contents.add(frame)
    for name, value in tables.items():
        contents.add(declared(name, value, survey))
    return contents


def _read_place(place: Path, survey: Survey) -> Contents:
    if not place.exists():
        raise CatalogError(
            f"{place}: no such file or folder; give a folder of data files, a data file, a catalog "
            "file (.toml) or a DuckDB database"
        )
    if place.is_dir():
        return read_folder(place, survey)
    if place.suffix.lower() == ".toml":
        return read_catalog_file(place, survey)
    found = format_of(place.name)
    listing, metadata = survey.own, survey.metadata
    if found == "database" or listing.kept(
        "is_database", state_of(str(place)), lambda: is_database(place)
    ):
        return database_contents(place.stem, place, "", metadata, listing)
    if is_arrow(place.name):
        raise CatalogError(f"{place}: {NO_ARROW}")
    if found is None:
        raise CatalogError(
            f"{place}: the ending does not tell the format; "
            f'say it by name: tables={{"{stem(place.name)}": {{"path": …, "format": "csv"}}}}'
        )
    files = (listing.file(str(place)),)
    return Contents([file_table(stem(place.name), "", files, found, {}, metadata, listing)])
