"""Segments of a table: consecutive parts of its files that are read once for many queries.

They are a function of the files, their fingerprints, the options of the table and the size that is
wanted, and of nothing else: every plan has the same. DuckDB reads no ranges of text, so the
bytes of a segment of a cut file are taken out (`text_of`) and read as a file of their own
(`relation_at`), with the dialect and the types of the whole table.

Files are cut after line breaks that are proven to end a row (see `cutting.py`). A file for which
there is no such proof is one segment, with the reason. Small files are put together. The first
segment of a file begins with its header, no other one has any.

A gzip file is cut by the bytes of its text. Finding the cuts decompresses the file once, in order;
places to go on from are kept in memory then, so that a circle may start at any segment, and each
segment is decompressed by itself. Segments of Parquet are its splits, by row groups.
"""

from __future__ import annotations

import os
import threading
import zlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from .csv_files import CsvTable
from .cutting import BOM, OBJECTS, Cuts, Quoting, cuts_of
from .formats import basename
from .gzip_text import GzipText, Restart, noted, text_between
from .json_files import JsonTable
from .model import CatalogError, DataFile, NotSplittable, Table, checked_target
from .parquet import ParquetTable

TARGET_BYTES = 32 * 2**20
"""Of text: about 0.5 s to parse, and 250,000 rows, on which the 3 ms of a rider are little."""

