"""Statistics without reading data: from footers, and guesses."""

from __future__ import annotations

import datetime
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.sql.catalog import open_catalog
from queryard.sql.statistics import Histogram, StatisticsError


def test_footers(tmp_path):
    luck = random.Random(3)
    rows = 20_000
    frame = pa.table(
        {
            "key": range(rows),
            "flag": [luck.choice(["N", "A", "R"]) for _ in range(rows)],
            "day": [datetime.date(2024, 1, 1 + luck.randrange(30)) for _ in range(rows)],
            "comment": [f"{luck.random()} {luck.random()}" for _ in range(rows)],
            "half": [None if i % 2 else luck.random() for i in range(rows)],
            "nested": [{"x": i} for i in range(rows)],
            "raw": [b"x"] * rows,
        }
    )
    pq.write_table(frame, tmp_path / "t.parquet", row_group_size=2_000)
    found = open_catalog(tmp_path).statistics("t")
    assert (found.source, found.rows) == ("footers", rows)
    columns = found.columns
    assert (columns["key"].min, columns["key"].max) == (0, rows - 1)
    assert columns["key"].distinct == rows
    assert columns["key"].clustered is True
    assert columns["flag"].distinct < 20
    assert columns["flag"].clustered is False
    assert columns["day"].distinct <= 30
    assert columns["day"].max == datetime.date(2024, 1, 30)
    assert columns["comment"].distinct > rows / 2
    assert columns["comment"].average_width_bytes == pytest.approx(38, abs=6)
    assert columns["half"].null_share == 0.5
    assert columns["nested"].min is columns["raw"].min is None
    assert found.average_width_bytes > 0


def test_footers_without_statistics(tmp_path):
    frame = pa.table({"a": [3, 1, None], "t": ["x", "y", "z"]})
    pq.write_table(frame, tmp_path / "t.parquet", write_statistics=False)
    found = open_catalog(tmp_path).statistics("t")
    assert found.rows == 3
    assert (found.columns["a"].min, found.columns["a"].clustered) == (None, None)
    assert 1 <= found.columns["a"].distinct <= 3


def test_partition_columns_are_known_from_their_folders(tmp_path):
    for year in (2022, 2023, 2024):
        folder = tmp_path / "t" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"a": [1]}), folder / "x.parquet")
    year = open_catalog(tmp_path).statistics("t").columns["year"]
    assert (year.min, year.max, year.distinct, year.clustered) == (2022, 2024, 3, True)


def test_guesses_go_by_size(tmp_path):
    lines = "".join(f"{i},name {i},{i * 1.5}\n" for i in range(10_000))
    (tmp_path / "t.csv").write_text("id,name,x\n" + lines)
    found = open_catalog(tmp_path).statistics("t")
    assert found.source == "guessed"
    assert 3_000 < found.rows < 30_000
    assert set(found.columns) == {"id", "name", "x"}


def test_frames_know_rows_and_nulls():
    frame = pa.table({"a": [1, None, None, 4], "t": ["abc", "d", None, "x"]})
    found = open_catalog(tables={"t": frame}).statistics("t")
    assert found.rows == 4
    assert found.columns["a"].null_share == 0.5


def test_reading_a_histogram():
    histogram = Histogram(0.0, 10.0, (10.0, 0.0, 5.0, 5.0), (2.0, 0.0, 5.0, 1.0))
    assert histogram.total == 20
    assert histogram.count_below(-1) == histogram.count_below(0) == 0
    assert histogram.count_below(1.25) == 5
    assert histogram.count_below(5) == 10
    assert histogram.count_below(10) == histogram.count_below(11) == 20
    one = Histogram(3.0, 3.0, (8.0,), (1.0,))
    assert (one.count_below(3), one.count_below(4)) == (0, 8)


@pytest.mark.parametrize("shape", [(0, 1, (), ()), (0, 1, (1,), ()), (1, 0, (1,), (1,))])
def test_histograms_that_cannot_be(shape):
    with pytest.raises(StatisticsError):
        Histogram(*shape)
