"""Which history a command means: a file, or that of some data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from queryard.core.errors import QueryardError

from .data_options import data_option, existing_place

if TYPE_CHECKING:
    from queryard.history import HistoryReader

_SQLITE = b"SQLite format 3\0"
Data = Annotated[
    str | None,
    data_option(
        "The data that the history is of: a folder, a file, a database or a catalog; or a history "
        "file itself."
    ),
]


def open_history(data: str | None) -> HistoryReader:
    """The history of a place; says where it was looked for and how one comes to be."""
    from queryard.history import HistoryReader
    from queryard.history.places import NAME, beside, file_to_read

    place = existing_place(data)
    if _is_history(place):
        return HistoryReader(place)
    found = file_to_read(beside(place))
    if found is None:
        raise QueryardError(
            f"{beside(place) / NAME}: there is no history (nor one in your cache); it begins with "
            f'the first query there: queryard sql "SELECT …" --data {data or "."}. '
            "Loads keep theirs apart, if at all: `queryard load --help`"
        )
    return HistoryReader(found)


def _is_history(place: Path) -> bool:
    """By its name, or by how SQLite's files begin; data are never in such files."""
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return place.suffix == ".sqlite" or file.read(len(_SQLITE)) == _SQLITE
