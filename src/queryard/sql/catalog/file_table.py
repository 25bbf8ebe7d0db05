"""What tables of files have in common: their list of files, hive folders, whole-file splits.

With the option `union_by_name` the files of a table may have different columns: the table has all
of them, and a column that a file does not have is NULL there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import groupby

from .formats import COMPRESSIONS, hive_keys, hive_values
from .metadata import MetadataReader
from .model import CatalogError, Column, DataFile, SourceSplit, Table, checked_target
from .quoting import call, identifier, literal, select

_PLACES = frozenset({"path", "format", "places"})


class FileTable(Table):
    """A table of one or more files of one format, read by one table function of DuckDB."""

    function: str

    def __init__(
        self,
        name: str,
        schema: str,
        files: Sequence[DataFile],
        options: Mapping[str, object],
        metadata: MetadataReader,
    ) -> None:
        super().__init__(name, schema)
        self._files = tuple(files)
        self.options = dict(options)
        self._metadata = metadata

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self._files

    @property
    def given_options(self) -> tuple[str, ...]:
        given = sorted(self.options.items(), key=lambda item: item[0])
        return tuple(f"{name} = {value!r}" for name, value in given if name not in _PLACES)

    @property
    def bytes(self) -> float:
        return float(sum(file.bytes for file in self._files))

    @property
    def rows(self) -> float | None:
        return None

    @property
    def relation(self) -> str:
        return self._read(file.uri for file in self._files)

    def splits(self, target_bytes: float) -> tuple[SourceSplit, ...]:
        """Whole files, small ones together.

        A text file is never cut: a line break may stand inside quotes, which only a reader of the
        whole file can tell, and DuckDB reads no ranges of text. `segments.py` cuts text all the
        same, for scans that are shared.
        """
        packs = packed(self._files, checked_target(target_bytes))
        return tuple(self._whole_files(index, pack) for index, pack in enumerate(packs))

    def row_group_splits(self) -> tuple[SourceSplit, ...]:
        return tuple(self._whole_files(index, [file]) for index, file in enumerate(self._files))

    def _whole_files(
        self, index: int, files: Sequence[DataFile], rows: float | None = None
    ) -> SourceSplit:
        relation = self._rows_of([file.uri for file in files])
        size = float(sum(file.bytes for file in files))
        places = self.places_of([file.uri for file in files])
        return SourceSplit(self.key, index, size, rows, relation, places=places)

    def places_of(self, uris: Sequence[str]) -> tuple[str, ...]:
        """The machines that hold all of these files, as the option `places` says."""
        given = self.options.get("places")
        if not isinstance(given, Mapping):
            return ()
        found = [_places_of(uri, given) for uri in uris]
        return tuple(place for place in found[0] if all(place in other for other in found[1:]))

    def rows_of(self, uris: Sequence[str]) -> str:
        """Some of the files as a relation with all columns of the table."""
        return self._rows_of(uris)

    def part_at(self, path: str, uri: str, is_first: bool, newline: str) -> str:
        """A part of the text of the file `uri` that lies at `path`, decompressed.

        A relation with all columns of the table. The part begins with a row; the first one begins
        as the file does, with a header if it has one. `newline` ends the lines of the file.
        """
        raise NotImplementedError

    _plain_file: Mapping[str, object] = {"compression": "none", "hive_partitioning": False}
    """Options for a text that was taken out of a file: nothing is told by its path."""

    def compression_of(self, uri: str) -> str:
        """`none`, `gzip` or `zstd`: as the option says, else as DuckDB takes it from the ending."""
        given = str(self.options.get("compression", "auto")).lower()
        if given not in ("auto", "auto_detect", "infer"):
            return given
        ending = next((end for end in COMPRESSIONS if uri.lower().endswith(end)), "")
        return {".gz": "gzip", ".zst": "zstd", "": "none"}[ending]

    def _completed(self, uri: str, source: str) -> str:
        """The columns of a part of a file, with those that are made from the path of the file."""
        values: dict[str, str] = {}
        types = self._hive_options.get("hive_types", {})
        for key, text in types.items() if isinstance(types, Mapping) else ():
            value = next(iter(hive_values([uri], key)))
            written = "NULL" if value is None else literal(value)
            values[key.lower()] = f"CAST({written} AS {text})"
        if self.filename_column is not None:
            values[self.filename_column.lower()] = literal(uri)
        return self._filled_up_from(source, self.layout(uri), values)

    def _rows_of(self, uris: Sequence[str], where: str = "") -> str:
        """Some of the files as a relation with all columns of the table."""
        if not self.by_name:
            return select((column.name for column in self.columns), self._read(uris), where)
        parts = [
            self._filled_up(list(same), where) for _, same in groupby(uris, key=self._same_reading)
        ]
        return parts[0] if len(parts) == 1 else f"({' UNION ALL '.join(parts)})"

    def _filled_up(self, uris: Sequence[str], where: str) -> str:
        """Files of the same columns: the others are NULL, and types are those of the table."""
        added = {name.lower(): identifier(name) for name in self.added_columns}
        return self._filled_up_from(self._read(uris), self.layout(uris[0]), added, where)

    def _filled_up_from(
        self, source: str, layout: Iterable[Column], added: Mapping[str, str], where: str = ""
    ) -> str:
        """All columns of the table: of a source, of other expressions by name, or NULL."""
        own = {column.name.lower(): column for column in layout}
        items = []
        for column in self.columns:
            name = identifier(column.name)
            found = own.get(column.name.lower())
            if (expression := added.get(column.name.lower())) is not None:
                items.append(name if expression == name else f"{expression} AS {name}")
            elif found is None:
                items.append(f"CAST(NULL AS {column.type}) AS {name}")
            elif found.type == column.type:
                items.append(f"{identifier(found.name)} AS {name}")
            else:
                items.append(f"CAST({identifier(found.name)} AS {column.type}) AS {name}")
        condition = f" WHERE {where}" if where else ""
        return f"(SELECT {', '.join(items)} FROM {source}{condition})"

    @property
    def by_name(self) -> bool:
        """Whether files may have different columns."""
        return self.options.get("union_by_name") is True

    def layout(self, uri: str) -> tuple[Column, ...]:
        """The columns of one file of a table that is read by name, as `_read` gives them."""
        raise NotImplementedError

    def _same_reading(self, uri: str) -> object:
        """Equal for files of a table read by name that `_read` may read together."""
        return self.layout(uri)

    def _read(self, uris: Iterable[str]) -> str:
        return call(self.function, uris, self._reading_options)

    @property
    def _reading_options(self) -> Mapping[str, object]:
        """Everything DuckDB would otherwise guess, so that each split is read like the whole."""
        raise NotImplementedError

    @cached_property
    def _hive_options(self) -> Mapping[str, object]:
        """Partition columns with types that hold for all files, not for those of one split."""
        if self.options.get("hive") is False:
            return {"hive_partitioning": False}
        first, *others = self._files
        keys = hive_keys(first.uri)
        for file in others:
            if hive_keys(file.uri) != keys:
                raise CatalogError(
                    f"{file.uri}: lies in folders of the keys {list(hive_keys(file.uri))}, but "
                    f"{first.uri} in those of {list(keys)}; bring them into one order, or say "
                    f"hive = false for the table {self.key}"
                )
        if not keys:
            if self.options.get("hive") is True:
                raise CatalogError(
                    f"{first.uri}: lies in no key=value folder, though the table {self.key} says "
                    "hive = true"
                )
            return {"hive_partitioning": False}
        types = {**self._hive_types(), **self._given_types}
        types = {name.lower(): text for name, text in types.items()}
        return {"hive_partitioning": True, "hive_types": {key: types[key.lower()] for key in keys}}

    def _hive_types(self) -> Mapping[str, str]:
        """The types that DuckDB takes from the names of all folders; no file is read."""
        uris = [file.uri for file in self._files]
        nothing = {"auto_detect": False, "columns": {"=": "VARCHAR"}}  # a sign that no key has
        source = call("read_csv", uris, {**nothing, "hive_partitioning": True})
        found = self._metadata.columns(source, uris, f"table {self.key}")
        return {column.name: column.type for column in found}

    @property
    def _given_types(self) -> Mapping[str, str]:
        """Types the user has given, by column."""
        found: dict[str, str] = {}
        for option in ("types", "columns"):
            given = self.options.get(option)
            if isinstance(given, Mapping):
                found.update({str(name): str(text) for name, text in given.items()})
        return found

    @property
    def hive_columns(self) -> tuple[str, ...]:
        """The columns with the names of folders as their values."""
        types = self._hive_options.get("hive_types", {})
        return tuple(types) if isinstance(types, Mapping) else ()

    @property
    def filename_column(self) -> str | None:
        """The column with the path of the file that a row is from, if one is wanted."""
        given = self.options.get("filename", False)
        return given if isinstance(given, str) else "filename" if given else None

    @property
    def _filename_options(self) -> Mapping[str, object]:
        return {} if self.filename_column is None else {"filename": self.filename_column}

    @property
    def added_columns(self) -> tuple[str, ...]:
        """The columns that are not in the files, but made from their paths."""
        return (*self.hive_columns, *([self.filename_column] if self.filename_column else ()))

    def _in_files(self, columns: Iterable[Column]) -> tuple[Column, ...]:
        """The columns that are in the files themselves."""
        added = {name.lower() for name in self.added_columns}
        return tuple(column for column in columns if column.name.lower() not in added)


def packed(files: Sequence[DataFile], target_bytes: float) -> list[list[DataFile]]:
    """Neighbouring files put together until the next would make it more than the target.

    >>> sizes = [DataFile("a", 5, ""), DataFile("b", 4, ""), DataFile("c", 20, "")]
    >>> [[file.uri for file in pack] for pack in packed(sizes, 10)]
    [['a', 'b'], ['c']]
    """
    packs: list[list[DataFile]] = []
    size = 0.0
    for file in files:
        if packs and size + file.bytes <= target_bytes:
            packs[-1].append(file)
            size += file.bytes
        else:
            packs.append([file])
            size = float(file.bytes)
    return packs


def _places_of(uri: str, given: Mapping[str, object]) -> list[str]:
    """The places of a file: patterns are of whole names, or of the last parts of them.

    >>> _places_of("/data/eu/1.parquet", {"eu/*": "10.0.0.5", "us/*": ["10.0.0.6", "10.0.0.7"]})
    ['10.0.0.5']
    """
    found: dict[str, None] = {}
    for pattern, places in given.items():
        if fnmatchcase(uri, pattern) or fnmatchcase(uri, f"*/{pattern}"):
            several = places if isinstance(places, list | tuple) else [places]
            found.update(dict.fromkeys(map(str, several)))
    return list(found)
