"""Copies make themselves for tables that online queries ask for, and make way for queries."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from queryard.engine.sampling import CopyMaker, copy_places, find_copy, making
from queryard.sql.catalog import Catalog, open_catalog

MEMORY = 256 << 20


class Heard:
    """What a maker has told."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self.failed: list[str] = []

    def fail(self, error: BaseException) -> None:
        self.failed.append(str(error))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(making, "LARGE_ROWS", 1000)
    monkeypatch.setattr(making, "AGAIN_S", 0.05)
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "large.parquet", 5000)
    write(tmp_path / "data" / "small.parquet", 10)
    return tmp_path / "data"


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def maker_of(heard: Heard):
    made: list[CopyMaker] = []

    def make(catalog: Catalog, **options: object) -> CopyMaker:
        maker = CopyMaker(catalog, MEMORY, heard.arrived.append, heard.fail, **options)  # type: ignore[arg-type]
        maker.start()
        made.append(maker)
        return maker

    yield make
    for maker in made:
        maker.close()


def write(file: Path, rows: int) -> None:
    pq.write_table(pa.table({"n": range(rows)}), file)


def copied_rows(catalog: Catalog, name: str) -> int | None:
    copy = find_copy(catalog[name], copy_places(catalog, catalog[name]))
    return None if copy is None else copy.total_rows


def test_a_copy_is_made_when_it_is_wanted_and_again_when_the_table_changes(
    place: Path, heard: Heard, maker_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "REST_FACTOR", 0.0)
    catalog = open_catalog(place)
    maker = maker_of(catalog)
    assert maker.wanted("LARGE")
    wait_until(lambda: heard.arrived == ["large"])
    assert copied_rows(catalog, "large") == 5000
    write(place / "large.parquet", 6000)
    catalog.refresh()
    assert copied_rows(catalog, "large") is None
    wait_until(lambda: heard.arrived == ["large", "large"])
    assert copied_rows(catalog, "large") == 6000
    assert heard.failed == []
    assert maker.making is None


def test_a_table_that_changes_all_the_time_is_not_copied_all_the_time(
    place: Path, heard: Heard, maker_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "REST_FACTOR", 1e6)
    catalog = open_catalog(place)
    maker_of(catalog).wanted("large")
    wait_until(lambda: heard.arrived)
    write(place / "large.parquet", 6000)
    catalog.refresh()
    time.sleep(0.3)
    assert heard.arrived == ["large"]


def test_small_tables_and_frames_are_not_copied_unasked(place: Path, maker_of) -> None:
    catalog = open_catalog(place, {"frame": pa.table({"n": range(5000)})})
    maker = maker_of(catalog)
    assert not maker.wanted("small")
    assert not maker.wanted("frame")


def test_a_copy_makes_way_for_queries(place: Path, heard: Heard, maker_of) -> None:
    busy = threading.Event()
    busy.set()
    catalog = open_catalog(place)
    maker = maker_of(catalog, busy=busy.is_set)
    maker.wanted("large")
    wait_until(lambda: maker.making is not None)
    time.sleep(0.3)
    assert heard.arrived == []
    busy.clear()
    wait_until(lambda: heard.arrived)


def test_after_long_a_copy_has_its_share_in_any_case(
    place: Path, heard: Heard, maker_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "LATEST_S", 0.2)
    monkeypatch.setattr(making, "TURN_S", 0.5)
    monkeypatch.setattr(making, "TURN_SHARE", 0.5)
    maker_of(open_catalog(place), busy=lambda: True).wanted("large")
    wait_until(lambda: heard.arrived)


def test_closing_stops_a_copy_and_leaves_nothing(place: Path, heard: Heard, maker_of) -> None:
    maker = maker_of(open_catalog(place), busy=lambda: True)
    maker.wanted("large")
    wait_until(lambda: maker.making is not None)
    maker.close()
    shuffled = place / ".queryard" / "shuffled"
    assert [found for found in shuffled.iterdir() if found.is_dir()] == []
    assert (heard.arrived, heard.failed) == ([], [])


def test_the_limit_of_disk_is_told_once(place: Path, heard: Heard, maker_of) -> None:
    maker = maker_of(open_catalog(place), limit_bytes=1000)
    maker.wanted("large")
    wait_until(lambda: heard.failed)
    time.sleep(0.2)
    (told,) = heard.failed
    assert "may take 1.0 kB" in told
    assert heard.arrived == []


def test_a_broken_table_does_not_stop_the_next(
    place: Path, heard: Heard, maker_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "LARGE_BYTES", 1)
    (place / "broken.parquet").write_bytes(b"this is no Parquet file")
    maker = maker_of(open_catalog(place))
    maker.wanted("broken")
    maker.wanted("large")
    wait_until(lambda: heard.arrived == ["large"])
    (told,) = heard.failed
    assert "broken.parquet" in told
