"""Samples of tables, kept with the statistics, and what is judged on them."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.statistics.distinct import Seen, from_pieces
from queryard.sql.statistics.drawing import ROWS, draw
from queryard.sql.statistics.judge import Judge, Share
from queryard.sql.statistics.quick import sample_table, small_instance
from queryard.sql.statistics.sample_store import load_sample, save_sample
from queryard.sql.statistics.samples import TableSample

LARGE = """
    SELECT i AS id, i // 4 AS order_id, i % 7 AS week_day, 'name ' || (i % 1000) AS name,
        i % 7 < 3 AS early, [i % 3, 1] AS list,
        {'a': i, 'b, c': MAP {'x': [i % 3]}} AS nested, CAST(i AS HUGEINT) AS huge, uuid() AS u
    FROM range(200000) t(i)"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("samples")
    connection = duckdb.connect()
    connection.execute(f"COPY ({LARGE}) TO '{place}/large.parquet' (ROW_GROUP_SIZE 10000)")
    connection.execute(f"COPY (SELECT 1 AS a, NULL AS b) TO '{place}/tiny.parquet'")
    connection.execute(f"COPY (FROM range(300) t(i)) TO '{place}/text.csv'")
    connection.execute(
        f"COPY (SELECT i, 'some text ' || i AS s FROM range(600000) t(i)) TO '{place}/long.csv'"
    )
    with duckdb.connect(f"{place}/base.duckdb") as base:
        base.execute(f"CREATE TABLE t AS {LARGE}")
        base.execute("CREATE VIEW v AS SELECT 1 AS a")
    return place


@pytest.fixture(scope="module")
def catalog(folder, tmp_path_factory) -> Catalog:
    place = tmp_path_factory.mktemp("statistics")
    return open_catalog(folder, {"frame": pa.table({"x": range(50_000)})}, statistics=place)


def sampled(catalog: Catalog, key: str) -> TableSample:
    return sample_table(catalog, key)


def test_a_sample_is_spread_over_the_table(catalog):
    sample = sampled(catalog, "large")
    assert (sample.how, sample.rows_of_table) == ("spread", 200_000)
    assert 0.9 * ROWS <= sample.rows <= ROWS
    ids = sample.frame().column("id").to_pylist()
    assert len(set(ids)) == sample.rows  # no row twice
    assert min(ids) < 20_000
    assert max(ids) > 180_000


def test_small_tables_are_sampled_whole_and_judged_exactly(catalog):
    assert sampled(catalog, "tiny").exact
    assert sampled(catalog, "text").exact
    assert catalog.judge.share("text", "i < 30") == Share(30, 300, exact=True)
    assert catalog.judge.share("text", "i < 0").share == 0


def test_of_a_long_text_the_first_rows_are_taken_and_its_rows_extrapolated(catalog):
    sample = sampled(catalog, "long")
    assert sample.how == "first"
    assert sample.rows_of_table == pytest.approx(600_000, rel=0.2)


def test_tables_of_databases_and_frames_are_sampled(catalog):
    for key in ("base.t", "frame"):
        sample = sampled(catalog, key)
        assert sample.how == "spread"
        assert 0.5 * ROWS <= sample.rows <= 1.5 * ROWS
    assert catalog.judge.share("base.t", "week_day = 0").share == pytest.approx(1 / 7, rel=0.1)
    assert catalog.judge.share("frame", "x < 10000").share == pytest.approx(0.2, rel=0.01)


def test_conditions_are_judged_together(catalog):
    sampled(catalog, "large")
    judge = catalog.judge
    assert judge.share("large", "week_day = 1").share == pytest.approx(1 / 7, rel=0.1)
    # As if independent this would be 3/49.
    assert judge.share("large", "week_day = 1 AND early").share == pytest.approx(1 / 7, rel=0.1)
    assert judge.share("large", "name LIKE '%99'").share == pytest.approx(0.01, rel=0.3)
    none = judge.share("large", "week_day = 9")
    assert (none.matches, none.share) == (0, 0.5 / none.rows)


@pytest.mark.parametrize(
    "condition", ["nosuch = 1", "nosuch(id)", "id IN (SELECT 1)", "(", "id; DROP TABLE x", "name"]
)
def test_what_cannot_be_judged_is_none(catalog, condition):
    sampled(catalog, "large")
    assert catalog.judge.share("large", condition) is None


def test_no_sample_no_judgement(folder, tmp_path):
    catalog = open_catalog(folder, statistics=tmp_path)
    assert catalog.sample("large") is None
    assert catalog.judge.share("large", "true") is None
    assert catalog.judge.share("no such table", "true") is None


def test_values_of_all_types_come_back(catalog):
    sampled(catalog, "large")
    judge = catalog.judge
    assert judge.share("large", "huge % 2 = 0").share == pytest.approx(0.5, rel=0.05)
    assert judge.share("large", "u IS NOT NULL AND list[1] = 0").share == pytest.approx(1 / 3, 0.1)
    assert judge.share("large", "nested.a = id AND nested['b, c']['x'][1] = list[1]").share == 1
    assert judge.mean_width("large", "u") == 16
    assert judge.mean_width("large", "name || 'x'") == pytest.approx(8.9, abs=0.1)


