"""What a user of a catalog can do about a message of DuckDB's.

DuckDB advises what to write in a call of `read_csv`. A query of a table of a catalog has no such
call: the remedy is an option of the table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_COLUMN = re.compile(r'Error when converting column "(.+)"\. Could not convert')
_FILE = re.compile(r"^  file = (.+)$", re.MULTILINE)
_NOT_UTF8 = "This file is not utf-8 encoded."
# A catalog says how files are written with every read; a user's own call rarely says all of it.
_OURS = re.compile(r"^  delimiter = .*\(Set By User\)\n  quote = .*\(Set By User\)", re.MULTILINE)
_JSON_TYPE = re.compile(r'^(.*JSON transform error in file "[^\n]*)\nTry setting [^\n]*', re.DOTALL)
_MISSING = (
    re.compile(r'because (?:schema|catalog) "(.+?)" does not exist'),
    re.compile(r"Table with name (\S+) does not exist!"),
    re.compile(r'(?:Schema|Catalog) (?:with name )?"?(\w+)"? does not exist'),
)


_PLACE = "in a catalog file, under the table (or in `tables=`)"
_REMEDIES = (
    (
        re.compile(r"Expected Number of Columns: \d+ Found: \d+"),
        "ignore_errors = true leaves out such lines, null_padding = true ends short ones in NULLs",
    ),
    (
        re.compile("unterminated quote"),
        "strict_mode = false reads such lines as well as possible, ignore_errors = true leaves "
        'them out, quote = "" takes quotes for ordinary signs',
    ),
    (
        re.compile("not possible to automatically detect the CSV parsing"),
        "delimiter, quote, escape, skip, header and columns say how the file is written; "
        "strict_mode = false and null_padding = true allow for irregular lines",
    ),
    (
        re.compile("Maximum line size of"),
        "maximum_line_size = 10000000 (bytes) allows for longer lines; so may another quote",
    ),
    (re.compile("Option filename adds column"), 'filename = "file" gives the column another name'),
    (re.compile("Malformed JSON"), "ignore_errors = true reads such lines as NULL"),
)
_SHOWN = 200  # signs of a line of a message


def way_out(message: str) -> str:
    """The option of a table in a catalog that helps, as a sentence; "" if there is none.

    >>> way_out('Error when converting column "v". Could not convert string "x" to BIGINT')
    'Name its type in a catalog file, under the table (or in `tables=`): types = { v = "VARCHAR" }'
    """
    if _NOT_UTF8 in message:
        return f'Name its encoding {_PLACE}: encoding = "latin-1"'
    if (found := _COLUMN.search(message)) is not None:
        name = found[1] if found[1].isidentifier() and found[1].isascii() else f'"{found[1]}"'
        return f'Name its type {_PLACE}: types = {{ {name} = "VARCHAR" }}'
    for problem, remedy in _REMEDIES:
        if problem.search(message) is not None:
            return f"A remedy {_PLACE}: {remedy}"
    return ""


def without_fixes(message: str) -> str:
    """A message without DuckDB's advice, settings and search space, long lines cut.

    >>> without_fixes("CSV Error on Line: 3\\nPossible fixes:\\n* none\\n\\n  file = a.csv")
    'CSV Error on Line: 3'
    """
    lines = []
    for line in message.splitlines():
        if line.startswith(("Possible ", "The search space used", "Column ", "  file = ")):
            break
        if line:
            lines.append(line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…")
    return "\n".join(lines)


def with_way_out(message: str) -> str:
    """A message about the rows of a table, with advice that applies to tables of a catalog.

    Messages about anything else, and about a call of `read_csv` in the statement, stay as they are.
    """
    if (found := _JSON_TYPE.match(message)) is not None:
        return (
            f"{found[1]}\nName the type of the column {_PLACE}: "
            'types = { name = "VARCHAR" }, or as `columns` of read_json'
        )
    advice = way_out(message)
    if not advice or _OURS.search(message) is None:
        return message
    lines = [without_fixes(message)]
    if (file := _FILE.search(message)) is not None:
        lines.append(f"File: {file[1]}")
    return "\n".join([*lines, advice])


def with_passed_over(message: str, skipped: Iterable[tuple[str, str]]) -> str:
    """A message about a table that is not there, with what may have been meant and is none.

    >>> missing = "Catalog Error: Table with name old does not exist!"
    >>> print(with_passed_over(missing, [("/data/old.duckdb", "is not a DuckDB database file")]))
    Catalog Error: Table with name old does not exist!
    passed over: /data/old.duckdb, which is not a DuckDB database file
    """
    # Of a name with dots, the first part is the database or the folder.
    names = {
        found[1].lower().split(".")[0]
        for wanted in _MISSING
        if (found := wanted.search(message)) is not None
    }
    lines = [
        passed_over(place, reason)
        for place, reason in skipped
        if Path(place).stem.lower() in names and place not in message
    ]
    return "\n".join([message, *lines])


def passed_over(place: str, reason: str) -> str:
    """What is said of a place that looked like data; the reason is the rest of a sentence."""
    return f"passed over: {place}, which {reason}"
