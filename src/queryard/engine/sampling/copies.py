"""Shuffled copies of tables: where they lie, whether they still hold, and how they are read.

A copy is a folder with Parquet files and `copy.json`, which says of what table it is, and of which
state of its files. It appears whole, by a rename, and is removed whole.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from queryard.sql.catalog.catalog import Catalog
from queryard.sql.catalog.model import CatalogError, Column, Table
from queryard.sql.catalog.quoting import call, identifier
from queryard.sql.statistics.store import data_fingerprint, file_name, places

from .model import Kind, Part, SampleError, part_column, rotated

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows: files that are open cannot be removed there anyway
    fcntl = None

FORMAT = 1
MANIFEST = "copy.json"


@dataclass(frozen=True, slots=True)
class ShuffledCopy:
    """The rows of a table in files by a hash of the row number: each file is a random sample.

    `cast` are the columns whose type Parquet does not have; the relation gives it back. `buckets`
    is how many files were asked for; one that would have no row does not exist.
    """

    table: str
    folder: Path
    fingerprint: str
    seed: int
    buckets: int
    columns: tuple[Column, ...]
    cast: frozenset[str]
    parts: tuple[Part, ...]
    made_s: float
    """When it was made, in seconds since 1970."""

    @property
    def kind(self) -> Kind:
        return "shuffled copy"

    @property
    def part_column(self) -> str:
        return part_column(self.columns)

    @property
    def files(self) -> tuple[Path, ...]:
        """In the order of the parts."""
        return tuple(self.folder / part.file for part in self.parts)

    @property
    def rows(self) -> tuple[int, ...]:
        """Of each file."""
        return tuple(part.rows for part in self.parts)

    @property
    def total_rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def bytes(self) -> float:
        return sum(part.bytes for part in self.parts)

    def relation(self, parts: Sequence[Part]) -> str:
        """One read of all their files; DuckDB tells by `file_index` which a row is from."""
        items = [
            f"CAST({name} AS {column.type}) AS {name}" if column.name in self.cast else name
            for column in self.columns
            for name in (identifier(column.name),)
        ]
        source = call(
            "read_parquet",
            (str(self.folder / part.file) for part in parts),
            {"hive_partitioning": False},
        )
        # A table may have a column that is called so; then the parts are read one by one.
        if any(column.name.lower() == "file_index" for column in self.columns) and len(parts) > 1:
            each = " UNION ALL ".join(f"SELECT * FROM {self.relation([part])}" for part in parts)
            return f"({each})"
        items.append(f"{_number(parts)} AS {identifier(self.part_column)}")
        return f"(SELECT {', '.join(items)} FROM {source})"

    def start(self, offset: int) -> ShuffledCopy:
        return replace(self, parts=rotated(self.parts, offset))

    def is_current(self) -> bool:
        """A copy does not change once it is made."""
        return True

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the copy from being removed within the context; SampleError if it is gone."""
        try:
            manifest = (self.folder / MANIFEST).open("rb")
        except OSError as error:
            raise SampleError(
                f"{self.folder}: the shuffled copy of {self.table} is gone ({error.strerror}); "
                "make another: queryard shuffle"
            ) from error
        with manifest:
            if fcntl is not None:
                fcntl.flock(manifest, fcntl.LOCK_SH)
            yield


def _number(parts: Sequence[Part]) -> str:
    """The number of the part, from the place of the file in the list that is read."""
    if len(parts) == 1:
        return str(parts[0].number)
    numbers = ", ".join(str(part.number) for part in parts)
    return f"CAST([{numbers}][CAST(file_index AS BIGINT) + 1] AS INTEGER)"


def copy_places(catalog: Catalog, table: Table) -> list[Path]:
    """Where a copy of a table may lie: `.queryard/shuffled` beside the data, and the cache."""
    return places(table, _beside(catalog), "shuffled")


def _beside(catalog: Catalog) -> Path | None:
    statistics = catalog.statistics_folder
    return None if statistics is None else statistics.parent / "shuffled"


def find_copy(table: Table, among: Iterable[Path]) -> ShuffledCopy | None:
    """The newest copy that is of the table as it is now, or None."""
    found = copies_of(table, among)
    if not found:
        return None  # and the files of the table are not looked at
    fingerprint = data_fingerprint(table)
    held = [copy for copy in found if copy.fingerprint == fingerprint and is_whole(copy)]
    return max(held, key=lambda copy: copy.made_s, default=None)


