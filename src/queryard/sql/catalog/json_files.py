"""Tables of JSON files, one object per line (or one array of objects), also compressed.

Objects need not have the same keys: the columns are all keys seen in the first objects of every
file, and a key that is missing is NULL. Types are found once, when the table is opened, and said
with every read.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from .file_table import FileTable
from .model import CatalogError, Column
from .quoting import call

OPTIONS: Mapping[str, str] = {
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
    "compression": "compression",
    "maximum_object_size": "maximum_object_size",
    "ignore_errors": "ignore_errors",
}
"""Options of ours, and what DuckDB's reader calls them."""


class JsonTable(FileTable):
    """JSON files; their objects are the rows."""

    kind = "json"
    function = "read_json"

    @property
    def columns(self) -> tuple[Column, ...]:
        with self._opening:
            return self._described

    @property
    def _reading_options(self) -> Mapping[str, object]:
        with self._opening:
            columns = {column.name: column.type for column in self._in_files(self._described)}
            fixed = {"records": True, "columns": columns}
            return {**self._given, **fixed, **self._hive_options, **self._filename_options}

    def part_at(self, path: str, uri: str, is_first: bool, newline: str) -> str:
        with self._opening:
            columns = {column.name: column.type for column in self.layout(uri)}
        fixed = {"records": True, "columns": columns}
        options = {**self._given, **fixed, **self._plain_file}
        return self._completed(uri, call(self.function, [path], options))

    def layout(self, uri: str) -> tuple[Column, ...]:
        with self._opening:
            return self._in_files(self._described)

    @property
    def _given(self) -> Mapping[str, object]:
        return {
            theirs: self.options[ours] for ours, theirs in OPTIONS.items() if ours in self.options
        }

    @cached_property
    def _described(self) -> tuple[Column, ...]:
        uris = [file.uri for file in self._files if file.bytes] or [self._files[0].uri]
        options = {**self._given, **self._hive_options, **self._filename_options}
        columns = self.options.get("columns")
        if isinstance(columns, Mapping):
            return self._ask(uris, {**options, "columns": columns})
        found = self._ask(uris, {**options, "maximum_sample_files": -1})
        if [column.name for column in self._in_files(found)] == ["json"]:
            self._check_objects(uris)
        types = {name.lower(): text for name, text in self._given_types.items()}
        return tuple(Column(c.name, types.get(c.name.lower(), c.type)) for c in found)

    def _ask(self, uris: list[str], options: Mapping[str, object]) -> tuple[Column, ...]:
        try:
            return self._metadata.columns(
                call(self.function, uris, options), uris, f"table {self.key}"
            )
        except CatalogError as error:
            statement = "SELECT * FROM read_json({}) LIMIT 0"
            raise self._metadata.culprit(statement, uris, error) from error

    def _check_objects(self, uris: list[str]) -> None:
        """DuckDB makes one column `json` of whatever is no object, and of nothing at all."""
        for uri in uris:
            try:
                self._metadata.columns(call(self.function, [uri], {"records": True}), [uri], uri)
            except CatalogError as error:
                raise CatalogError(
                    f"{uri}: holds no JSON objects, one per line or in an array; "
                    f"the columns of the table {self.key} are unknown"
                ) from error
