"""A history as Parquet files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from history_samples import record

from queryard.history import HistoryError, HistoryReader, export, schema


def test_every_table_becomes_a_file_with_all_its_rows(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "CHUNK", 7)  # several chunks per table
    record(file, queries=20)
    with HistoryReader(file) as reader:
        rows = reader.export(tmp_path / "new" / "out")
        queries = reader.queries()
    out = tmp_path / "new" / "out"
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{table}.parquet" for table in schema.COLUMNS
    )
    assert (rows["asked"], rows["steps"], rows["tasks"], rows["leases"]) == (20, 81, 0, 40)
    for name, number in rows.items():
        found = pq.read_table(out / f"{name}.parquet")
        assert found.num_rows == number
        assert found.column_names == schema.COLUMNS[name].split(", ")
    asked = pq.read_table(out / "asked.parquet")
    assert asked["query"].to_pylist() == [row.query for row in queries]
    assert str(asked.schema.field("deadline_s").type) == "double"
    assert asked["deadline_s"].null_count == 20


def test_an_earlier_export_is_replaced(file: Path, tmp_path: Path) -> None:
    record(file)
    with HistoryReader(file) as reader:
        reader.export(tmp_path / "out")
    record(file, "s2")
    with HistoryReader(file) as reader:
        reader.export(tmp_path / "out")
    assert pq.read_table(tmp_path / "out" / "asked.parquet").num_rows == 2


def test_a_place_that_cannot_be_written_is_named(file: Path, tmp_path: Path) -> None:
    record(file)
    (tmp_path / "file").write_text("in the way")
    with HistoryReader(file) as reader:
        with pytest.raises(HistoryError, match=r"file.*name another"):
            reader.export(tmp_path / "file")
        assert len(reader.queries()) == 1
