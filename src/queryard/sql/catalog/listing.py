"""What lies at one place, looked at again and again: what has not changed stays the same object.

A look costs one `scandir` per folder and one `stat` per data file, about three microseconds per
file. The time of a folder is not trusted to tell that its entries are the same: listing the names
is the smaller part of the cost, and a folder may change twice in one tick of its clock.
"""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from .formats import format_of, is_hidden
from .model import CatalogError, DataFile

TICK_NS = 20_000_000
"""Clocks of file systems tick more often than this; what changed so lately may change unseen."""

T = TypeVar("T")


@dataclass(slots=True)
class _Entry:
    """One name in a folder, or one match of a pattern."""

    wanted: bool
    """Whether it may hold data: a folder, or a file of a known format, and not hidden."""
    is_folder: bool = False
    mtime_ns: int = -1
    files: tuple[DataFile, ...] = ()
    """Itself, or all data files below it."""


@dataclass(slots=True)
class _Folder:
    entries: dict[str, _Entry] = field(default_factory=dict)
    files: tuple[DataFile, ...] = ()


class Listing:
    """The memory of looks at one place. One thread at a time uses it."""

    def __init__(self) -> None:
        self._folders: dict[str, _Folder] = {}
        self._files: dict[str, _Entry] = {}
        self._matches: dict[str, dict[str, _Entry]] = {}
        self._kept: dict[Hashable, tuple[object, Any]] = {}

    def file(self, path: str) -> DataFile:
        """A local file with its size and fingerprint."""
        entry = self._files.setdefault(path, _Entry(True))
        try:
            _take_status(entry, path, os.stat(path))
        except OSError as error:
            raise _cannot(path, "looked at", error) from error
        return entry.files[0]

    def below(self, folder: str) -> tuple[DataFile, ...]:
        """Every data file in a folder and its folders, hidden ones left out, in order of names.

        It is the same tuple as before if no file has come, gone or changed. What vanishes while
        it is looked at is left out.
        """
        try:
            return self._below(folder)
        except OSError as error:
            raise _cannot(error.filename or folder, "listed", error) from error

    def _below(self, folder: str) -> tuple[DataFile, ...]:
        known = self._folders.setdefault(folder, _Folder())
        found: dict[str, _Entry] = {}
        same = True
        with os.scandir(folder) as entries:
            for item in entries:
                entry = known.entries.get(item.name)
                if entry is None or entry.is_folder != item.is_dir():
                    entry = _new_entry(item)
                    same = False
                if entry.wanted:
                    before = entry.files
                    try:
                        if entry.is_folder:
                            entry.files = self._below(item.path)
                        else:
                            _take_status(entry, item.path, item.stat())
                    except (FileNotFoundError, NotADirectoryError):
                        continue
                    same = same and entry.files is before
                found[item.name] = entry
        if same and len(found) == len(known.entries):
            return known.files
        for name in known.entries.keys() - found.keys():
            self._folders.pop(os.path.join(folder, name), None)
        files = tuple(file for name in sorted(found) for file in found[name].files)
        self._folders[folder] = _Folder(found, files)
        return files

    def matching(self, pattern: str) -> tuple[DataFile, ...]:
        """The files that a pattern finds, in order.

        A pattern such as data/* also finds notes beside data, which are left out; folders are
        meant if it finds no file.
        """
        before = self._matches.get(pattern, {})
        found: dict[str, _Entry] = {}
        for path in glob.glob(pattern, recursive=True):
            known = before.get(path)
            try:
                status = os.stat(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _cannot(path, "looked at", error) from error
            if known is None:
                known = _Entry(format_of(path) is not None)
            known.is_folder = stat.S_ISDIR(status.st_mode)
            if not known.is_folder:
                _take_status(known, path, status)
            found[path] = known
        self._matches[pattern] = found
        files = {path: entry for path, entry in found.items() if not entry.is_folder}
        chosen = {path: entry for path, entry in files.items() if entry.wanted} or files
        if chosen:
            return tuple(file for path in sorted(chosen) for file in chosen[path].files)
        below = {file.uri: file for folder in found for file in self.below(folder)}
        return tuple(below[path] for path in sorted(below))

    def kept(self, key: Hashable, seen: object, make: Callable[[], T]) -> T:
        """What was made under this key, if it was made of the same; else made now."""
        held = self._kept.get(key)
        if held is not None and held[0] == seen:
            return held[1]  # type: ignore[no-any-return]
        made = make()
        self._kept[key] = (seen, made)
        return made


def state_of(*paths: str) -> tuple[object, ...]:
    """What files are like, to be compared with what they were like before.

    A file that changed a moment ago is like nothing: it may change again within one tick of the
    file system's clock.
    """
    found: list[object] = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            found.append(None)
            continue
        if status.st_mtime_ns > time.time_ns() - TICK_NS:
            return (object(),)
        found.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _new_entry(item: os.DirEntry[str]) -> _Entry:
    if is_hidden(item.name):
        return _Entry(False, item.is_dir())
    return _Entry(item.is_dir() or format_of(item.name) is not None, item.is_dir())


def _take_status(entry: _Entry, path: str, status: os.stat_result) -> None:
    if entry.mtime_ns != status.st_mtime_ns or entry.files[0].bytes != status.st_size:
        entry.mtime_ns = status.st_mtime_ns
        entry.files = (local_file_of(path, status),)


def local_file_of(path: str, status: os.stat_result) -> DataFile:
    """A local file of which the size and the time are known."""
    return DataFile(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


def _cannot(path: str, what: str, error: OSError) -> CatalogError:
    return CatalogError(f"{path}: cannot be {what} ({error.strerror or error})")
