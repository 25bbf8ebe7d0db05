"""Statistics are kept with the data they belong to, and used for as long as it is the same."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import warnings
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.sql.catalog import open_catalog
from queryard.sql.statistics import StatisticsError, StatisticsWarning, analyze, store

FRAME = pa.table(
    {
        "n": [1, 2, 2, None],
        "t": ["a", "b", None, "c"],
        "d": [datetime.date(2024, 1, day) for day in (1, 2, 3, 4)],
        "m": pa.array([Decimal("1.50"), None, None, Decimal("2.25")], pa.decimal128(10, 2)),
        "s": [datetime.datetime(2024, 1, 1, hour) for hour in (1, 2, 3, 4)],
        "b": [True, False, None, True],
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("a", "b"):
        pq.write_table(FRAME, folder / f"{name}.parquet")
    return folder


@pytest.fixture
def collected(monkeypatch):
    """The tables that were really read."""
    from queryard.sql.statistics import analyse

    seen = []
    original = analyse._collect

    def watch(table, *others):
        seen.append(table.key)
        return original(table, *others)

    monkeypatch.setattr(analyse, "_collect", watch)
    return seen


def files_of(folder):
    return sorted((folder / ".queryard" / "statistics").glob("*.json"))


def test_what_was_kept_comes_back_equal(folder):
    found = analyze(open_catalog(folder))
    again = open_catalog(folder)
    for name in ("a", "b"):
        assert again.statistics(name) == found[name]
        assert again.statistics(name).source == "analysed"
    assert len(files_of(folder)) == 2
    assert list(again) == ["a", "b"]  # the folder of statistics is no table


def test_only_what_changed_is_read_again(folder, collected):
    analyze(open_catalog(folder))
    assert collected == ["a", "b"]
    analyze(open_catalog(folder))
    assert collected == ["a", "b"]
    pq.write_table(pa.concat_tables([FRAME, FRAME]), folder / "a.parquet")
    catalog = open_catalog(folder)
    assert catalog.statistics("a").source == "footers"
    assert catalog.statistics("b").source == "analysed"
    assert analyze(catalog)["a"].rows == 8
    assert collected == ["a", "b", "a"]


def test_a_catalog_that_is_refreshed_forgets_what_is_stale(folder):
    catalog = open_catalog(folder)
    analyze(catalog)
    pq.write_table(FRAME.slice(0, 1), folder / "a.parquet")
    assert catalog.refresh() == ("a",)
    assert (catalog.statistics("a").source, catalog.statistics("a").rows) == ("footers", 1)


def test_a_file_of_the_same_size_that_was_touched_is_another(folder):
    analyze(open_catalog(folder))
    os.utime(folder / "a.parquet", ns=(1, 1))
    assert open_catalog(folder).statistics("a").source == "footers"


def test_a_sample_is_replaced_by_the_whole_but_not_the_other_way(folder, collected):
    analyze(open_catalog(folder), ["a"], sample=0.5)
    analyze(open_catalog(folder), ["a"], sample=0.5)
    analyze(open_catalog(folder), ["a"])
    analyze(open_catalog(folder), ["a"], sample=0.5)
    assert collected == ["a", "a"]


def test_a_folder_may_be_moved_with_its_data(folder, tmp_path):
    analyze(open_catalog(folder))
    shutil.move(folder, tmp_path / "moved")
    assert open_catalog(tmp_path / "moved").statistics("a").source == "analysed"


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "3", '{"format": 1}', '{"format": 99, "fingerprint": "x"}', "\x00\xff"],
)
def test_broken_files_are_a_warning_and_are_replaced(folder, content):
    analyze(open_catalog(folder))
    file = files_of(folder)[0]
    file.write_bytes(content.encode("latin-1"))
    with pytest.warns(StatisticsWarning, match="analyze the table again") as caught:
        assert open_catalog(folder).statistics("a").source == "footers"
    assert str(file) in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        analyze(open_catalog(folder))
    assert open_catalog(folder).statistics("a").source == "analysed"


def test_broken_inside(folder):
    analyze(open_catalog(folder))
    file = files_of(folder)[0]
    data = json.loads(file.read_text())
    for wrong in (None, {"counts": []}, 3):
        data["columns"]["n"] = wrong
        file.write_text(json.dumps(data))
        with pytest.warns(StatisticsWarning):
            assert open_catalog(folder).statistics("a").source == "footers"


def test_where_nothing_can_be_written_the_cache_of_the_user_is_used(folder, tmp_path):
    (folder / ".queryard").write_text("in the way")
    analyze(open_catalog(folder))
    assert len(list((tmp_path / "cache" / "queryard" / "statistics").rglob("*.json"))) == 2
    assert open_catalog(folder).statistics("a").source == "analysed"


def test_where_nothing_can_be_written_at_all(folder, tmp_path):
    (folder / ".queryard").write_text("in the way")
    (tmp_path / "cache").write_text("in the way")
    with pytest.raises(StatisticsError, match="statistics of a cannot be kept"):
        analyze(open_catalog(folder))


def test_an_explicit_place(folder, tmp_path):
    analyze(open_catalog(folder, statistics=tmp_path / "mine"))
    assert len(list((tmp_path / "mine").glob("*.json"))) == 2
    assert not (folder / ".queryard").exists()
    assert open_catalog(folder, statistics=tmp_path / "mine").statistics("a").source == "analysed"
    assert open_catalog(folder).statistics("a").source == "footers"


def test_tables_by_name_are_kept_in_the_cache(folder, tmp_path):
    tables = {"odd/na'me": str(folder / "a.parquet")}
    analyze(open_catalog(tables=tables))
    assert open_catalog(tables=tables).statistics("odd/na'me").source == "analysed"
    assert not (folder / ".queryard").exists()


def test_other_options_make_other_statistics(folder, tmp_path):
    (folder / "c.csv").write_text("n\n1\n2\n")
    place = tmp_path / "mine"
    analyze(open_catalog(tables={"c": str(folder / "c.csv")}, statistics=place))
    spec = {"path": str(folder / "c.csv"), "types": {"n": "VARCHAR"}}
    other = open_catalog(tables={"c": spec}, statistics=place)
    assert other.statistics("c").source == "guessed"


def test_a_failing_write_leaves_the_old_file(folder, monkeypatch):
    catalog = open_catalog(folder)
    analyze(catalog, ["a"])
    before = files_of(folder)[0].read_text()
    pq.write_table(FRAME.slice(0, 2), folder / "a.parquet")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store.os, "replace", fail)
    with pytest.raises(StatisticsError, match="No space left"):
        analyze(open_catalog(folder), ["a"])
    assert files_of(folder)[0].read_text() == before
    assert len(list((folder / ".queryard" / "statistics").iterdir())) == 1
