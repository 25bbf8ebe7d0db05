"""Where the history of some data lies: beside it, else in the user's cache."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

FOLDER = ".queryard"
NAME = "history.sqlite"


def beside(place: Path) -> Path:
    """The folder for what Queryard keeps of some data: in the folder, or beside the file."""
    return (place if place.is_dir() else place.parent).absolute() / FOLDER


def file_to_write(folder: Path) -> Path:
    """The history of a session; `folder` is the `.queryard` of its catalog.

    Where that cannot be written to, it goes to the cache of the user, in a folder of the
    catalog's own, as statistics do.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder / NAME
    except OSError:
        pass
    return _cached(folder)


def file_to_read(folder: Path) -> Path | None:
    """The history that is there, if there is one."""
    if (file := folder / NAME).is_file():
        return file
    return file if (file := _cached(folder)).is_file() else None


def _cached(folder: Path) -> Path:
    # It brings DuckDB and Arrow with it, which nobody needs to read a history.
    from queryard.sql.statistics.store import cache_folder

    whose = os.path.abspath(folder).encode("utf-8", "surrogateescape")
    return cache_folder() / "history" / hashlib.sha256(whose).hexdigest()[:16] / NAME
