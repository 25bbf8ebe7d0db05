"""What `analyze` finds, against what is really in the data."""

from __future__ import annotations

import datetime
import math
import random
import shutil
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from long_forms import examples, some_of

from queryard.sql.catalog import open_catalog
from queryard.sql.statistics import NotAllAnalysed, StatisticsError, analyze, position
from queryard.sql.statistics import columns as analysing
from queryard.sql.statistics.distinct import distinct_values, sketch_sql

SLOW = settings(max_examples=examples(25), deadline=None, suppress_health_check=list(HealthCheck))
VALUES = {
    pa.int64(): st.integers(-(2**62), 2**62),
    pa.int32(): st.integers(-20, 20),
    pa.uint8(): st.integers(0, 255),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32, allow_nan=True),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(alphabet="abé'\"", max_size=4),
    pa.binary(): st.binary(max_size=3),
    pa.date32(): st.dates(datetime.date(1900, 1, 1), datetime.date(2200, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(
        datetime.datetime(1900, 1, 1),
        datetime.datetime(2200, 1, 1),
        timezones=st.just(datetime.UTC),
    ),
    pa.time64("us"): st.times(),
    pa.decimal128(10, 2): st.decimals(-1000, 1000, places=2),
    pa.list_(pa.int64()): st.lists(st.integers(0, 3), max_size=2),
    pa.struct({"x": pa.int64()}): st.fixed_dictionaries({"x": st.integers(0, 3)}),
}


@st.composite
def columns(draw):
    kind = draw(st.sampled_from(list(VALUES)))
    return pa.array(draw(st.lists(st.none() | VALUES[kind], max_size=60)), kind)


def analysed(frame):
    return analyze(open_catalog(tables={"t": frame}))["t"]


@SLOW
@given(columns())
def test_any_column(column):
    found = analysed(pa.table({"c": column}))
    present = [repr(value) for value in column.to_pylist() if value is not None]
    assert found.rows == len(column)
    assert found.source == "analysed"
    statistics = found.columns["c"]
    if len(column):
        assert statistics.null_share == pytest.approx(1 - len(present) / len(column))
    values = {None if v is None else "0.0" if v in ("-0.0", "0.0") else v for v in present}
    assert statistics.distinct == len(values)
    histogram = statistics.histogram
    if histogram is not None:
        assert histogram.total == len(present)
        assert sum(histogram.distincts) == len(values)
        assert len(histogram) <= 64
        for count, distinct in zip(histogram.counts, histogram.distincts, strict=True):
            assert distinct <= count
        assert histogram.low == position(statistics.min)
        assert histogram.high == position(statistics.max)


@SLOW
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=300))
def test_buckets_hold_the_values_of_their_ranges(values):
    histogram = analysed(pa.table({"c": values})).columns["c"].histogram
    for number, count in enumerate(histogram.counts):
        low = histogram.low + number * histogram.width
        high = low + histogram.width
        near = 1e-6  # a value on a border may lie on either side of it
        assert sum(low + near < v < high - near for v in values) <= count
        assert count <= sum(low - near <= v <= high + near for v in values)


def test_few_integers_have_a_bucket_each():
    values = [1, 1, 1, 2, 4, 7]
    histogram = analysed(pa.table({"c": values})).columns["c"].histogram
    assert histogram.counts == (3, 1, 0, 1, 0, 0, 1)
    assert histogram.distincts == (1, 1, 0, 1, 0, 0, 1)


def test_infinite_values_count_and_do_not_stretch_the_range():
    values = [1.0, 2.0, math.inf, -math.inf, math.nan, None]
    found = analysed(pa.table({"c": values})).columns["c"]
    assert (found.min, found.max) == (1.0, 2.0)
    assert found.histogram.total == 5
    only = analysed(pa.table({"c": [math.inf, math.nan]})).columns["c"]
    assert (only.min, only.max, only.histogram) == (None, None, None)
    assert only.distinct == 2


