"""Folders into which tenants may write: apart from what Queryard keeps, and from tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from queryard.history.places import FOLDER
from queryard.sql.catalog import Catalog

from .config_file import Grant, InvalidConfig

KEY = "output"
_REMEDY = 'name a folder of its own, as "exports/sales"'


def check_outputs(grants: Iterable[Grant], kept: Mapping[str, Path]) -> None:
    """Refuse an `output` by which a tenant could replace tokens, the history or kept rows.

    `kept` are folders of the server, by what is there.
    """
    for grant in grants:
        if grant.key != KEY:
            continue
        folder = _real(grant.name)
        begins = f"{grant.where}: tenants.{grant.tenant}.{KEY}: {grant.name}"
        if FOLDER in (part.lower() for part in folder.parts):
            raise InvalidConfig(f"{begins} lies in a folder {FOLDER} of Queryard's; {_REMEDY}")
        for what, place in kept.items():
            if _real(place).is_relative_to(folder):
                raise InvalidConfig(
                    f"{begins} contains {place}, the folder of {what}, which COPY … TO could "
                    f"replace; {_REMEDY}"
                )


def risky_outputs(catalog: Catalog, grants: Iterable[Grant]) -> list[str]:
    """Grants to write into folders with files of tables, with their lines."""
    outputs = [(grant, _real(grant.name)) for grant in grants if grant.key == KEY]
    if not outputs:
        return []
    places = {
        name: {_real(os.path.dirname(file.uri)) for file in table.files if "://" not in file.uri}
        for name, table in catalog.tables.items()
        if table.kind != "database"
    }
    for database in catalog.databases:
        places[database.alias] = {_real(os.path.dirname(database.path))}
    said = []
    for grant, folder in outputs:
        found = sorted(
            name for name, at in places.items() if any(each.is_relative_to(folder) for each in at)
        )
        if found:
            said.append(
                f"{grant.where}: tenants.{grant.tenant}.{KEY}: {grant.name} holds files of "
                f"{', '.join(found[:5])}{', …' if len(found) > 5 else ''}, which COPY … TO may "
                f"replace; {_REMEDY}"
            )
    return said


def _real(path: str | Path) -> Path:
    return Path(os.path.realpath(path))
