"""A segment as rows: where DuckDB finds them, and its errors told in places of the file."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

import duckdb

from queryard.engine.errors import InputMissing, NoRoom, QueryFailed, failure
from queryard.sql.catalog.locations import local_file
from queryard.sql.catalog.model import CatalogError, Table
from queryard.sql.catalog.segments import Segment, relation_at, text_of

from .places import MemoryFile, has_memory_files, removed

_LINE = re.compile(r"(?<=CSV Error on Line: )\d+|(?<= in line )\d+")


class Stop(Protocol):
    """Stops a reader where it is; `Cancellation` of staged tasks is one."""

    def check(self) -> None:
        """Raise if the reader must stop."""

    def interrupting(self, cursor: duckdb.DuckDBPyConnection) -> AbstractContextManager[None]:
        """The reader runs a statement on this cursor as long as the context lasts."""


@contextmanager
def rows_of(table: Table, segment: Segment) -> Iterator[tuple[str, str]]:
    """A relation of all columns, for as long as the context lasts, and the path in it.

    The path is "" where DuckDB reads the files themselves.
    """
    if not segment.is_range:
        check_version(segment)
        yield segment.relation, ""
        return
    with _taken_out(segment) as path:
        check_version(segment)
        yield relation_at(table, segment, path), path


@contextmanager
def _taken_out(segment: Segment) -> Iterator[str]:
    """The text of a segment as a file of its own."""
    if has_memory_files():
        with _no_room_told(segment):
            file = MemoryFile()
        try:
            with _no_room_told(segment):
                for block in text_of(segment):
                    file.write(block)
            yield file.path
        finally:
            file.close()
        return
    with _no_room_told(segment):
        handle, path = tempfile.mkstemp(prefix="queryard-segment-")
    try:
        with _no_room_told(segment), os.fdopen(handle, "wb") as target:
            target.writelines(text_of(segment))
        yield path
    finally:
        removed(path)


@contextmanager
def _no_room_told(segment: Segment) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NoRoom(
            f"{segment}: its text cannot be taken out to be parsed ({error.strerror or error}); "
            "make room, or let the process open more files (ulimit -n)"
        ) from error


def check_version(segment: Segment) -> None:
    """Raise if a file is not the one that was cut."""
    for file in segment.files:
        try:
            found = local_file(Path(file.uri)).fingerprint
        except CatalogError as error:
            raise InputMissing(str(error)) from error
        if found != file.fingerprint:
            raise InputMissing(f"{file.uri}: has changed since the query was planned; run it again")


def told(error: duckdb.Error, segment: Segment, path: str) -> QueryFailed:
    """DuckDB's error with the file of the segment, and with the line in that file."""
    text = str(error)
    if path and path in text:
        before = _lines_before(segment)
        if before is not None:
            text = _LINE.sub(lambda found: str(int(found[0]) + before), text, count=1)
            text = text.replace(path, segment.file.uri)
        else:
            text = text.replace(path, str(segment))
    return failure(text)


def _lines_before(segment: Segment) -> int | None:
    """How many lines of the file come before the segment; None if that cannot be found out."""
    if segment.start == 0:
        return 0
    before = Segment(
        segment.table,
        segment.version,
        0,
        segment.files,
        0,
        segment.start,
        compression=segment.compression,
    )
    try:
        return sum(block.count(b"\n") for block in text_of(before))
    except CatalogError:
        return None
