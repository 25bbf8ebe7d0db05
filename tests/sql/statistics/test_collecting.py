"""Statistics that collect themselves in the background."""

from __future__ import annotations

import threading

import duckdb
import pyarrow as pa
import pytest

from queryard.sql.catalog import open_catalog
from queryard.sql.catalog.open_files import Claims
from queryard.sql.statistics import collecting
from queryard.sql.statistics.collecting import Collector

MEMORY = 64 << 20


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(collecting, "START_S", 0.0)
    monkeypatch.setattr(collecting, "AGAIN_S", 0.01)
    monkeypatch.setattr(collecting, "WORKING_SHARE", 1.0)


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("small", 100), ("large", 60_000)):
        write(tmp_path / f"{name}.parquet", rows)
    return tmp_path


def write(file, rows):
    duckdb.execute(f"COPY (SELECT i, i % 10 AS d FROM range({rows}) t(i)) TO '{file}'")


class Listener:
    """Hears what arrives, and lets a test wait for a table to be known from all its rows."""

    def __init__(self, catalog):
        self.catalog = catalog
        self.heard = []
        self.failures = []
        self.news = threading.Condition()
        self.collector = Collector(catalog, MEMORY, self.arrived, self.failures.append)

    def arrived(self, keys):
        with self.news:
            self.heard.append(keys)
            self.news.notify_all()

    def wait_for(self, *keys, times=1):
        def all_heard():
            return all(sum(key in told for told in self.heard) >= times for key in keys)

        with self.news:
            assert self.news.wait_for(all_heard, 20)


@pytest.fixture
def listening():
    listeners = []

    def start(catalog, *wanted):
        listener = Listener(catalog)
        listeners.append(listener)
        listener.collector.want(wanted)
        listener.collector.start()
        return listener

    yield start
    for listener in listeners:
        listener.collector.close()


def test_tables_are_sampled_and_then_analysed(folder, listening):
    catalog = open_catalog(folder)
    assert catalog.statistics("large").source == "footers"
    listening(catalog).wait_for("small", "large", times=2)
    found = catalog.statistics("large")
    assert (found.source, found.columns["i"].distinct) == ("analysed", 60_000)
    assert found.columns["d"].histogram is not None
    assert catalog.judge.share("large", "i % 3 = 0").share == pytest.approx(1 / 3, rel=0.05)
    # Another session has it at once.
    assert open_catalog(folder).statistics("large").source == "analysed"
    assert open_catalog(folder).sample("large") is not None


def test_what_queries_name_comes_first(folder):
    collector = Collector(open_catalog(folder), MEMORY, print, print)
    assert collector._next("quick").key == "small"
    collector.want(["large", "select", "a text of a query"])
    assert collector._next("quick").key == "large"
    # A server sees any number of texts: none is kept.
    assert collector._wanted == {"large"}


def test_a_database_that_was_just_written_is_left_to_other_programs(tmp_path, monkeypatch):
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 0 AS i")
    collector = Collector(open_catalog(file), MEMORY, print, print)
    assert collector._next("quick").key == "t"
    writer = Claims()
    writer.claim(str(file), writes=True)
    assert collector._next("quick") is None
    writer.release()
    assert collector._next("quick") is None
    monkeypatch.setattr(collecting, "DETACHED_S", 0.0)
    assert collector._next("quick").key == "t"


def test_a_table_that_changes_is_looked_at_again(folder, listening):
    catalog = open_catalog(folder)
    listener = listening(catalog)
    listener.wait_for("small", times=2)
    write(folder / "small.parquet", 500)
    catalog.refresh()
    listener.wait_for("small", times=4)
    assert catalog.statistics("small").columns["i"].distinct == 500
    assert catalog.sample("small").rows == 500


def test_nothing_is_written_where_nothing_is_to_be_kept(folder, listening):
    catalog = open_catalog(folder)
    catalog.keeps_statistics = False
    listening(catalog).wait_for("small", "large", times=2)
    assert not (folder / ".queryard").exists()
    assert catalog.sample("large") is not None
    assert catalog.statistics("large").source == "analysed"


def test_a_full_disk_costs_files_only(folder, listening, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("queryard.sql.statistics.store.write_whole", full)
    monkeypatch.setattr("queryard.sql.statistics.sample_store.write_whole", full)
    catalog = open_catalog(folder)
    listener = listening(catalog)
    listener.wait_for("small", "large")
    assert catalog.sample("large") is not None
    assert catalog.statistics("large").columns["d"].distinct == 10


def test_a_table_that_cannot_be_read_stops_no_other(folder, listening):
    (folder / "broken.parquet").write_bytes(b"PAR1 no PAR1")
    catalog = open_catalog(folder, {"frame": pa.table({"x": range(10)})})
    listener = listening(catalog)
    listener.wait_for("large", "frame", times=2)
    assert all("broken" in str(error) for error in listener.failures)


def test_closing_interrupts_what_runs(folder, listening, monkeypatch):
    begun = threading.Event()

    def endless(catalog, table, share, connected, report):
        with connected() as connection:
            begun.set()
            connection.execute("SELECT count(*) FROM range(1000000000000) t(i) WHERE hash(i) = 1")

    monkeypatch.setattr(collecting, "analyse_table", endless)
    listener = listening(open_catalog(folder))
    assert begun.wait(20)
    listener.collector.close()
    listener.collector._thread.join(20)
    assert not listener.collector._thread.is_alive()
    assert not listener.failures
