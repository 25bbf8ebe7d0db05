"""What a shell offers while one types: keywords, tables, columns and its own commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from queryard.core.errors import QueryardError
from queryard.sql.catalog import Catalog

KEYWORDS = (
    "ALL AND ANTI AS ASC ASOF BETWEEN BY CASE CAST COPY CREATE CROSS DELETE DESC DESCRIBE "
    "DISTINCT DROP ELSE END EXCEPT EXCLUDE EXISTS EXPLAIN FALSE FILTER FROM FULL GROUP HAVING "
    "ILIKE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT NOT NULL "
    "NULLS OFFSET ON OR ORDER OUTER OVER PARTITION PIVOT QUALIFY REPLACE RIGHT ROLLUP SAMPLE "
    "SELECT SEMI SET SHOW SUMMARIZE TABLE TEMP THEN TO TRUE UNION UNPIVOT UPDATE USING VALUES "
    "VIEW WHEN WHERE WINDOW WITH avg coalesce count date_trunc extract first greatest least "
    "list max median min quantile_cont row_number round stddev string_agg substring sum "
    "variance "
)
_WORD = re.compile(r"[\w.]*$")
_NAMES = re.compile(r"\w+")


class ShellCompleter(Completer):
    """Completes the word before the cursor.

    Columns are those of the tables that the statement names; before it names any, all tables are
    offered, but no table is opened for its columns.
    """

    def __init__(self, catalog: Catalog, commands: Iterable[str]) -> None:
        self._catalog = catalog
        self._commands = sorted(commands)
        self._columns: dict[str, list[str]] = {}

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.lstrip().startswith(".") and "\n" not in before.strip():
            yield from self._for_command(before.lstrip())
            return
        found = _WORD.search(before)
        word = found.group() if found else ""
        if "." in word:
            yield from self._after_dot(word, document.text)
        elif word or complete_event.completion_requested:
            yield from _matching(word, self._words(document.text))

    def _for_command(self, text: str) -> Iterator[Completion]:
        command, space, rest = text.partition(" ")
        if not space:
            yield from _matching(command, [(name, "command") for name in self._commands])
        else:
            yield from _matching(rest, [(key, "table") for key in self._catalog.tables])

    def _after_dot(self, word: str, text: str) -> Iterator[Completion]:
        """Columns of a table or of its alias, or tables of a schema."""
        owner, _, part = word.rpartition(".")
        keys = [key for key in self._catalog.tables if key.lower().startswith(f"{owner.lower()}.")]
        tables = [(key[len(owner) + 1 :], "table") for key in keys]
        table = self._table_of(owner, text)
        columns = [(name, "column") for name in self._columns_of(table)] if table else []
        yield from _matching(part, [*columns, *tables])

    def _table_of(self, name: str, text: str) -> str | None:
        if name in self._catalog:
            return self._catalog[name].key
        pattern = rf"([\w.]+)\s+(?:as\s+)?{re.escape(name)}\b"
        for found in re.finditer(pattern, text, re.IGNORECASE):
            if found[1] in self._catalog:
                return self._catalog[found[1]].key
        return None

    def _words(self, text: str) -> list[tuple[str, str]]:
        named = {word.lower() for word in _NAMES.findall(text)}
        tables = self._catalog.tables
        mentioned = [key for key, table in tables.items() if table.name.lower() in named]
        columns = dict.fromkeys(name for key in mentioned for name in self._columns_of(key))
        return [
            *((name, "column") for name in columns),
            *((key, "table") for key in tables),
            *((word, "") for word in KEYWORDS.split()),
        ]

    def _columns_of(self, key: str) -> list[str]:
        if key not in self._columns:
            try:
                self._columns[key] = [column.name for column in self._catalog[key].columns]
            except QueryardError:  # a query of the table will report it
                self._columns[key] = []
        return self._columns[key]

    def forget(self) -> None:
        """The files may be others now."""
        self._columns.clear()


def _matching(word: str, candidates: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    for text, meta in candidates:
        if text.lower().startswith(word.lower()) and text != word:
            # A keyword is written as its beginning is.
            written = text.lower() if not meta and word.islower() else text
            yield Completion(written, start_position=-len(word), display_meta=meta)
