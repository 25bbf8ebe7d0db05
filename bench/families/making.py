"""Tables made into a folder as Parquet: each file appears whole or not at all, and is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from .model import FamilyError, Progress

# A number in [0, 1) for a row and a column: the same in every run. `hash` of two values is of no
# use, as those of one row with different second values differ in the same bits everywhere.
MACROS = """
CREATE MACRO draw(i, salt) AS (hash(i * 64 + salt) >> 11)::DOUBLE / 9007199254740992.0;
CREATE MACRO zipf(i, salt, n) AS floor(exp(draw(i, salt) * ln(n + 1)))::BIGINT;
"""


def claim(folder: Path, family: str, size: float) -> None:
    """Note which family and size a folder holds, or see that it holds just that."""
    if not (math.isfinite(size) and size > 0):
        raise FamilyError(f"size {size!r}: must be a number above 0; 1 makes 0.3 to 1 GB")
    folder.mkdir(parents=True, exist_ok=True)
    note = _note(folder)
    asked = {"family": family, "size": size}
    if not note.exists():
        if any(folder.glob("*.parquet")):
            raise FamilyError(f"{folder}: holds tables of unknown origin; choose another folder")
        note.parent.mkdir(exist_ok=True)
        note.write_text(json.dumps(asked) + "\n", encoding="utf-8")
    elif (held := json.loads(note.read_text(encoding="utf-8"))) != asked:
        raise FamilyError(
            f"{folder}: holds {held['family']} at size {held['size']:g}, not {family} at "
            f"{size:g}; choose another folder, or remove this one"
        )


def size_of(folder: Path, family: str) -> float:
    """The size of the data that a folder holds."""
    try:
        held = json.loads(_note(folder).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FamilyError(
            f"{folder}: holds no data of {family}; make them with: "
            f"python -m bench.families {family} --data {folder}"
        ) from None
    if held["family"] != family:
        raise FamilyError(f"{folder}: holds {held['family']}, not {family}")
    return float(held["size"])


def missing(folder: Path, tables: Sequence[str]) -> list[str]:
    """Those that are still to be made."""
    return [table for table in tables if not (folder / f"{table}.parquet").exists()]


def write(connection: duckdb.DuckDBPyConnection, sql: str, file: Path) -> None:
    """Write the rows of a query to a Parquet file, as DuckDB does it by default."""
    made = file.with_name(f".{file.name}.part")
    connection.execute(f"COPY ({sql}) TO '{made}' (FORMAT parquet)")
    made.replace(file)


def make_tables(
    folder: Path, tables: Mapping[str, str], progress: Progress, before: str = ""
) -> None:
    """Make the tables that are not there, each from its query; `before` are statements to begin."""
    todo = missing(folder, list(tables))
    if todo:
        with duckdb.connect() as connection:
            connection.execute("SET enable_progress_bar = false;" + MACROS + before)
            for done, table in enumerate(todo):
                progress(done / len(todo), f"making {table}")
                write(connection, tables[table], folder / f"{table}.parquet")
    progress(1.0, "done")


def _note(folder: Path) -> Path:
    return folder / ".queryard" / "family.json"