@pytest.mark.parametrize(
    ("expressions", "true"),
    [
        (["id"], 200_000),
        (["order_id"], 50_000),
        (["week_day"], 7),
        (["name"], 1000),
        (["week_day", "early"], 7),
        (["week_day", "name"], 7000),
        (["id % 5000"], 5000),
    ],
)
def test_distinct_combinations_of_the_table(catalog, expressions, true):
    sampled(catalog, "large")
    assert catalog.judge.distinct("large", expressions) == pytest.approx(true, rel=0.1)


def test_a_sample_is_kept_and_found_again_until_its_files_change(folder, tmp_path):
    connection = duckdb.connect()
    connection.execute(f"COPY (FROM range(30000) t(i)) TO '{tmp_path}/t.parquet'")
    catalog = open_catalog(tmp_path)
    sample = sample_table(catalog, "t")
    assert sample_table(catalog, "t") is sample
    again = open_catalog(tmp_path).sample("t")
    assert again is not None
    assert again.frame().equals(sample.frame())
    assert again.rows_of_table == 30_000
    connection.execute(f"COPY (FROM range(9) t(i)) TO '{tmp_path}/t.parquet'")
    catalog.refresh()
    assert catalog.sample("t") is None
    assert load_sample(catalog["t"], catalog.statistics_folder) is None


def test_where_nothing_can_be_written_a_sample_stays_in_memory(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    catalog = open_catalog(folder, statistics=tmp_path / "file" / "statistics")
    sample = sample_table(catalog, "large")
    assert catalog.sample("large") is sample
    assert catalog.judge.share("large", "early").share == pytest.approx(3 / 7, rel=0.1)


def test_a_broken_file_is_no_sample(folder, tmp_path):
    catalog = open_catalog(folder, statistics=tmp_path)
    save_sample(catalog["tiny"], draw(catalog, catalog["tiny"], small_instance), tmp_path)
    (file,) = tmp_path.glob("*.arrow")
    file.write_bytes(b"ARROW1 something else")
    assert catalog.sample("tiny") is None


def test_a_sample_of_wide_rows_is_of_fewer_rows(tmp_path):
    text = "md5(i::VARCHAR) || repeat('x', 20000)"
    duckdb.execute(f"COPY (SELECT {text} AS s FROM range(3000) t(i)) TO '{tmp_path}/t.parquet'")
    catalog = open_catalog(tmp_path)
    sample = draw(catalog, catalog["t"], small_instance)
    assert sample.rows < 1500
    assert sample.frame().nbytes < 20 * 2**20


@given(st.lists(st.integers(1, 80), min_size=1, max_size=200), st.floats(1, 1e4))
def test_distinct_values_of_the_table_are_no_fewer_than_seen_and_no_more_than_rows(counts, factor):
    pieces = [min(n, 16) for n in counts]
    rare = [n for n in counts if n <= 50]
    seen = Seen(
        len(counts),
        sum(counts),
        counts.count(1),
        pieces.count(1),
        sum(pieces),
        sum(16 * (1 - (15 / 16) ** n) for n in counts),
        len(rare),
        sum(rare),
        sum(n * (n - 1) for n in rare),
    )
    rows = sum(counts) * factor
    assert len(counts) <= from_pieces(seen, rows) <= rows + 1e-6


@given(st.integers(1, 1000), st.data())
def test_the_interval_holds_the_share(rows, data):
    share = Share(data.draw(st.integers(0, rows)), rows, exact=data.draw(st.booleans()))
    low, high = share.interval()
    assert 0 <= low <= share.share <= high <= 1


def test_a_judge_that_can_read_no_rows_says_nothing():
    def rows():
        raise OSError("gone")

    judge = Judge(lambda key: TableSample(key, "1", (), 1, 1.0, "whole", rows))
    assert judge.share("t", "true") is None


def test_frequent_values_of_rows_that_match(catalog):
    def frequent(condition: str = "", own: str = "") -> dict[object, float]:
        found = catalog.judge.frequent("large", "week_day", condition, own)
        assert found is not None
        return dict(found)

    evenly = dict.fromkeys(range(7), 1 / 7)
    assert frequent() == pytest.approx(evenly, rel=0.1)
    # Hardly a row of the sample matches: that says nothing of single values.
    assert frequent("id % 9973 = 0") == pytest.approx(evenly, rel=0.5)
    # What reads the value alone drops it or keeps it, however few rows match the rest.
    few = frequent("week_day < 2 AND id % 997 = 0", "week_day < 2")
    assert few == {0: pytest.approx(0.5, rel=0.4), 1: pytest.approx(0.5, rel=0.4)}
    assert sum(few.values()) <= 1
    # Enough rows say themselves which values are kept.
    assert sum(frequent("early").get(day, 0.0) for day in range(3)) > 0.95


def test_of_a_table_sampled_whole_frequent_values_are_those_of_the_rows_that_match(catalog):
    found = catalog.judge.frequent("text", "i % 3", "i < 30 AND i % 3 > 0")
    assert found == {1: 0.5, 2: 0.5}
