"""Samples in files, beside the statistics of the same table (see `store`).

The files are Arrow's own, uncompressed: to read a sample from Parquet takes many times as long.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from queryard.sql.catalog.model import Table

from .samples import TableSample
from .store import data_fingerprint, file_name, places, write_whole

FORMAT = 1
ENDING = ".arrow"
_ABOUT = b"queryard"


def save_sample(table: Table, sample: TableSample, folder: Path | None) -> TableSample:
    """Keep a sample; the same one, whose rows now lie in a file. OSError where none can be."""
    about = {
        "format": FORMAT,
        "table": table.key,
        "fingerprint": data_fingerprint(table),
        "rows": sample.rows,
        "rows_of_table": sample.rows_of_table,
        "how": sample.how,
    }
    frame = sample.frame()
    frame = frame.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
    written = pa.BufferOutputStream()
    with pa.ipc.new_file(written, frame.schema) as file:
        file.write_table(frame)
    data = written.getvalue().to_pybytes()
    among = places(table, folder)
    for place in among:
        try:
            path = write_whole(place, file_name(table, ENDING), data)
        except OSError:
            if place == among[-1]:
                raise
        else:
            return replace(sample, frame=partial(_rows, path))
    raise AssertionError("there is always a place")


def load_sample(table: Table, folder: Path | None) -> TableSample | None:
    """The sample that is kept of a table and still true, or None. Its rows are read when asked."""
    for place in places(table, folder):
        path = place / file_name(table, ENDING)
        try:
            with pa.OSFile(str(path)) as file:
                about = json.loads(pa.ipc.open_file(file).schema.metadata[_ABOUT])
            if about["format"] != FORMAT or about["fingerprint"] != data_fingerprint(table):
                continue
            return TableSample(
                table.key,
                table.fingerprint,
                table.columns,
                int(about["rows"]),
                float(about["rows_of_table"]),
                about["how"],
                partial(_rows, path),
            )
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
            continue  # not there, or not whole: it is drawn again
    return None


def _rows(path: Path) -> Any:
    # The file is mapped, and no byte of it copied; it is never changed, but replaced as a whole.
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()
