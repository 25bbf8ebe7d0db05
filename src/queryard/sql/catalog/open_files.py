"""The database files that this process has open, and for what.

POSIX drops a process's lock on a file as soon as the process closes any descriptor of it, and
DuckDB locks files by such locks only. So while an instance of this process writes a file, nothing
else in the process may open it: the lock would be gone at the next close, another process could
write as well, and rows would be lost without an error. What must be known of such a file is asked
of the instance that writes it. Any number of instances may read a file that none writes.

All opening of database files is entered here first. A file is the same one by its resolved path, or
by its device and inode (a hard link).
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .model import CatalogError

Ask = Callable[[str], list[tuple[Any, ...]]]
"""The rows of a short SELECT, run by the instance that writes a file."""

# A look at a file takes milliseconds, an ATTACH may have to replay a log.
LOOK_S, ATTACH_S = 30.0, 60.0
# How often a file that is waited for is tried.
AGAIN_S = 0.002
# … and for how long while the instance that has it does nothing.
IDLE_S = 0.3


def _nothing(path: str) -> None:
    pass


def _yes() -> bool:
    return True


class FileInUse(CatalogError):
    """A database file that something else in this process has open."""


class _File:
    """One file, and what has it open."""

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self.inodes: set[tuple[int, int]] = set()
        self.readers: set[Claims] = set()
        self.writer: Claims | None = None
        # Whether the writer has attached it, and can be asked.
        self.attached = False
        # Looks at it that are under way, and questions to the writer.
        self.looks = 0
        self.questions = 0

    def note(self, place: Path) -> None:
        """Another name of the file, and what it is on disk now."""
        self.paths.add(place)
        self.inodes |= _inode(place)


class _Definitions:
    """What the tables of a file are like, by a number that changes with them."""

    def __init__(self) -> None:
        self.number = 0
        # The file as the last writer has left it, and when.
        self.left: object = None
        self.left_s = -math.inf


_changed = threading.Condition()
_files: list[_File] = []
_definitions: dict[Path, _Definitions] = {}
# Files that clients of this process may come to write.
_writable: set[str] = set()


def note_writable(path: str) -> None:
    """A client may write a file: others should not keep it open without need."""
    _writable.add(path)


def is_writable(path: str) -> bool:
    """Whether a client of this process may come to write a file."""
    return path in _writable


class Claims:
    """The files that one instance has open.

    `ask` answers questions of the catalog with the metadata reader `owner` on files that the
    instance writes.
    """

    def __init__(self, owner: object = None, ask: Ask | None = None) -> None:
        self.owner = owner
        self.ask = ask
        self.on_wanted: Callable[[str], None] = _nothing
        """Called when another instance wants a file that is open here, from its thread."""
        self.is_busy: Callable[[], bool] = _yes
        """Whether the instance works now, so that it may be done with its files soon."""
        self.tells = False
        """Whether it says by `redefined` when it has changed what tables there are."""

    def claim(self, path: str, writes: bool, wait_s: float = 0.0) -> bool:
        """Enter that a file is about to be opened; an error if it is in use elsewhere.

        Returns whether it was not entered before. For up to `wait_s` it waits until the file is
        free; instances that only keep it open are told that it is wanted.
        """
        until_s = time.monotonic() + wait_s
        idle_s: float | None = None  # since when the writer does nothing
        while True:
            try:
                return self._claim(path, writes)
            except FileInUse:
                now_s = time.monotonic()
                if now_s >= until_s or (idle_s is not None and now_s - idle_s > IDLE_S):
                    raise
            with _changed:
                file = _find(resolved(path))
                # One that just attaches or detaches it is at work.
                writer = file.writer if file is not None and file.attached else None
                others = set() if file is None else file.readers - {self}
                others = others if writes or writer is None else {writer}
            for other in others:
                other.on_wanted(path)
            if writer is None or writer.is_busy():
                idle_s = None
            elif idle_s is None:  # it is in a transaction, which may last
                idle_s = time.monotonic()
            with _changed:
                _changed.wait(AGAIN_S)

    def _claim(self, path: str, writes: bool) -> bool:
        place = resolved(path)
        with _changed:
            file = _entry(place)
            is_new = self not in file.readers
            if not is_new and place not in file.paths:
                raise FileInUse(
                    f"{place} is the same file as {_name(file)}, which this session has attached "
                    "already; use that one"
                )
            if file.writer not in (None, self):
                raise FileInUse(_written(path))
            if writes and file.readers - {self}:
                raise FileInUse(
                    f"{place} is read elsewhere in this process, where the rows that are written "
                    "would be missed; close that session first, or use it for this as well"
                )
            file.note(place)
            file.readers.add(self)
            if writes:
                # From now on no look at the file begins.
                file.writer = self
                _begin_defining(place)
                if not _changed.wait_for(lambda: not file.looks, LOOK_S):
                    self._leave(file)
                    raise FileInUse(f"{place} is being looked at for too long; try again")
            return is_new

    def opened(self, path: str) -> None:
        """A file that was claimed is open; a new one has come to be."""
        place = resolved(path)
        with _changed:
            if (file := _find(place)) is not None and self in file.readers:
                file.note(place)
                # A reader has it open as well; only a writer is asked.
                file.attached = file.writer is self
                _changed.notify_all()

    def redefined(self) -> None:
        """Tables of the files that are written here may be others from now on."""
        with _changed:
            for file in _files:
                if file.writer is self:
                    for place in file.paths & _definitions.keys():
                        _definitions[place].number += 1

    def closing(self, path: str) -> None:
        """A file is about to be detached: questions to its writer end first, and looks wait."""
        with _changed:
            file = _find(resolved(path))
            if file is not None and file.writer is self:
                self._no_questions([file])

    def closing_all(self) -> None:
        """The instance is about to be closed, with all files that it writes."""
        with _changed:
            self._no_questions([file for file in _files if file.writer is self])

    @staticmethod
    def _no_questions(files: list[_File]) -> None:
        for file in files:
            file.attached = False
        _changed.wait_for(lambda: not any(file.questions for file in files), LOOK_S)

    def holds(self, path: str) -> bool:
        """Whether a file is entered, by this name or by another."""
        with _changed:
            file = _find(resolved(path))
            return file is not None and self in file.readers

    def kept(self, paths: set[str]) -> set[str]:
        """Which files are entered, but are not among these."""
        places = {resolved(path) for path in paths}
        with _changed:
            mine = [file for file in _files if self in file.readers]
            return {_name(file) for file in mine if file.paths.isdisjoint(places)}

    def release(self, paths: set[str] | None = None) -> None:
        """Some files, or all, are closed."""
        places = None if paths is None else {resolved(path) for path in paths}
        with _changed:
            for file in [file for file in _files if self in file.readers]:
                if places is None or not file.paths.isdisjoint(places):
                    self._leave(file)

    def _leave(self, file: _File) -> None:
        file.readers.discard(self)
        if file.writer is self:
            file.writer = None
            file.attached = False
            for place in file.paths & _definitions.keys():
                _definitions[place].left = _state(place) if self.tells else None
                _definitions[place].left_s = time.monotonic()
        _forget(file)
        _changed.notify_all()


@contextmanager
def looking(path: Path, owner: object = None) -> Iterator[Ask | None]:
    """Look at a file for a moment.

    None means that it may be opened, and must be closed at the end. Otherwise it is written by the
    session with the metadata reader `owner`, and may not be opened: ask. An error if
    something else in this process writes it.
    """
    place = resolved(path)
    with _changed:
        file = _settled(place, path, owner)
        ask = None if file.writer is None else file.writer.ask
        if ask is None:
            if not file.readers and not file.looks:
                file.note(place)
            file.looks += 1
        else:
            file.questions += 1
    try:
        yield ask
    finally:
        with _changed:
            if ask is None:
                file.looks -= 1
                _forget(file)
            else:
                file.questions -= 1
            _changed.notify_all()


def _settled(place: Path, path: Path, owner: object) -> _File:
    """The entry of a file that no instance attaches or detaches now; an error if it is hidden."""
    while True:
        file = _entry(place)
        writer = file.writer
        if writer is None:
            return file
        if writer.ask is None or owner is None or writer.owner is not owner:
            raise FileInUse(_written(path))
        if file.attached:
            return file
        if not _changed.wait(ATTACH_S):
            raise FileInUse(f"{path}: is being attached or detached for too long; try again")


def definitions(path: str | os.PathLike[str]) -> int | None:
    """A number that changes whenever the tables of a file may be others; None if that is not known.

    It is known of files that only clients of this process have written since, which say so. Rows
    come and go without notice.
    """
    place = resolved(path)
    with _changed:
        known = _definitions.get(place)
        if known is None:
            return None
        file = _find(place)
        if file is not None and file.writer is not None:
            return known.number if file.writer.tells else None
        return known.number if known.left is not None and known.left == _state(place) else None


def redefinitions() -> int:
    """A number that changes whenever this process has changed which tables a file has."""
    with _changed:
        return sum(known.number for known in _definitions.values())


def _begin_defining(place: Path) -> None:
    known = _definitions.setdefault(place, _Definitions())
    if known.left is None or known.left != _state(place):
        known.number += 1


def _state(place: Path) -> object:
    """A file and its log as they are."""

    def like(path: str) -> object:
        try:
            found = os.stat(path)
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    return like(str(place)), like(f"{place}.wal")


def written() -> tuple[Path, ...]:
    """The files that this process writes, by all their names."""
    with _changed:
        return tuple(path for file in _files if file.writer is not None for path in file.paths)


def was_written(path: str, within_s: float) -> bool:
    """Whether an instance of this process writes a file, or did so until a short while ago."""
    place = resolved(path)
    with _changed:
        file = _find(place)
        if file is not None and file.writer is not None:
            return True
        known = _definitions.get(place)
        return known is not None and time.monotonic() - known.left_s < within_s


def is_written(path: str | os.PathLike[str]) -> bool:
    """Whether this process writes a file, so that it may not be opened."""
    if not _files:
        return False
    with _changed:
        file = _find(resolved(path))
        return file is not None and file.writer is not None


def is_same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths mean one file."""
    first, second = resolved(one), resolved(other)
    return first == second or not _inode(first).isdisjoint(_inode(second))


