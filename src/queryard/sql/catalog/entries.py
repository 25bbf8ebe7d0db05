"""Entries of a catalog: names with the places they stand for."""

from __future__ import annotations

from pathlib import Path

from .contents import Contents, broken
from .declare import declare
from .listing import Listing
from .model import CatalogError, InvalidEntry
from .quoting import split_name
from .survey import Survey


def declared(
    name: str,
    value: object,
    survey: Survey,
    base: Path | None = None,
    path: tuple[str, ...] = (),
) -> Contents:
    """What an entry stands for now; data that cannot be used makes it broken, not an error.

    `path` is where it stands in a catalog file.
    """

    def look(listing: Listing) -> Contents:
        try:
            return declare(name, value, base, survey.metadata, listing)
        except InvalidEntry as error:
            raise InvalidEntry(str(error), error.option, path) from error
        except CatalogError as error:
            return broken(name, error)

    return survey.at((path, name, repr(value)), split_name(name)[0], look)