def copies_of(table: Table, among: Iterable[Path]) -> list[ShuffledCopy]:
    """All copies of a table, also those that no longer hold."""
    return [copy for place in among for copy in _copies_in(place, file_name(table, ".*"))]


def list_copies(catalog: Catalog) -> list[tuple[ShuffledCopy, bool]]:
    """All copies of the data of a catalog, and whether each still holds.

    A copy of a table that is no longer there is listed as well.
    """
    current = set()
    beside = _beside(catalog)
    looked = set() if beside is None else {beside}
    for table in catalog.tables.values():
        if table.files:
            among = copy_places(catalog, table)
            looked.update(among)
            with contextlib.suppress(CatalogError):  # of a broken table no copy holds
                held = find_copy(table, among)
                current.add(None if held is None else held.folder)
    found = {copy.folder: copy for place in looked for copy in _copies_in(place, "*")}
    listed = [(copy, copy.folder in current) for copy in found.values()]
    return sorted(listed, key=lambda one: (one[0].table, -one[0].made_s))


def remove_copy(table: Table, among: Iterable[Path], keep: ShuffledCopy | None = None) -> int:
    """Remove the copies of a table, but one to keep; how many. SampleError if one is in use."""
    removed = 0
    for copy in copies_of(table, among):
        if keep is None or copy.folder != keep.folder:
            if not discard(copy):
                raise SampleError(
                    f"{copy.folder}: the shuffled copy of {copy.table} is being read by an online "
                    "query; try again when that has ended"
                )
            removed += 1
    return removed


def discard(copy: ShuffledCopy) -> bool:
    """Remove a copy that no query reads; False if one does."""
    try:
        with (copy.folder / MANIFEST).open("rb") as manifest:
            if not _alone(manifest):
                return False
            # Its name goes first: no reader finds a copy of which half the files are gone.
            gone = copy.folder.with_name(f".{copy.folder.name}.{uuid.uuid4().hex[:8]}")
            copy.folder.rename(gone)
    except FileNotFoundError:
        return True  # another process was faster
    except OSError as error:
        raise SampleError(
            f"{copy.folder}: the shuffled copy of {copy.table} cannot be removed "
            f"({error.strerror}); remove the folder by hand"
        ) from error
    shutil.rmtree(gone, ignore_errors=True)
    return True


def sweep(place: Path) -> None:
    """Remove what is left of copies whose removal was cut short."""
    for folder in place.glob(".*"):
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def _alone(manifest: IO[bytes]) -> bool:
    if fcntl is None:
        return True
    try:
        fcntl.flock(manifest, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_whole(copy: ShuffledCopy) -> bool:
    """Whether all files are there, with the sizes they had."""
    try:
        return all(
            (copy.folder / part.file).stat().st_size == int(part.bytes) for part in copy.parts
        )
    except OSError:
        return False


def _copies_in(place: Path, pattern: str) -> Iterator[ShuffledCopy]:
    for manifest in sorted(place.glob(f"{pattern}/{MANIFEST}")):
        if manifest.parent.name.startswith("."):
            continue  # one that is being removed
        # One that is not whole, of another version or of another user is as good as none.
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield read_manifest(manifest)


def write_manifest(copy: ShuffledCopy, folder: Path) -> None:
    """Say in a folder what copy it holds."""
    about = {
        "format": FORMAT,
        "table": copy.table,
        "fingerprint": copy.fingerprint,
        "seed": copy.seed,
        "buckets": copy.buckets,
        "made_s": copy.made_s,
        "columns": [list(column) for column in copy.columns],
        "cast": sorted(copy.cast),
        "files": [[part.number, part.rows, part.bytes, part.file] for part in copy.parts],
    }
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    manifest.chmod(0o600)


def read_manifest(manifest: Path) -> ShuffledCopy:
    """The copy that a folder holds; ValueError, KeyError or TypeError if it is none of ours."""
    about = json.loads(manifest.read_text(encoding="utf-8"))
    if about["format"] != FORMAT:
        raise ValueError(f"format {about['format']!r}, this version reads {FORMAT}")
    return ShuffledCopy(
        about["table"],
        manifest.parent,
        about["fingerprint"],
        int(about["seed"]),
        int(about["buckets"]),
        tuple(Column(name, type_) for name, type_ in about["columns"]),
        frozenset(about["cast"]),
        tuple(
            Part(int(number), int(rows), float(size), str(file))
            for number, rows, size, file in about["files"]
        ),
        float(about["made_s"]),
    )
