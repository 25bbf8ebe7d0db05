"""The record of changes: a file of JSON lines that only grows, for its user only.

It lies beside the history, survives the server, and is read when the next one starts. One server
writes to it at a time: another one on the same data keeps its changes in memory only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from queryard.core.errors import QueryardError
from queryard.history.places import private_folder

from .overlay import Setting

try:
    import fcntl
except ImportError:  # Windows: the second server is not noticed
    fcntl = None  # type: ignore[assignment]

NAME = "controls.jsonl"
# Changes that are not kept in the overlay, beside those that set something.
UNDO, FILE, CANCEL, RESET = "undo", "file", "cancel-tenant", "reset-models"


class RecordError(QueryardError):
    """A record of changes that cannot be read or written."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: when, by which token, what, and what was before and is after it.

    `settings` is what it has set, `undoes` the change that it takes back, and `undone_by` the one
    that has taken it back.
    """

    id: int
    at: float
    by: str
    what: str
    text: str
    before: Any = None
    after: Any = None
    reason: str = ""
    settings: tuple[Setting, ...] = ()
    undoes: int | None = None
    undone_by: int | None = None

    def to_line(self) -> str:
        plain = asdict(self)
        del plain["undone_by"]  # the change that undoes it says so
        return json.dumps({key: value for key, value in plain.items() if value not in (None, "")})

    @classmethod
    def of_line(cls, line: str) -> Change:
        """Raises `ValueError` for what is no change."""
        given = json.loads(line)
        if not isinstance(given, Mapping) or not isinstance(given.get("id"), int):
            raise ValueError("it has no number")
        try:
            settings = tuple(
                Setting(tuple(key), value, of_file)
                for key, value, of_file in given.get("settings", ())
            )
            made = cls(**{**given, "settings": settings})
        except TypeError as error:
            raise ValueError(str(error)) from error
        return made


class Record:
    """All changes, in memory and in the file; without a file, in memory only."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.changes: list[Change] = []
        self._handle: int | None = None
        # Why changes are not kept, if they are not.
        self.unkept = "" if file is not None else "the server keeps no history"
        if file is not None:
            self._open(file)

    def _open(self, file: Path) -> None:
        try:
            private_folder(file.parent)
            handle = os.open(file, os.O_CREAT | os.O_RDWR | os.O_APPEND, 0o600)
        except OSError as error:
            self.unkept = f"{file} cannot be written ({error.strerror or error})"
            return
        try:
            os.fchmod(handle, 0o600)  # whatever the umask has taken away
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.changes = _read(handle, file)
        except BlockingIOError:
            os.close(handle)
            self.unkept = f"another server on the same data writes to {file}"
            return
        except BaseException:
            os.close(handle)
            raise
        self._handle = handle

    @property
    def last(self) -> int:
        """The number of the last change; 0 before the first."""
        return self.changes[-1].id if self.changes else 0

    def add(self, change: Change) -> None:
        """Keep a change; it is on disk when this returns."""
        if self._handle is not None:
            end = os.lseek(self._handle, 0, os.SEEK_END)
            try:
                _write(self._handle, change.to_line().encode() + b"\n")
                os.fsync(self._handle)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._handle, end)
                raise RecordError(
                    f"{self.file}: the change cannot be recorded ({error.strerror or error}), and "
                    "was not made"
                ) from error
        self.changes.append(change)
        if change.undoes is not None:
            self.changes[:] = marked(self.changes, change)

    def find(self, number: int) -> Change | None:
        """A change by its number."""
        return next((change for change in reversed(self.changes) if change.id == number), None)

    def close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def holds_reset(change: Change) -> bool:
    """Whether it is a reset of models that was not undone."""
    return change.what == RESET and change.undone_by is None


def marked(changes: Iterable[Change], undoing: Change) -> list[Change]:
    """The changes, of which one was taken back."""
    return [
        replace(change, undone_by=undoing.id) if change.id == undoing.undoes else change
        for change in changes
    ]


def _read(handle: int, file: Path) -> list[Change]:
    text = b""
    while piece := os.pread(handle, 1 << 20, len(text)):
        text += piece
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        os.ftruncate(handle, whole)  # a change that a crash cut off was not told to be made
    changes: list[Change] = []
    for number, line in enumerate(text[:whole].splitlines(), 1):
        try:
            changes.append(Change.of_line(line.decode()))
        except ValueError as error:
            raise RecordError(
                f"{file}: line {number} is no change ({error}); move the file away to start with "
                "the settings alone"
            ) from error
    for change in [change for change in changes if change.undoes is not None]:
        changes = marked(changes, change)
    return changes


def _write(handle: int, line: bytes) -> None:
    while line:
        line = line[os.write(handle, line) :]
