"""Tables of JSON files, one object per line (or one array of objects), also compressed.

Objects need not have the same keys: the columns are all keys seen in the first objects of every
file, and a key that is missing is NULL. Types are found once, when the table is opened, and said
with every read; so is the way in which dates are written, where it is not the usual one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product

from .file_table import FileTable
from .model import CatalogError, Column
from .quoting import call, select

OPTIONS: Mapping[str, str] = {
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
    "compression": "compression",
    "maximum_object_size": "maximum_object_size",
    "ignore_errors": "ignore_errors",
}
"""Options of ours, and what DuckDB's reader calls them."""

_MOMENT = re.compile(r"\b(DATE|TIMESTAMP)")
_NUMBERED = re.compile(r"(_\d+)+$")
# What DuckDB tries when it guesses; what it prefers comes first.
_DATES = ("%y-%m-%d", "%d-%m-%y", "%d-%m-%Y", "%m-%d-%y", "%m-%d-%Y")
_TIMES = (
    *("%y-%m-%d %H:%M:%S", "%d-%m-%y %H:%M:%S", "%d-%m-%Y %H:%M:%S"),
    *("%m-%d-%y %I:%M:%S %p", "%m-%d-%Y %I:%M:%S %p"),
)
_FIRST_ROWS = 2048


_GUESSING: Mapping[str, object] = {"maximum_sample_files": -1}


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
            fixed = {"records": True, "columns": columns, **self._formats}
            return {**self._given, **fixed, **self._hive_options, **self._filename_options}

    def part_at(self, path: str, uri: str, is_first: bool, newline: str) -> str:
        with self._opening:
            columns = {column.name: column.type for column in self.layout(uri)}
            fixed = {"records": True, "columns": columns, **self._formats}
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
        uris = self._filled
        columns = self.options.get("columns")
        if isinstance(columns, Mapping):
            return self._ask(uris, {**self._told, "columns": columns})
        found = self._ask(uris, {**self._told, **_GUESSING})
        if [column.name for column in self._in_files(found)] == ["json"]:
            self._check_objects(uris)
        types = {name.lower(): text for name, text in self._given_types.items()}
        return tuple(Column(c.name, types.get(c.name.lower(), c.type)) for c in found)

    @property
    def _told(self) -> Mapping[str, object]:
        return {**self._given, **self._hive_options, **self._filename_options}

    @property
    def _filled(self) -> list[str]:
        return [file.uri for file in self._files if file.bytes] or [self._files[0].uri]

    @cached_property
    def _formats(self) -> Mapping[str, str]:
        """How dates and times are written, if in another way than ISO 8601 says.

        DuckDB finds that out when it guesses types, and does not say it. Where types are given, it
        takes nothing else than ISO 8601, in which 20-12-31 is a day of the year 20.
        """
        if isinstance(self.options.get("columns"), Mapping):
            return {}
        columns = self._in_files(self._described)
        given = {name.lower() for name in self._given_types}
        names = [column.name for column in columns if column.name.lower() not in given]
        if not any(_MOMENT.search(column.type) for column in columns) and not _renamed(names):
            return {}
        guessed = self._first_rows(names, {**self._told, **_GUESSING})
        if guessed is None:
            return {}  # the query that reads it will say why
        fixed = {"records": True, "columns": {column.name: column.type for column in columns}}
        for date, time in product(("", *_DATES), ("", *_TIMES)):
            formats = {"dateformat": date, "timestampformat": time}
            formats = {name: text for name, text in formats.items() if text}
            if self._first_rows(names, {**self._told, **fixed, **formats}) == guessed:
                return formats
        raise CatalogError(
            f"{self._files[0].uri}: dates are written in several ways, or keys differ in case "
            f"only; say which `columns` the table {self.key} has, with their types"
        )

    def _first_rows(self, names: Sequence[str], options: Mapping[str, object]) -> object:
        """Some columns of the first rows; None where they cannot be read."""
        uris = self._filled
        some = f"{select(names, call(self.function, uris, options))} LIMIT {_FIRST_ROWS}"
        sql = f"SELECT CAST(part AS VARCHAR) FROM (FROM {some}) AS part"
        try:
            return self._metadata.rows(sql, uris, self.key)
        except CatalogError:
            return None

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


def _renamed(names: Sequence[str]) -> bool:
    """Whether DuckDB has put a number behind a name, as to keys that differ in case only.

    >>> _renamed(["a", "A_1"]), _renamed(["a_1", "a_2"])
    (True, False)
    """
    lower = {name.lower() for name in names}
    return any(_NUMBERED.sub("", name) in lower - {name} for name in lower)
