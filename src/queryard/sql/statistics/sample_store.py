"""Samples in files: Parquet, beside the statistics of the same table (see `store`)."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from queryard.sql.catalog.model import Table

from .samples import TableSample
from .store import data_fingerprint, file_name, places, write_whole

FORMAT = 2
_ABOUT = b"queryard"


def save_sample(table: Table, sample: TableSample, folder: Path | None) -> TableSample:
    """Keep a sample; the same one, whose rows now lie in a file. OSError where none can be."""
    about = {
        "format": FORMAT,
        "table": table.key,
        "fingerprint": data_fingerprint(table),
        "rows_of_table": sample.rows_of_table,
        "how": sample.how,
    }
    frame = sample.frame()
    frame = frame.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
    written = io.BytesIO()
    pq.write_table(frame, written, compression="zstd")
    among = places(table, folder)
    for place in among:
        try:
            file = write_whole(place, file_name(table, ".parquet"), written.getvalue())
        except OSError:
            if place == among[-1]:
                raise
        else:
            return replace(sample, frame=partial(_rows, file))
    raise AssertionError("there is always a place")


def load_sample(table: Table, folder: Path | None) -> TableSample | None:
    """The sample that is kept of a table and still true, or None. Its rows are read when asked."""
    for place in places(table, folder):
        file = place / file_name(table, ".parquet")
        try:
            footer = pq.read_metadata(file)
            about = json.loads(footer.metadata[_ABOUT])
            if about["format"] != FORMAT or about["fingerprint"] != data_fingerprint(table):
                continue
            return TableSample(
                table.key,
                table.fingerprint,
                table.columns,
                footer.num_rows,
                float(about["rows_of_table"]),
                about["how"],
                partial(_rows, file),
            )
        except (OSError, pa.ArrowException, KeyError, TypeError, ValueError):
            continue  # not there, or not whole: it is drawn again
    return None


def _rows(file: Path) -> Any:
    return pq.ParquetFile(file).read(use_threads=False)
