"""Statistics in files: JSON, one per table, with the fingerprint of the data they were taken from.

They lie in a folder beside the catalog. Where that cannot be written to, they go to the cache of
the user (`$XDG_CACHE_HOME/queryard`, `~/.cache/queryard`), in a folder of the catalog's own. Both
are looked at; only statistics of files that are as they were are used.
"""

from __future__ import annotations

import datetime
import errno
import hashlib
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from queryard.sql.catalog.formats import basename
from queryard.sql.catalog.model import Table, combined_fingerprint

from .model import ColumnStatistics, Histogram, StatisticsError, TableStatistics

FORMAT = 1


class StatisticsWarning(UserWarning):
    """Statistics that are there and cannot be used."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Statistics as they were kept; `sample` is the share of the rows that was read."""

    statistics: TableStatistics
    sample: float


def data_fingerprint(table: Table) -> str:
    """Of the files by their names (a catalog may be moved with its data), columns and options."""
    files = (f"{basename(file.uri)} {file.fingerprint}" for file in table.files)
    columns = (f"{c.name} {c.type}" for c in table.columns)
    return combined_fingerprint([*files, *columns, *table.given_options])


def load(table: Table, folder: Path | None) -> Stored | None:
    """What is kept of a table and still true, or None. A broken file is a warning."""
    for place in places(table, folder):
        file = place / file_name(table, ".json")
        try:
            text = file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, UnicodeDecodeError) as error:
            _warn(file, str(error))
            continue
        try:
            found = _decode(text, data_fingerprint(table))
        except (ValueError, KeyError, TypeError, AttributeError, StatisticsError) as error:
            _warn(file, f"{type(error).__name__}: {error}")
            continue
        if found is not None:
            return found
    return None


def save(table: Table, stored: Stored, folder: Path | None) -> Path:
    """Keep statistics; the file that holds them now. It appears whole or not at all."""
    text = json.dumps(_encode(table, stored), indent=1) + "\n"
    among = places(table, folder)
    for place in among:
        try:
            return write_whole(place, file_name(table, ".json"), text.encode())
        except OSError as error:
            if error.errno == errno.ENOSPC or place == among[-1]:
                reason = error.strerror or str(error)
                raise StatisticsError(
                    f"{place}: the statistics of {table.key} cannot be kept there ({reason}); "
                    "name another folder for statistics"
                ) from error
    raise AssertionError("there is always a place")


def cache_folder() -> Path:
    """Where this user's programs keep what can be made again."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given, "queryard")
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local, "queryard", "cache")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "queryard"
    return Path.home() / ".cache" / "queryard"


def places(table: Table, folder: Path | None, what: str = "statistics") -> list[Path]:
    """Beside the catalog, then in the cache, under a name that belongs to that place.

    `what` is kept there: each kind has its own folder in the cache.
    """
    if folder is not None:
        owner = str(folder)
    else:
        owner = "\n".join(file.uri for file in table.files)
    own = hashlib.sha256(owner.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    cached = cache_folder() / what / own
    return [cached] if folder is None else [folder, cached]


def file_name(table: Table, ending: str) -> str:
    """A name that says of which table the file is, also where the table's is no name of a file."""
    key = table.key.lower()
    readable = re.sub(r"[^a-z0-9_.-]+", "_", key)[:60]
    return f"{readable}-{hashlib.sha256(key.encode()).hexdigest()[:8]}{ending}"


def write_whole(place: Path, name: str, data: bytes) -> Path:
    """Write a file that appears whole or not at all."""
    place.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}-", dir=place)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, place / name)
    except BaseException:
        os.unlink(temporary)
        raise
    return place / name


def _warn(file: Path, reason: str) -> None:
    warnings.warn(
        f"{file}: the statistics cannot be used ({reason}); analyze the table again",
        StatisticsWarning,
        stacklevel=4,
    )


def _encode(table: Table, stored: Stored) -> Mapping[str, object]:
    found = stored.statistics
    return {
        "format": FORMAT,
        "table": table.key,
        "fingerprint": data_fingerprint(table),
        "sample": stored.sample,
        "rows": found.rows,
        "bytes": found.bytes,
        "columns": {name: _encode_column(column) for name, column in found.columns.items()},
    }


def _encode_column(column: ColumnStatistics) -> Mapping[str, object]:
    histogram = column.histogram
    return {
        "null_share": column.null_share,
        "min": _encode_value(column.min),
        "max": _encode_value(column.max),
        "distinct": column.distinct,
        "average_width_bytes": column.average_width_bytes,
        "clustered": column.clustered,
        "histogram": None
        if histogram is None
        else {
            "low": histogram.low,
            "high": histogram.high,
            "counts": histogram.counts,
            "distincts": histogram.distincts,
        },
    }


def _decode(text: str, fingerprint: str) -> Stored | None:
    data = json.loads(text)
    if data["format"] != FORMAT:
        raise ValueError(f"format {data['format']!r}, this version reads {FORMAT}")
    if data["fingerprint"] != fingerprint:
        return None
    columns = {name: _decode_column(column) for name, column in data["columns"].items()}
    found = TableStatistics(float(data["rows"]), float(data["bytes"]), columns, "analysed")
    return Stored(found, float(data["sample"]))


def _decode_column(data: Mapping[str, Any]) -> ColumnStatistics:
    shape = data["histogram"]
    histogram = None
    if shape is not None:
        counts = tuple(map(float, shape["counts"]))
        distincts = tuple(map(float, shape["distincts"]))
        histogram = Histogram(float(shape["low"]), float(shape["high"]), counts, distincts)
    return ColumnStatistics(
        float(data["null_share"]),
        _decode_value(data["min"]),
        _decode_value(data["max"]),
        float(data["distinct"]),
        float(data["average_width_bytes"]),
        histogram,
        data["clustered"],
    )


_FROM_TEXT: Mapping[str, Callable[[str], object]] = {
    "decimal": Decimal,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
}


def _encode_value(value: object) -> object:
    """JSON has no dates and decimals: they carry the name of their type."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    for kind in (datetime.datetime, datetime.date, datetime.time):  # a datetime is a date too
        if isinstance(value, kind):
            return {kind.__name__: value.isoformat()}
    return None


def _decode_value(value: Any) -> object:
    if isinstance(value, Mapping):
        ((kind, text),) = value.items()
        return _FROM_TEXT[kind](text)
    return value
