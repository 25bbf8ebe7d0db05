"""What the name of a file says: its format, its table, and whether it is a part of something.

>>> format_of("orders.csv.gz"), format_of("orders.pq"), format_of("notes.txt")
('csv', 'parquet', None)
>>> stem("/data/orders.csv.gz")
'orders'
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal
from urllib.parse import unquote

Format = Literal["parquet", "csv", "json", "database"]

ENDINGS: Mapping[str, Format] = {
    ".parquet": "parquet",
    ".parq": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".duckdb": "database",
    ".ddb": "database",
}
COMPRESSIONS = (".gz", ".zst")
"""Endings after the ending of a text format; DuckDB decompresses by them."""

ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
NO_ARROW = (
    "is an Arrow file, which is no table; write it as Parquet, or register it in Python: "
    "tables={name: pyarrow.feather.read_table(path)}"
)

HIVE_NULLS = ("__HIVE_DEFAULT_PARTITION__", "NULL")

_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_NUMBERING = re.compile(rf"{_UUID}|c?[0-9]+|[-_. ]+", re.IGNORECASE)
_PLAIN_PART_NAMES = frozenset({"", "part", "data", "file", "chunk", "split", "partof"})


def basename(uri: str) -> str:
    """The last part of a path or URI."""
    return re.split(r"[/\\]" if "\\" in uri and "/" not in uri else "/", uri.rstrip("/"))[-1]


def format_of(uri: str) -> Format | None:
    """The format the ending stands for, or None."""
    name = basename(uri).lower()
    for compression in COMPRESSIONS:
        if name.endswith(compression):
            found = _ending(name.removesuffix(compression))
            return found if found in ("csv", "json") else None
    return _ending(name)


def is_arrow(uri: str) -> bool:
    """Whether the ending says that a file holds Arrow's own format, which DuckDB does not read."""
    return basename(uri).lower().endswith(ARROW_ENDINGS)


def is_tab_separated(uri: str) -> bool:
    """Whether the ending says that columns are separated by tabs."""
    return ".tsv" in _endings(basename(uri).lower())


def stem(uri: str) -> str:
    """The name of a file without the endings that tell its format: the name of its table."""
    name = basename(uri)
    for ending in _endings(name.lower()):
        name = name[: -len(ending)]
    return name


def looks_like_parts(names: Sequence[str], folder: str) -> bool:
    """Whether files of these stems are parts of one table in a folder.

    Several are, if they differ in numbers (or UUIDs) only. One by itself is, if it has a number, is
    called like the folder, or has a name such as `part` or `data`.

    >>> looks_like_parts(["part-00000-c000", "part-00001-c000"], "events")
    True
    >>> looks_like_parts(["lineitem.1", "lineitem.2"], "lineitem")
    True
    >>> looks_like_parts(["orders", "customers"], "sales")
    False
    >>> looks_like_parts(["orders"], "sales"), looks_like_parts(["orders"], "orders")
    (False, True)
    """
    rests = {_NUMBERING.sub("", name).lower() for name in names}
    if len(rests) != 1:
        return False
    if len(set(names)) > 1:
        return True
    rest = rests.pop()
    numbered = re.search("[0-9]", names[0]) is not None
    return numbered or rest in _PLAIN_PART_NAMES or names[0].lower() == folder.lower()


def hive_keys(uri: str) -> tuple[str, ...]:
    """The names of the `key=value` folders a file lies in, from the outermost on.

    >>> hive_keys("/data/sales/year=2024/month=1/x.parquet")
    ('year', 'month')
    """
    folders = uri.split("/")[:-1]
    return tuple(folder.partition("=")[0] for folder in folders if is_hive_folder(folder))


def is_hive_folder(name: str) -> bool:
    """Whether the name of a folder is `key=value`."""
    key, equals, value = name.partition("=")
    return bool(key and equals and value) and "=" not in value


def hive_values(uris: Iterable[str], key: str) -> set[str | None]:
    """The values a key takes in the folders of these files; None for the folder of nulls.

    >>> hive_values(["/data/k=a%20b/1.csv", "/data/k=null/1.csv"], "k") == {"a b", None}
    True
    """
    found: set[str | None] = set()
    for uri in uris:
        for folder in uri.split("/")[:-1]:
            if is_hive_folder(folder) and folder.partition("=")[0] == key:
                value = folder.partition("=")[2]
                found.add(None if value.upper() in HIVE_NULLS else unquote(value))
    return found


def is_hidden(name: str) -> bool:
    """Files and folders that are not data: `.x`, and `_x` of other systems (not `_k=v`)."""
    return name.startswith(".") or (name.startswith("_") and not is_hive_folder(name))


def _ending(name: str) -> Format | None:
    for ending, found in ENDINGS.items():
        if name.endswith(ending) and name != ending:
            return found
    return None


def _endings(name: str) -> list[str]:
    """The endings that tell the format, last first."""
    found = []
    for compression in COMPRESSIONS:
        if name.endswith(compression) and format_of(name) is not None:
            found.append(compression)
            name = name.removesuffix(compression)
    for ending in ENDINGS:
        if name.endswith(ending) and name != ending:
            found.append(ending)
            break
    return found
