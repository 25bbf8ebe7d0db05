"""Tables of CSV and TSV files, also compressed.

How a file is written (delimiter, quotes, header, types) is found once, when the table is opened,
and then said with every read: a split may not be understood otherwise than the whole. Types are
guessed from the first rows of every file; give `types` or `columns` where that is not enough. Files
that are read by name (`union_by_name`) may each be written in their own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from queryard.core.readable import several

from .file_table import FileTable
from .formats import is_tab_separated
from .model import CatalogError, Column, NotSplittable, SourceSplit
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
    "ignore_errors": "ignore_errors",
    "strict_mode": "strict_mode",
    "maximum_line_size": "max_line_size",
}
"""Options of ours, and what DuckDB's reader calls them."""

NOTHING = "(empty)"  # what sniff_csv says for a sign it has not seen


class CsvTable(FileTable):
    """CSV files with the same header, or with any if they are read by name."""

    kind = "csv"
    function = "read_csv"

    @property
    def columns(self) -> tuple[Column, ...]:
        with self._opening:
            return self._described

    @property
    def relation(self) -> str:
        uris = [file.uri for file in self._files]
        return self._rows_of(uris) if self.by_name else self._read(uris)

    def splits(self, target_bytes: float) -> tuple[SourceSplit, ...]:
        self.check_rows_of_parts()
        return super().splits(target_bytes)

    def check_rows_of_parts(self) -> None:
        """Raise `NotSplittable` unless parts have the same rows whichever columns are read."""
        if self.options.get("ignore_errors") is True:
            raise NotSplittable(
                f"table {self.key}: with ignore_errors, the rows left out depend on the columns "
                "that a query reads"
            )

    def _read(self, uris: Iterable[str]) -> str:
        uris = list(uris)
        with self._opening:
            # Files that are read together are written in the same way.
            columns = {column.name: column.type for column in self.layout(uris[0])}
            fixed = {"auto_detect": False, "columns": columns}
            options = {**self._dialect_of(uris[0]), **fixed}
            return call(
                self.function, uris, {**options, **self._hive_options, **self._filename_options}
            )

    def dialect_of(self, uri: str) -> Mapping[str, object]:
        """How a file is written, as options of DuckDB's reader."""
        with self._opening:
            return self._dialect_of(uri)

    def part_at(self, path: str, uri: str, is_first: bool, newline: str) -> str:
        with self._opening:
            columns = {column.name: column.type for column in self.layout(uri)}
            dialect = dict(self._dialect_of(uri))
        dialect["new_line"] = repr(newline)[1:-1]
        if not is_first:
            dialect["header"] = False
        fixed = {"auto_detect": False, "columns": columns, **self._plain_file}
        return self._completed(uri, call(self.function, [path], {**dialect, **fixed}))

    def layout(self, uri: str) -> tuple[Column, ...]:
        with self._opening:
            own = self._in_files(self._described)
            names = self._names.get(uri) if self.by_name else None
            if names is None:
                return own
            types = {column.name.lower(): column.type for column in own}
            return tuple(Column(name, types[name.lower()]) for name in names)

    def _same_reading(self, uri: str) -> object:
        return self.layout(uri), self._dialect_of(uri)

    @cached_property
    def _described(self) -> tuple[Column, ...]:
        uris = self._filled
        columns = self.options.get("columns")
        fixed: dict[str, object] = {"auto_detect": True, "files_to_sniff": -1}
        if isinstance(columns, Mapping):
            fixed = {"auto_detect": False, "columns": columns}
        elif self.options.get("types"):
            fixed["types"] = self.options["types"]
        if self.by_name:
            written: Mapping[str, object] = {**self._given, "union_by_name": True}
        else:
            written = self._dialect_of(uris[0])
        options = {**written, **fixed, **self._hive_options, **self._filename_options}
        source = call(self.function, uris, options)
        try:
            found = self._metadata.columns(source, uris, f"table {self.key}")
        except CatalogError as error:
            raise self._metadata.culprit("SELECT 1 FROM sniff_csv({})", uris, error) from error
        if not self.by_name:
            self._check_headers(self._in_files(found))
        return found

    @cached_property
    def _names(self) -> Mapping[str, tuple[str, ...]]:
        """The names of the columns of every file that holds any."""
        return {uri: tuple(self._header(uri)) for uri in self._filled}

    def _check_headers(self, columns: tuple[Column, ...]) -> None:
        """Every file must have these names in this order; without a header, as many columns."""
        first = self._filled[0]
        names = [column.name for column in columns]
        header = self._dialect_of(first)["header"]
        if isinstance(self.options.get("columns"), Mapping) and header is False:
            return  # DuckDB itself reports a line with too few or too many values
        remedy = (
            f"say union_by_name = true for the table {self.key} in a catalog file (or in `tables=`)"
        )
        for uri in self._filled:
            found = self._header(uri)
            if len(found) != len(names):
                raise CatalogError(
                    f"{uri}: has {several(len(found), 'column')} ({', '.join(found)}), but the "
                    f"table {self.key} has {len(names)} ({', '.join(names)}; see {first}); {remedy}"
                )
            if header is True and found != names and uri != first:
                at = next(i for i, name in enumerate(found) if name != names[i])
                raise CatalogError(
                    f"{uri}: column {at + 1} is called {found[at]!r}, but {names[at]!r} in "
                    f"{first}; {remedy}, bring its files to one header, or name separate tables"
                )

    @cached_property
    def _given(self) -> Mapping[str, object]:
        """How the files are written, as far as the user says."""
        given = {
            theirs: self.options[ours] for ours, theirs in OPTIONS.items() if ours in self.options
        }
        if is_tab_separated(self._files[0].uri):
            given.setdefault("delim", "\t")
        return given

    def _dialect_of(self, uri: str) -> Mapping[str, object]:
        """How a file is written: as the user says, else as the first file looks.

        Of files that are read by name, each is looked at.
        """
        if not self.by_name or uri not in self._filled:
            uri = self._filled[0]
        if uri not in self._dialects:
            self._dialects[uri] = self._sniffed_dialect(uri)
        return self._dialects[uri]

    @cached_property
    def _dialects(self) -> dict[str, Mapping[str, object]]:
        return {}

    def _sniffed_dialect(self, uri: str) -> Mapping[str, object]:
        extra = "".join(f", {name}={option(value)}" for name, value in self._given.items())
        sniffed = self._metadata.rows(
            "SELECT Delimiter, Quote, Escape, Comment, SkipRows, HasHeader, DateFormat, "
            f"TimestampFormat FROM sniff_csv({path_literal(uri)}{extra})",
            [uri],
            uri,
        )[0]
        delimiter, quote, escape, comment, skip, header, date_format, timestamp_format = sniffed
        if self.options.get("strict_mode") is False:
            # Any sign may be meant literally there: none is added to those that were seen.
            quote, escape = ("" if sign == NOTHING else sign for sign in (quote, escape))
        else:
            # A file without a quote in its first rows may have one later: say the usual ones.
            quote = '"' if quote == NOTHING else quote
            escape = quote if escape == NOTHING else escape
        found: dict[str, object] = {
            "delim": delimiter,
            "quote": quote,
            "escape": escape,
            "skip": skip,
            "header": header,
        }
        if comment != NOTHING:
            found["comment"] = comment
        if date_format:
            found["dateformat"] = date_format
        if timestamp_format:
            found["timestampformat"] = timestamp_format
        return {**found, **self._given}

    def _header(self, uri: str) -> list[str]:
        """The names of the columns of one file."""
        said = {**self._dialect_of(uri), "sample_size": 1}
        extra = "".join(f", {name}={option(value)}" for name, value in said.items())
        row = self._metadata.rows(
            f"SELECT Columns FROM sniff_csv({path_literal(uri)}{extra})", [uri], uri
        )[0]
        return [column["name"] for column in row[0]]

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