def resolved(path: str | os.PathLike[str]) -> Path:
    """A path as DuckDB takes it, without links and relative parts."""
    return Path(os.path.realpath(os.path.expanduser(os.fspath(path))))


def _inode(place: Path) -> set[tuple[int, int]]:
    try:
        found = os.stat(place)
    except OSError:
        return set()
    return {(found.st_dev, found.st_ino)}


def _find(place: Path) -> _File | None:
    inode = _inode(place)
    same = [f for f in _files if place in f.paths or not f.inodes.isdisjoint(inode)]
    # Where a name has come to mean another file, the one that is written counts.
    same.sort(key=lambda file: file.writer is None)
    return same[0] if same else None


def _entry(place: Path) -> _File:
    """The entry of a file; `_forget` removes it if nothing comes of it."""
    _files[:] = [file for file in _files if file.readers or file.looks]
    file = _find(place)
    if file is None:
        file = _File()
        _files.append(file)
    return file


def _forget(file: _File) -> None:
    if not (file.readers or file.looks) and file in _files:
        _files.remove(file)


def _name(file: _File) -> str:
    return str(min(file.paths))


def _written(path: str | Path) -> str:
    return (
        f"{path}: is written by a session of this process, so that nothing else here may open "
        "it; use that session for this as well, or close it first"
    )
