"""Where the history of some data lies: beside it, else in the user's cache.

A history holds the text of every query, so only its user may read it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from pathlib import Path

FOLDER = ".queryard"
NAME = "history.sqlite"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_creating = threading.Lock()


def beside(place: Path) -> Path:
    """The folder for what Queryard keeps of some data: in the folder, or beside the file."""
    return (place if place.is_dir() else place.parent).absolute() / FOLDER


def file_to_write(folder: Path) -> Path:
    """The history of a session; `folder` is the `.queryard` of its catalog.

    Where that cannot be written to, or holds the history of another user, it goes to the cache of
    the user, in a folder of the catalog's own, as statistics do.
    """
    file = folder / NAME
    try:
        private_folder(folder)
        wanted = file if os.path.lexists(file) else folder
        if os.access(wanted, os.R_OK | os.W_OK):
            return file
    except OSError:
        pass
    return _cached(folder)


def file_to_read(folder: Path) -> Path | None:
    """The history that is there, if there is one."""
    if _is_readable(file := folder / NAME):
        return file
    return file if _is_readable(file := _cached(folder)) else None


def _is_readable(file: Path) -> bool:
    return os.access(file, os.R_OK) and file.is_file()


def private_folder(folder: Path) -> None:
    """Make a folder that only its user may look into; one that is there stays as it is."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not folder.is_dir():
            raise
    else:
        folder.chmod(0o700)  # whatever the umask has taken away


def make_private(file: Path) -> None:
    """Make an empty file that only its user may read; one that is there stays as it is.

    To close a descriptor of a history would drop the locks that SQLite holds on it in this
    process. So only a file that is made here is opened, and no other thread comes in between.
    """
    with _creating:
        try:
            handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except FileExistsError:
            return
        os.close(handle)
        file.chmod(0o600)  # whatever the umask has taken away


def tighten(file: Path) -> None:
    """Let only its user read a history that is there, if that is this user.

    SQLite gives the files beside a history (`-wal`, `-shm`) the permissions of the history itself,
    when it makes them.
    """
    if not hasattr(os, "geteuid"):
        return  # Windows: files have the permissions of their folder
    for name in (file.name, f"{file.name}-wal", f"{file.name}-shm"):
        one = file.with_name(name)
        try:
            found = one.stat()
        except FileNotFoundError:
            continue
        if found.st_uid == os.geteuid() and found.st_mode & _OTHERS:
            one.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def _cached(folder: Path) -> Path:
    # Imported here: it loads DuckDB and Arrow, which reading a history does not need.
    from queryard.sql.statistics.store import cache_folder

    path = os.path.abspath(folder).encode("utf-8", "surrogateescape")
    return cache_folder() / "history" / hashlib.sha256(path).hexdigest()[:16] / NAME
