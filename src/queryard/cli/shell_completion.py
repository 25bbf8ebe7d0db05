"""What a shell offers while one types: keywords, tables, columns and its own commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from queryard.core.errors import QueryardError
from queryard.sql.catalog.quoting import (
    identifier,
    plain_identifier,
    split_name,
    written_name,
)

if TYPE_CHECKING:
    from .any_session import AnyCatalog

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
# A text, a name in quotes (perhaps not closed yet), a word, or any other sign.
_TOKEN = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|\w+|.""", re.DOTALL)
_NAME = r'(?:"(?:[^"]|"")*"|\w+)'


class ShellCompleter(Completer):
    """Completes the word before the cursor.

    Columns are those of the tables that the statement names; before it names any, all tables are
    offered, but no table is opened for its columns.
    """

    def __init__(self, catalog: AnyCatalog, commands: Iterable[str]) -> None:
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
        owner, word = _last_name(before)
        if owner:
            yield from self._after_dot(owner, word, document.text)
        elif word or complete_event.completion_requested:
            yield from _matching(word, self._words(document.text))

    def _for_command(self, text: str) -> Iterator[Completion]:
        command, space, rest = text.partition(" ")
        if not space:
            yield from _matching(command, [(name, "command") for name in self._commands])
        else:
            yield from _matching(rest, [(key, "table") for key in self._catalog.tables])

    def _after_dot(self, owner: str, part: str, text: str) -> Iterator[Completion]:
        """Columns of a table or of its alias, or tables of a schema."""
        schema = tuple(name.lower() for name in split_name(owner))
        tables = [
            (table.name, "table")
            for table in self._catalog.tables.values()
            if tuple(table.schema.lower().split(".")) == schema
        ]
        table = self._table_of(owner, text)
        columns = [(name, "column") for name in self._columns_of(table)] if table else []
        yield from _matching(part, [*columns, *tables])

    def _table_of(self, name: str, text: str) -> str | None:
        if name in self._catalog:
            return self._catalog[name].key
        pattern = rf"({_NAME}(?:\.{_NAME})*)\s+(?:as\s+)?{re.escape(name)}(?!\w)"
        for found in re.finditer(pattern, text, re.IGNORECASE):
            if found[1] in self._catalog:
                return self._catalog[found[1]].key
        return None

    def _words(self, text: str) -> list[tuple[str, str]]:
        named = {split_name(word)[0].lower() for word in _TOKEN.findall(text)}
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


def _last_name(before: str) -> tuple[str, str]:
    """The name that the cursor stands behind: all parts up to its last dot, and the last one.

    >>> _last_name('select a."my c'), _last_name("from sales.or"), _last_name('from "t" ')
    (('a', '"my c'), ('sales', 'or'), ('', ''))
    """
    parts: list[str] = []
    for token in reversed(_TOKEN.findall(before)):
        is_name = token != "." and (token[0] == '"' or token[0].isalnum() or token[0] == "_")
        if not (is_name or token == "."):
            break
        if is_name and parts and parts[-1] != ".":
            break
        parts.append(token)
    whole = parts[::-1]
    word = whole.pop() if whole and whole[-1] != "." else ""
    return "".join(whole[:-1]), word


def _matching(word: str, candidates: Iterable[tuple[str, str]]) -> Iterator[Completion]:
    """Names and keywords that begin like the word, with quotes where SQL needs them."""
    quoted = word.startswith('"')
    start = word.removeprefix('"').replace('""', '"').lower()
    for text, meta in candidates:
        if quoted and meta not in ("table", "column"):
            continue
        own = split_name(text)[-1] if meta == "table" and quoted else text
        written = written_name(text) if meta == "table" else text
        if meta == "column":
            written = plain_identifier(text)
        if not own.lower().startswith(start) or written == word:
            continue
        if quoted and not written.startswith('"'):
            written = identifier(own)
        if not meta and word.islower():
            written = written.lower()  # a keyword is written as its beginning is
        yield Completion(written, start_position=-len(word), display_meta=meta)
