"""Tables of CSV and TSV files, also compressed.

How a file is written (delimiter, quotes, header, types) is found once, when the table is opened,
and then said with every read: a split may not be understood otherwise than the whole. Types are
guessed from the first rows of every file; give `types` or `columns` where that is not enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from .file_table import FileTable
from .formats import is_tab_separated
from .model import CatalogError, Column
from .quoting import call, option, path_literal

OPTIONS: Mapping[str, str] = {
    "delimiter": "delim",
    "header": "header",
    "quote": "quote",
    "escape": "escape",
    "comment": "comment",
    "skip": "skip",
    "null": "nullstr",
    "decimal_separator": "decimal_separator",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
    "encoding": "encoding",
    "compression": "compression",
    "null_padding": "null_padding",
    "thousands": "thousands",
}
"""Options of ours, and what DuckDB's reader calls them."""

NOTHING = "(empty)"  # what sniff_csv says for a sign it has not seen


class CsvTable(FileTable):
    """CSV files with the same header."""

    kind = "csv"
    function = "read_csv"

    @property
    def columns(self) -> tuple[Column, ...]:
        with self._opening:
            return self._described

    @property
    def _reading_options(self) -> Mapping[str, object]:
        with self._opening:
            columns = {column.name: column.type for column in self._without_hive(self._described)}
            fixed = {"auto_detect": False, "columns": columns}
            return {**self._dialect, **fixed, **self._hive_options}

    @cached_property
    def _described(self) -> tuple[Column, ...]:
        uris = self._filled
        columns = self.options.get("columns")
        if isinstance(columns, Mapping):
            fixed = {"auto_detect": False, "columns": columns}
        else:
            fixed = {"auto_detect": True, "files_to_sniff": -1}
            if self.options.get("types"):
                fixed["types"] = self.options["types"]
        source = call(self.function, uris, {**self._dialect, **fixed, **self._hive_options})
        try:
            found = self._metadata.columns(source, uris, f"table {self.key}")
        except CatalogError as error:
            raise self._metadata.culprit("SELECT 1 FROM sniff_csv({})", uris, error) from error
        self._check_headers(self._without_hive(found))
        return found

    def _check_headers(self, columns: tuple[Column, ...]) -> None:
        """Every file must have these names in this order; without a header, as many columns."""
        first = self._filled[0]
        names = [column.name for column in columns]
        if isinstance(self.options.get("columns"), Mapping) and self._dialect["header"] is False:
            return  # DuckDB itself reports a line with too few or too many values
        for uri in self._filled:
            found = [name for name, _ in self._sniffed(uri)[1]]
            if len(found) != len(names):
                raise CatalogError(
                    f"{uri}: has {len(found)} columns ({', '.join(found)}), but the table "
                    f"{self.key} has {len(names)} ({', '.join(names)}; see {first})"
                )
            if self._dialect["header"] is True and found != names and uri != first:
                at = next(i for i, name in enumerate(found) if name != names[i])
                raise CatalogError(
                    f"{uri}: column {at + 1} is called {found[at]!r}, but {names[at]!r} in "
                    f"{first}; bring all files of the table {self.key} to one header, or name "
                    "separate tables"
                )

    @cached_property
    def _dialect(self) -> Mapping[str, object]:
        """How the files are written: as the user says, else as the first file looks."""
        given = {
            theirs: self.options[ours] for ours, theirs in OPTIONS.items() if ours in self.options
        }
        if is_tab_separated(self._files[0].uri):
            given.setdefault("delim", "\t")
        uri = self._filled[0]
        extra = "".join(f", {name}={option(value)}" for name, value in given.items())
        sniffed = self._metadata.rows(
            "SELECT Delimiter, Quote, Escape, Comment, SkipRows, HasHeader, DateFormat, "
            f"TimestampFormat FROM sniff_csv({path_literal(uri)}{extra})",
            [uri],
            uri,
        )[0]
        delimiter, quote, escape, comment, skip, header, date_format, timestamp_format = sniffed
        # A file without a quote in its first rows may have one later: say the usual ones.
        quote = '"' if quote == NOTHING else quote
        found: dict[str, object] = {
            "delim": delimiter,
            "quote": quote,
            "escape": quote if escape == NOTHING else escape,
            "skip": skip,
            "header": header,
        }
        if comment != NOTHING:
            found["comment"] = comment
        if date_format:
            found["dateformat"] = date_format
        if timestamp_format:
            found["timestampformat"] = timestamp_format
        return {**found, **given}

    def _sniffed(self, uri: str) -> tuple[str, list[tuple[str, str]]]:
        said = {**self._dialect, "sample_size": 1}
        extra = "".join(f", {name}={option(value)}" for name, value in said.items())
        row = self._metadata.rows(
            f"SELECT Columns FROM sniff_csv({path_literal(uri)}{extra})", [uri], uri
        )[0]
        return uri, [(column["name"], column["type"]) for column in row[0]]

    @cached_property
    def _filled(self) -> list[str]:
        """The files that hold at least a header."""
        filled = [file.uri for file in self._files if file.bytes]
        if not filled:
            raise CatalogError(
                f"{self._files[0].uri}: is empty, so the columns of the table {self.key} are "
                "unknown; remove the file, or write at least a header"
            )
        return filled
