"""Tables of TPC-H in several row groups, so that staged queries have several maps."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from queryard.workload.tpch import TABLES, generate


def split_tpch(folders: pytest.TempPathFactory, scale: float) -> Path:
    """A folder with the tables at this scale, each in four row groups."""
    made, split = folders.mktemp("tpch"), folders.mktemp("split")
    generate(made, scale)
    for name in TABLES:
        table = pq.read_table(made / f"{name}.parquet")
        rows = max(table.num_rows // 4, 1)
        pq.write_table(table, split / f"{name}.parquet", row_group_size=rows)
    return split