_BLOCK = 1 << 19
_TABLES = 256  # whose segments are remembered
_RESTARTS = 512  # places to go on from that are remembered, of all gzip files together


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a table: a range of the text of one file, or some whole files.

    `start` and `stop` are places in the text (for gzip: the decompressed text). `relation` is SQL
    for the rows of a segment that DuckDB can read where it lies, and empty for a range of a file.
    `version` is the fingerprint of the table, `compression` that of the file, and `newline` what
    ends its lines. `is_proven` says that every quote and line break in it was looked at, and stands
    where the dialect has one.
    """

    table: str
    version: str
    number: int
    files: tuple[DataFile, ...]
    start: int
    stop: int
    relation: str = ""
    compression: str = "none"
    newline: str = ""
    is_proven: bool = False

    @property
    def file(self) -> DataFile:
        """The file, or the first of them."""
        return self.files[0]

    @property
    def bytes(self) -> int:
        """Its size as text; of Parquet and of whole gzip files, as they lie there."""
        return self.stop - self.start

    @property
    def is_range(self) -> bool:
        """Whether it is a part of a text, which must be taken out to be read."""
        return not self.relation

    def __str__(self) -> str:
        if self.is_range:
            return f"{self.file.uri}, bytes {self.start} to {self.stop}"
        more = len(self.files) - 1
        return f"{self.file.uri}{f' and {more} more' if more else ''}"


@dataclass(frozen=True, slots=True)
class Segments:
    """All segments of a table, in the order of its rows.

    `whole` says of files that could not be cut, or not to their end, why.
    """

    table: str
    version: str
    target_bytes: float
    all: tuple[Segment, ...]
    whole: tuple[tuple[str, str], ...] = ()

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.all)

    def __getitem__(self, number: int) -> Segment:
        return self.all[number]

    @property
    def reason(self) -> str:
        """Why files are not cut, or not to their end; "" if all that are large enough are."""
        return "; ".join(f"{basename(uri)}: {why}" for uri, why in self.whole)


_lock = threading.Lock()
_known: OrderedDict[tuple[str, str, float], Segments] = OrderedDict()
_restarts: OrderedDict[tuple[str, str], tuple[Restart, ...]] = OrderedDict()
_finding: dict[tuple[str, str, float], threading.Lock] = {}


def segments_of(table: Table, target_bytes: float = TARGET_BYTES) -> Segments:
    """The segments of a table of files, each of about `target_bytes`; remembered by fingerprint.

    Raises `NotSplittable` where a segment cannot be read by itself: with `ignore_errors`, where the
    rows that are left out depend on the columns of each query, and where the table is no files.
    """
    key = (table.key, table.fingerprint, checked_target(target_bytes))
    with _lock:
        if (found := _known.get(key)) is not None:
            _known.move_to_end(key)
            return found
        finding = _finding.setdefault(key, threading.Lock())
    with finding:
        with _lock:
            found = _known.get(key)
        if found is None:
            found = _found(table, target_bytes)
            with _lock:
                _known[key] = found
                while len(_known) > _TABLES:
                    _known.popitem(last=False)
    with _lock:
        _finding.pop(key, None)
    return found


def known_segments(table: Table, target_bytes: float = TARGET_BYTES) -> Segments | None:
    """The segments of a table if they were found before; nothing is read."""
    with _lock:
        return _known.get((table.key, table.fingerprint, target_bytes))


def text_of(segment: Segment) -> Iterator[bytes]:
    """The bytes of a segment that is a range of a text.

    Raises `CatalogError` where the file is not as long as it was.
    """
    file = segment.file
    try:
        if segment.compression == "gzip":
            with _lock:
                places = _restarts.get((file.uri, file.fingerprint), ())
            at = bisect_right([place.text_offset for place in places], segment.start)
            restart = places[at - 1] if at else None
            blocks = text_between(file.uri, segment.start, segment.stop, restart)
        else:
            blocks = _blocks(file.uri, segment.start, segment.stop)
        size = 0
        for block in blocks:
            size += len(block)
            yield block
    except (OSError, EOFError, zlib.error) as error:
        raise CatalogError(f"{segment}: cannot be read ({error})") from error
    if size != segment.bytes:
        raise CatalogError(f"{segment}: the file has become shorter; run the query again")


def whole_text(segment: Segment) -> bytes:
    """The same as one piece."""
    if segment.compression != "none":
        return b"".join(text_of(segment))
    try:
        with open(segment.file.uri, "rb", buffering=0) as file:
            found = os.pread(file.fileno(), segment.bytes, segment.start)
    except OSError as error:
        raise CatalogError(f"{segment}: cannot be read ({error})") from error
    # One call may give less than was asked for.
    return found if len(found) == segment.bytes else b"".join(text_of(segment))


def relation_at(table: Table, segment: Segment, path: str) -> str:
    """SQL for the rows of a segment whose text lies at `path`; all columns of the table."""
    assert isinstance(table, CsvTable | JsonTable)
    return table.part_at(path, segment.file.uri, segment.start == 0, segment.newline)


# ------------------------------------------------------------------------ finding them


def _found(table: Table, target_bytes: float) -> Segments:
    if isinstance(table, ParquetTable):
        return _row_group_segments(table, target_bytes)
    if not isinstance(table, CsvTable | JsonTable):
        raise NotSplittable(f"table {table.key}: is no table of files, so it has no segments")
    if isinstance(table, CsvTable):
        table.check_rows_of_parts()
    version = table.fingerprint
    segments: list[Segment] = []
    whole: list[tuple[str, str]] = []
    small: list[DataFile] = []

    def add(files: tuple[DataFile, ...], start: int, stop: int, **rest: Any) -> None:
        number = len(segments)
        segments.append(Segment(table.key, version, number, files, start, stop, **rest))

    def add_small() -> None:
        if small:
            size = sum(file.bytes for file in small)
            add(tuple(small), 0, size, relation=table.rows_of([file.uri for file in small]))
            small.clear()

    for file in table.files:
        cuts = _cuts(table, file, target_bytes)
        if cuts.reason:
            whole.append((file.uri, cuts.reason))
        if cuts.places:
            add_small()
            edges = (0, *cuts.places, cuts.size)
            for start, stop in pairwise(edges):
                add(
                    (file,),
                    start,
                    stop,
                    compression=table.compression_of(file.uri),
                    newline=cuts.newline,
                    # What ended a proof is behind the last cut.
                    is_proven=not cuts.reason or stop < cuts.size,
                )
        else:
            if sum(each.bytes for each in small) + file.bytes > target_bytes:
                add_small()
            small.append(file)
    add_small()
    return Segments(table.key, version, target_bytes, tuple(segments), tuple(whole))


def _row_group_segments(table: ParquetTable, target_bytes: float) -> Segments:
    # Which files a split reads is in its relation; what is kept is dropped with the version.
    key, version, files = table.key, table.fingerprint, table.files
    found = [
        Segment(key, version, split.index, files, 0, int(split.bytes), split.relation)
        for split in table.splits(target_bytes)
    ]
    return Segments(table.key, table.fingerprint, target_bytes, tuple(found))


def most_bytes(table: CsvTable | JsonTable, file: DataFile) -> int:
    """How large the text of a file is taken to be, at most."""
    return file.bytes if table.compression_of(file.uri) == "none" else 4 * file.bytes


def _cuts(table: CsvTable | JsonTable, file: DataFile, target_bytes: float) -> Cuts:
    """Where a file is cut; a file that is small enough is not looked at."""
    compression = table.compression_of(file.uri)
    if most_bytes(table, file) <= target_bytes:
        return Cuts((), file.bytes)
    if "://" in file.uri:
        return Cuts((), file.bytes, "does not lie on this machine")
    if compression not in ("none", "gzip"):
        return Cuts((), file.bytes, f"{compression} can be decompressed from its start only")
    quoting = _csv_quoting(table, file) if isinstance(table, CsvTable) else OBJECTS
    if isinstance(quoting, str):
        return Cuts((), file.bytes, quoting)
    try:
        if isinstance(table, JsonTable) and (why := _no_objects(table, file, compression)):
            return Cuts((), file.bytes, why)
        if compression == "gzip":
            return _gzip_cuts(file, quoting, target_bytes)
        # Equal parts: no small one at the end.
        step = file.bytes / max(1, round(file.bytes / target_bytes))
        cuts = cuts_of(_blocks(file.uri, 0, file.bytes), quoting, step)
        return _without_rest(cuts, step)
    except OSError as error:
        raise CatalogError(f"{file.uri}: cannot be read ({error.strerror or error})") from error


def _gzip_cuts(file: DataFile, quoting: Quoting, target_bytes: float) -> Cuts:
    places: list[Restart] = []
    try:
        blocks = noted(GzipText(file.uri), places.append, target_bytes / 4)
        cuts = cuts_of(blocks, quoting, target_bytes)
    except (zlib.error, EOFError) as error:
        return Cuts((), file.bytes, f"is not understood as gzip ({error})")
    cuts = _without_rest(cuts, target_bytes)
    nearest = {bisect_right([place.text_offset for place in places], cut) for cut in cuts.places}
    with _lock:
        _restarts[file.uri, file.fingerprint] = tuple(
            places[at - 1] for at in sorted(nearest) if at
        )
        while len(_restarts) > 1 and sum(map(len, _restarts.values())) > _RESTARTS:
            _restarts.popitem(last=False)
    return cuts


def _without_rest(cuts: Cuts, step: float) -> Cuts:
    """The cuts without one that would leave a small rest; with a reason if there are none."""
    places = cuts.places
    if not places and not cuts.reason and cuts.size > 2 * step:
        return replace(cuts, reason="no line break was found that surely ends a row")
    if places and cuts.size - places[-1] < step / 4:
        places = places[:-1]
    return replace(cuts, places=places)


def _csv_quoting(table: CsvTable, file: DataFile) -> Quoting | str:
    """How the rows of a file can be proven to end, or why they cannot."""
    dialect = table.dialect_of(file.uri)
    if dialect.get("skip"):
        return "lines at its beginning are skipped"
    if dialect.get("comment"):
        return "it has comments, in which quotes may stand"
    if dialect.get("strict_mode") is False:
        return "strict_mode is false, so that quotes may stand anywhere"
    if dialect.get("null_padding"):
        return "null_padding is on, so that the ends of rows are not certain"
    encoding = str(dialect.get("encoding", "utf-8")).lower()
    if encoding not in ("utf-8", "utf8"):
        return f"its encoding is {encoding}"
    delimiter, quote, escape = (
        str(dialect.get(name) or "").encode() for name in ("delim", "quote", "escape")
    )
    if len(quote) > 1 or len(escape) > 1 or not delimiter:
        return (
            f"its quote {quote!r}, escape {escape!r} or delimiter {delimiter!r} is no single sign"
        )
    if _starts_with_empty_line(table, file):
        return "its first line is empty"
    if len(delimiter) > 1 or (quote and escape not in (b"", quote)) or (escape and not quote):
        # Nothing is proven of quotes there; a text without any is safe all the same.
        return Quoting(stops=bytes({*quote, *escape}))
    return Quoting(quote[0] if quote else None, delimiter[0])


def _starts_with_empty_line(table: CsvTable, file: DataFile) -> bool:
    start = _start(file, table.compression_of(file.uri))
    return start.removeprefix(BOM)[:1] in (b"\n", b"\r")


def _no_objects(table: JsonTable, file: DataFile, compression: str) -> str:
    """Why a JSON file is not cut; "" if it is objects one after the other."""
    if table.options.get("ignore_errors") is True:
        return "with ignore_errors, what a line is depends on the lines before"
    if not _start(file, compression).removeprefix(BOM).lstrip().startswith(b"{"):
        return "it is not objects one after the other"
    return ""


def _start(file: DataFile, compression: str, size: int = 1 << 20) -> bytes:
    """The first bytes of the text of a file."""
    blocks = GzipText(file.uri).blocks() if compression == "gzip" else _blocks(file.uri, 0, size)
    try:
        return next(blocks, b"")
    except (zlib.error, EOFError):
        return b""


def _blocks(path: str, start: int, stop: int) -> Iterator[bytes]:
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < stop and (block := file.read(min(_BLOCK, stop - start))):
            start += len(block)
            yield block