@pytest.mark.parametrize("distinct", [10, 1_000, 3_000, 50_000, 400_000])
def test_the_sketch_is_within_its_error(distinct):
    registers = 1024
    source = f"(SELECT range % {distinct} AS x FROM range({max(2 * distinct, 10_000)}))"
    ((_, values, used, minima),) = duckdb.execute(
        sketch_sql("x", "0", source, registers)
    ).fetchall()
    assert values == max(2 * distinct, 10_000)
    # 1/√1022 is 3.1 %; four of them are exceeded once in 16,000 times, and the data is fixed.
    assert distinct_values(used, minima, registers) == pytest.approx(distinct, rel=0.125, abs=0.5)


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """100,000 rows in 50 row groups: keys in order, scattered values, texts, nulls."""
    luck = random.Random(5)
    rows = 100_000
    frame = pa.table(
        {
            "key": range(rows),
            "order": [i // 4 for i in range(rows)],
            "scattered": [luck.randrange(5_000) for _ in range(rows)],
            "few": [luck.choice("ABC") for _ in range(rows)],
            "text": [f"text {luck.randrange(20_000)}" for _ in range(rows)],
            "nulls": [None if luck.random() < 0.25 else luck.random() for _ in range(rows)],
            "day": [datetime.date(2020, 1, 1) + datetime.timedelta(i // 200) for i in range(rows)],
        }
    )
    file = tmp_path_factory.mktemp("wide") / "wide.parquet"
    pq.write_table(frame, file, row_group_size=2_000)
    return file, frame


TRUTH = {"key": 100_000, "order": 25_000, "scattered": 5_000, "few": 3, "text": 19_870, "day": 500}


@pytest.mark.parametrize("exact_rows", [0, 200_000])
@pytest.mark.parametrize("kind", ["parquet", "frame", "csv", "database"])
def test_all_kinds_of_tables(wide, tmp_path, kind, exact_rows, monkeypatch):
    monkeypatch.setattr(analysing, "EXACT_ROWS", exact_rows)
    file, frame = wide
    if kind == "frame":
        catalog = open_catalog(tables={"wide": frame})
    elif kind == "parquet":
        catalog = open_catalog(file, statistics=tmp_path)
    elif kind == "csv":
        duckdb.execute(f"COPY (FROM '{file}') TO '{tmp_path}/wide.csv'")
        catalog = open_catalog(tmp_path / "wide.csv")
    else:
        with duckdb.connect(str(tmp_path / "db.duckdb")) as connection:
            connection.execute(f"CREATE TABLE wide AS FROM '{file}'")
        catalog = open_catalog(tmp_path / "db.duckdb")
    found = analyze(catalog)["wide"]
    assert found.rows == 100_000
    for name, distinct in TRUTH.items():
        assert found.columns[name].distinct == pytest.approx(distinct, rel=0.04), name
        histogram = found.columns[name].histogram
        assert histogram is None or histogram.total == 100_000
    assert found.columns["nulls"].null_share == pytest.approx(0.25, abs=0.01)
    assert found.columns["text"].average_width_bytes == pytest.approx(9.5, abs=0.5)
    assert found.columns["day"].min == datetime.date(2020, 1, 1)
    clustered = {name for name, column in found.columns.items() if column.clustered}
    assert {"key", "order", "day"} <= clustered
    assert not clustered & {"scattered", "few", "text"}
    assert found.columns["text"].histogram is None
    assert catalog.statistics("wide") is found


@pytest.mark.parametrize(("sample", "kind"), [(0.2, "parquet"), (0.1, "parquet"), (0.1, "frame")])
def test_samples(wide, tmp_path, sample, kind):
    file, frame = wide
    tables = {"wide": str(file) if kind == "parquet" else frame}
    catalog = open_catalog(tables=tables, statistics=tmp_path)
    found = analyze(catalog, sample=sample)["wide"]
    assert found.rows == 100_000
    assert found.columns["nulls"].null_share == pytest.approx(0.25, abs=0.03)
    for name in ("key", "scattered", "few"):
        assert found.columns[name].distinct == pytest.approx(TRUTH[name], rel=0.1), name
    if kind == "parquet":
        assert found.columns["order"].distinct == pytest.approx(25_000, rel=0.1)
        assert found.columns["key"].min == 0
        assert found.columns["key"].max == 99_999
    histogram = found.columns["scattered"].histogram
    assert histogram.total == pytest.approx(100_000, rel=0.01)
    assert sum(histogram.distincts) == pytest.approx(5_000, rel=0.1)


@pytest.mark.parametrize("sample", [0, -1, 1.5, float("nan")])
def test_samples_that_cannot_be(sample):
    with pytest.raises(StatisticsError, match="must be a share"):
        analyze(open_catalog(tables={"t": pa.table({"a": [1]})}), sample=sample)


def test_progress_grows_to_one(wide):
    seen = []
    catalog = open_catalog(tables={"a": wide[1].slice(0, 3_000), "b": pa.table({"x": [1]})})
    analyze(catalog, progress=lambda share, name: seen.append((share, name)))
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert seen[-1] == (1.0, "")
    assert {name for _, name in seen} == {"a", "b", ""}


def test_only_tables_that_are_named_are_read():
    catalog = open_catalog(tables={"a": pa.table({"x": [1]}), "b": pa.table({"x": [1]})})
    assert list(analyze(catalog, ["B"])) == ["b"]
    assert catalog.statistics("a").source == "guessed"


def test_tables_without_rows(tmp_path):
    pq.write_table(
        pa.schema({"a": pa.int64(), "t": pa.string()}).empty_table(), tmp_path / "t.parquet"
    )
    catalog = open_catalog(tmp_path)
    for found in (catalog.statistics("t"), analyze(catalog)["t"]):
        assert found.rows == 0
        for column in found.columns.values():
            assert (column.distinct, column.min, column.max) == (0, None, None)


def test_bad_data_is_an_error_that_names_the_table(tmp_path):
    lines = "\n".join(str(i) for i in range(30_000))
    (tmp_path / "late.csv").write_text(f"n\n{lines}\nnot a number\n")
    with pytest.raises(StatisticsError, match="table late: cannot be analyzed"):
        analyze(open_catalog(tmp_path))


def test_positions():
    assert position(Decimal("1.50")) == 1.5
    assert position(True) == 1.0
    assert position(datetime.time(1, 0, 0, 500_000)) == 3600.5
    assert position(datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)) == 86_400
    assert position(math.inf) is position("x") is position(None) is position(10**400) is None


def test_large_numbers_close_together_are_told_apart():
    wide = pa.array([10**30 + i for i in range(50)], pa.decimal128(38, 0))
    frame = pa.table({"u": pa.array([2**64 - 1 - i for i in range(50)], pa.uint64()), "d": wide})
    for column in analysed(frame).columns.values():
        assert column.distinct == 50
        assert column.histogram.total == 50


@pytest.mark.parametrize("sample", [None, 0.5])
def test_times_of_every_resolution(tmp_path, sample):
    moments = [datetime.datetime(2024, 1, 1, 0, 0, second) for second in range(60)] * 10
    kinds = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in (None, "UTC")]
    frame = pa.table({str(kind): pa.array(moments, kind) for kind in kinds})
    pq.write_table(frame, tmp_path / "t.parquet", row_group_size=20)
    catalog = open_catalog(tmp_path)
    found = analyze(catalog, sample=sample)["t"]
    assert open_catalog(tmp_path).statistics("t") == found
    for column in found.columns.values():
        assert column.distinct == pytest.approx(60, rel=0.1)
        assert position(column.min) == position(moments[0])
        assert position(column.max) == position(moments[59])
        assert column.histogram.total == pytest.approx(600)


# Names that statements of ours use, words of SQL, and what DuckDB adds to tables by itself.
AWKWARD = (
    *("n", "part", "value", "least", "register", "registers", "counted", "pairs", "analysed"),
    *("b0", "v0", "b1", "v1", "b2", "v2", "frame", "t", "rowid", "filename", "file_row_number"),
    *("select", "from", "group", "all", "order", "count", "min", "max", "null", "where", "Quoted"),
    *("with space", 'with "quotes"', "it's", "$1", "a.b"),
)


@pytest.mark.parametrize("kind", some_of(["frame", "parquet", "groups", "csv", "sample"], 2))
def test_columns_may_be_called_anything(tmp_path, kind, monkeypatch):
    # Texts and numbers in turn: one that is taken for another is found out.
    texts, numbers = ["x", "y", "y", None], [7, 7, 8, 9]
    # With a column of this name a file is sampled in another way.
    names = [name for name in AWKWARD if kind != "sample" or name != "file_row_number"]
    named = {name: texts if i % 2 else numbers for i, name in enumerate(names)}
    plain = {f"column {i}": values for i, values in enumerate(named.values())}
    places = {}
    for name, columns in (("named", named), ("plain", plain)):
        frame = pa.table({c: pa.array(values * 30) for c, values in columns.items()})
        places[name] = _kept(tmp_path / name, frame, kind)
    catalog = open_catalog(tables=places)
    for exact_rows in (analysing.EXACT_ROWS, 10):  # counted, and sketched
        monkeypatch.setattr(analysing, "EXACT_ROWS", exact_rows)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        found = analyze(catalog, sample=0.5 if kind == "sample" else None)
        assert list(found["named"].columns) == names
        assert list(found["named"].columns.values()) == list(found["plain"].columns.values())


def _kept(place, frame, kind):
    if kind == "frame":
        return frame
    if kind == "csv":
        pyarrow.csv.write_csv(frame, f"{place}.csv")
        return f"{place}.csv"
    rows = {"parquet": 1000, "groups": 50, "sample": 4}[kind]
    pq.write_table(frame, f"{place}.parquet", row_group_size=rows)
    return f"{place}.parquet"


def test_a_table_that_cannot_be_read_does_not_stop_the_others(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no Parquet at all")
    (tmp_path / "b.csv").write_text("x,n\n1,u\n2,v\n")
    catalog = open_catalog(tmp_path)
    with pytest.raises(NotAllAnalysed, match=r"a\.parquet") as caught:
        analyze(catalog)
    assert list(caught.value.found) == ["b"]
    assert list(caught.value.failures) == ["a"]
    assert catalog.statistics("b").source == "analysed"
