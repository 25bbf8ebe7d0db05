"""A shuffled copy holds exactly the rows of its table, or is not there."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from queryard.engine.sampling import (
    BeingMade,
    Sample,
    SampleError,
    ShuffledCopy,
    copy_places,
    find_copy,
    list_copies,
    remove_copy,
    shuffle,
    shuffle_in_turn,
)
from queryard.engine.sampling import space as space_module
from queryard.engine.sampling.shuffling import default_files
from queryard.results.errors import QueryCancelled
from queryard.sql.catalog import Catalog, open_catalog
from queryard.sql.catalog.model import Table
from queryard.sql.catalog.quoting import identifier

MEMORY = 256 << 20
ODD = """
    SELECT i, i::HUGEINT * 170141183460469231731687303 AS huge, i::UHUGEINT AS unsigned_huge,
        (CASE i % 3 WHEN 0 THEN 'sad' ELSE 'so "glad"' END)::ENUM('sad', 'so "glad"') AS mood,
        (i % 2 = 0)::INTEGER::BIT AS bits, to_microseconds(i) + to_months(i % 5) AS span,
        ('12:00:00.00001+0' || i % 10)::TIMETZ AS zoned, make_timestamp(i)::TIMESTAMP_S AS whole_s,
        make_timestamp(i * 1000)::TIMESTAMP_MS AS ms, make_timestamp_ns(i * 7) AS ns,
        make_timestamp(i)::TIMESTAMPTZ AS tz, 'infinity'::DATE AS never,
        {'a': i, 'b': [i, NULL, 2 * i], 'm': ['sad'::ENUM('sad', 'x')]} AS nested,
        MAP {'k' || i: i / 4} AS lookup, [i, 2]::INTEGER[2] AS pair,
        (i / 8)::DECIMAL(38, 10) AS amount, nullif(i % 7, 0) AS gaps, 'x' || i AS "a word",
        encode('b' || i) AS raw, 'nan'::FLOAT AS nothing, md5(i::VARCHAR)::UUID AS id
    FROM range({rows}) AS r(i)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def numbers(place: Path) -> Catalog:
    write_numbers(place, 5000)
    return open_catalog(place)


def write_numbers(place: Path, rows: int) -> None:
    table = pa.table({"n": range(rows), "half": [n / 2 for n in range(rows)]})
    pq.write_table(table, place / "numbers.parquet", row_group_size=1000)


def copy_of(catalog: Catalog, name: str, **options: object) -> ShuffledCopy:
    table = catalog[name]
    given = {"memory_bytes": MEMORY, "threads": 2, **options}
    return shuffle(table, copy_places(catalog, table), **given)  # type: ignore[arg-type]


def same_rows(table: Table, sample: Sample) -> bool:
    """By DuckDB's own comparison, both ways, and with the same types."""
    names = ", ".join(identifier(column.name) for column in table.columns)
    with duckdb.connect() as connection:
        database = getattr(table, "database", None)
        if database is not None:
            connection.execute(f"ATTACH '{database.path}' AS {database.alias} (READ_ONLY)")
        connection.execute(f"CREATE VIEW a AS SELECT {names} FROM {table.relation}")
        relation = sample.relation(sample.parts)
        connection.execute(f"CREATE VIEW b AS SELECT {names} FROM {relation} AS t")
        for one, other in (("a", "b"), ("b", "a")):
            left = connection.execute(f"FROM {one} EXCEPT ALL FROM {other}").fetchall()
            if left:
                return False
        types = [connection.execute(f"DESCRIBE {view}").fetchall() for view in ("a", "b")]
        return types[0] == types[1]


def rows_of(sample: Sample) -> dict[int, list[int]]:
    """The values of `n` by part."""
    relation = sample.relation(sample.parts)
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT {sample.part_column}, list(n ORDER BY n) FROM {relation} AS t GROUP BY ALL"
        )
        return dict(found.fetchall())


def folders(place: Path) -> list[str]:
    shuffled = place / ".queryard" / "shuffled"
    return sorted(found.name for found in shuffled.iterdir() if found.is_dir())


# --- the rows ------------------------------------------------------------------------------------


def test_each_row_is_in_one_part_and_parts_are_random(numbers: Catalog) -> None:
    copy = copy_of(numbers, "numbers", files=10)
    assert same_rows(numbers["numbers"], copy)
    assert (copy.kind, copy.total_rows, len(copy.files)) == ("shuffled copy", 5000, 10)
    found = rows_of(copy)
    assert {part.number: part.rows for part in copy.parts} == {
        number: len(rows) for number, rows in found.items()
    }
    for rows in found.values():
        assert 380 < len(rows) < 620
        assert 2000 < sum(rows) / len(rows) < 3000


def test_some_parts_from_anywhere_on_the_circle(numbers: Catalog) -> None:
    copy = copy_of(numbers, "numbers", files=10)
    everything = rows_of(copy)
    turned = copy.start(23)
    assert [part.number for part in turned.parts] == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]
    some = turned.parts[5:8]
    with duckdb.connect() as connection:
        sql = f"SELECT queryard_part, list(n ORDER BY n) FROM {turned.relation(some)} GROUP BY ALL"
        assert dict(connection.execute(sql).fetchall()) == {n: everything[n] for n in (8, 9, 0)}


def test_a_seed_decides_where_a_row_goes(numbers: Catalog) -> None:
    first = copy_of(numbers, "numbers", files=7, seed=1, threads=1)
    rows = rows_of(first)
    assert copy_of(numbers, "numbers", files=7, seed=1) == first
    assert remove_copy(numbers["numbers"], copy_places(numbers, numbers["numbers"])) == 1
    again = copy_of(numbers, "numbers", files=7, seed=1, threads=2)
    assert again.folder != first.folder
    assert rows_of(again) == rows
    assert rows_of(copy_of(numbers, "numbers", files=7, seed=2)) != rows


def test_every_type_comes_back_as_it_was(place: Path) -> None:
    with duckdb.connect(str(place / "shop.duckdb")) as connection:
        connection.execute(f"CREATE TABLE odd AS {ODD.replace('{rows}', '3000')}")
        connection.execute("CREATE VIEW seen AS SELECT i, mood FROM odd WHERE i % 2 = 0")
    catalog = open_catalog(place)
    for name in ("shop.odd", "shop.seen"):
        copy = copy_of(catalog, name, files=5)
        assert len(copy.parts) == 5
        assert same_rows(catalog[name], copy)


def test_what_parquet_cannot_hold_is_refused(place: Path) -> None:
    with duckdb.connect(str(place / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE spans AS SELECT [to_microseconds(1)] AS within")
    with pytest.raises(SampleError, match="'within' is INTERVAL"):
        copy_of(open_catalog(place), "shop.spans")
    assert folders(place) == []


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl"])
def test_text(place: Path, ending: str) -> None:
    kind = "json" if "json" in ending else "csv"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i AS n, nullif('line' || chr(10) || i % 9, '') AS text, i / 3 AS third "
            f"FROM range(4000) AS r(i)) TO '{place / f'notes.{ending}'}' (FORMAT {kind})"
        )
    catalog = open_catalog(place)
    copy = copy_of(catalog, "notes", files=6)
    assert same_rows(catalog["notes"], copy)
    rows = rows_of(copy)
    remove_copy(catalog["notes"], copy_places(catalog, catalog["notes"]))
    assert rows_of(copy_of(catalog, "notes", files=6)) == rows


def test_many_files_in_folders_with_different_columns(place: Path) -> None:
    for year in (2023, 2024):
        folder = place / "sales" / f"year={year}"
        folder.mkdir(parents=True)
        columns = {"n": range(500), f"only_{year}": range(500)}
        pq.write_table(pa.table(columns), folder / "part-0.parquet")
    named = {"sales": {"path": str(place / "sales" / "*" / "*.parquet"), "union_by_name": True}}
    catalog = open_catalog(tables=named)
    assert same_rows(catalog["sales"], copy_of(catalog, "sales", files=4))


@pytest.mark.parametrize("name", ["file_row_number", "file_index", "queryard_part", "part"])
def test_columns_with_names_of_ours(place: Path, name: str) -> None:
    table = pa.table({"n": range(900), name: [n % 5 for n in range(900)]})
    pq.write_table(table, place / "named.parquet")
    catalog = open_catalog(place)
    copy = copy_of(catalog, "named", files=3)
    assert same_rows(catalog["named"], copy)
    assert len(rows_of(copy)) == 3


def test_a_table_without_rows(place: Path) -> None:
    write_numbers(place, 0)
    catalog = open_catalog(place)
    copy = copy_of(catalog, "numbers")
    assert (copy.parts, copy.total_rows) == ((), 0)
    assert find_copy(catalog["numbers"], copy_places(catalog, catalog["numbers"])) == copy


def test_more_rows_than_memory(place: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT i AS n, md5(i::VARCHAR) || md5((i + 1)::VARCHAR) || repeat('-', 740) "
            f"AS wide FROM range(180000) AS r(i)) TO '{place / 'wide.parquet'}' "
            "(ROW_GROUP_SIZE 20000)"
        )
    catalog = open_catalog(place)
    copy = copy_of(catalog, "wide", memory_bytes=128 << 20)
    assert copy.total_rows == 180_000
    assert sorted(n for rows in rows_of(copy).values() for n in rows) == list(range(180_000))


def test_how_many_files() -> None:
    assert default_files(1e9) == 100
    assert default_files(200_000) == 20
    assert default_files(199_999) == 20
    assert default_files(5_000) == 5
    assert default_files(0) == 1


# --- whether it holds ----------------------------------------------------------------------------


def test_a_copy_holds_until_the_table_changes(numbers: Catalog, place: Path) -> None:
    copy = copy_of(numbers, "numbers")
    places = copy_places(numbers, numbers["numbers"])
    assert find_copy(numbers["numbers"], places) == copy
    assert list_copies(numbers) == [(copy, True)]
    write_numbers(place, 6000)
    numbers.refresh()
    assert find_copy(numbers["numbers"], places) is None
    assert list_copies(numbers) == [(copy, False)]
    again = copy_of(numbers, "numbers")
    assert again.total_rows == 6000
    assert list_copies(numbers) == [(again, True)]
    assert not copy.folder.exists()


def test_a_copy_that_lost_a_file_does_not_hold(numbers: Catalog) -> None:
    copy = copy_of(numbers, "numbers", files=3)
    places = copy_places(numbers, numbers["numbers"])
    copy.files[1].write_bytes(b"cut")
    assert find_copy(numbers["numbers"], places) is None
    assert same_rows(numbers["numbers"], copy_of(numbers, "numbers", files=3))


def test_a_broken_note_is_as_good_as_none(numbers: Catalog) -> None:
    copy = copy_of(numbers, "numbers")
    (copy.folder.parent / ".half-removed").mkdir()
    (copy.folder / "copy.json").write_text('{"format": 1')
    assert find_copy(numbers["numbers"], copy_places(numbers, numbers["numbers"])) is None
    again = copy_of(numbers, "numbers")
    assert not (again.folder.parent / ".half-removed").exists()


def test_data_moves_with_its_copies(numbers: Catalog, place: Path, tmp_path: Path) -> None:
    copy_of(numbers, "numbers")
    place.rename(tmp_path / "elsewhere")
    moved = open_catalog(tmp_path / "elsewhere")
    found = find_copy(moved["numbers"], copy_places(moved, moved["numbers"]))
    assert found is not None
    assert same_rows(moved["numbers"], found)


def test_a_copy_that_is_read_is_not_removed(numbers: Catalog, place: Path) -> None:
    copy = copy_of(numbers, "numbers")
    places = copy_places(numbers, numbers["numbers"])
    with copy.held():
        with pytest.raises(SampleError, match="being read"):
            remove_copy(numbers["numbers"], places)
        write_numbers(place, 6000)
        numbers.refresh()
        copy_of(numbers, "numbers")
        assert all(file.exists() for file in copy.files)
    assert remove_copy(numbers["numbers"], places) == 2
    assert folders(place) == []
    with pytest.raises(SampleError, match="is gone"), copy.held():
        pass


# --- what can go wrong ---------------------------------------------------------------------------


def test_a_cancelled_copy_leaves_nothing(numbers: Catalog, place: Path) -> None:
    with pytest.raises(QueryCancelled):
        copy_of(numbers, "numbers", cancelled=lambda: True)
    assert folders(place) == []


def test_a_copy_pauses_and_goes_on(numbers: Catalog) -> None:
    answers = iter([True, False, False, *[True] * 1000])
    seen: list[float] = []
    copy = copy_of(
        numbers, "numbers", allowed=lambda: next(answers), progress=lambda share: seen.append(share)
    )
    assert copy.total_rows == 5000
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_what_a_killed_process_left_is_removed_by_the_next(numbers: Catalog, place: Path) -> None:
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_copy_and_die, args=(str(place),))
    process.start()
    process.join()
    assert process.exitcode == 9
    assert len(folders(place)) == 1
    copy = copy_of(numbers, "numbers")
    assert folders(place) == [copy.folder.name]


def _copy_and_die(place: str) -> None:
    copy_of(open_catalog(place), "numbers", progress=lambda share: os._exit(9))


def test_two_at_once(numbers: Catalog, place: Path) -> None:
    waiting, may_go = threading.Event(), threading.Event()

    def stand(share: float) -> None:
        waiting.set()
        may_go.wait(60)

    made: list[ShuffledCopy] = []
    thread = threading.Thread(
        target=lambda: made.append(copy_of(numbers, "numbers", progress=stand))
    )
    thread.start()
    assert waiting.wait(60)
    catalog = open_catalog(place)
    with pytest.raises(BeingMade, match="being made"):
        copy_of(catalog, "numbers")
    table = catalog["numbers"]
    threading.Timer(0.1, may_go.set).start()
    assert shuffle_in_turn(table, copy_places(catalog, table)).folder == made_folder(thread, made)


def made_folder(thread: threading.Thread, made: list[ShuffledCopy]) -> Path:
    thread.join()
    return made[0].folder


def test_a_table_that_changes_meanwhile(numbers: Catalog, place: Path) -> None:
    changed = iter([True])

    def change(share: float) -> None:
        if next(changed, False):
            os.utime(place / "numbers.parquet", ns=(1, 1))

    with pytest.raises(SampleError, match="have changed"):
        copy_of(numbers, "numbers", progress=change)
    assert folders(place) == []


def test_no_room_is_said_before_anything_is_written(
    numbers: Catalog, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = SimpleNamespace(disk_usage=lambda place: shutil._ntuple_diskusage(100, 99, 1_000_000))
    monkeypatch.setattr(space_module, "shutil", full)
    with pytest.raises(SampleError, match=r"needs about .* MB in .*, and 1.0 MB are free; free"):
        copy_of(numbers, "numbers")
    assert folders(place) == []


def test_a_disk_that_is_full_while_writing(
    numbers: Catalog, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> Iterator[None]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("queryard.engine.sampling.writing.write_manifest", full)
    with pytest.raises(SampleError, match=r"No space left on device.*free some"):
        copy_of(numbers, "numbers")
    assert folders(place) == []


def test_the_cache_is_used_where_the_data_cannot_be_written_to(
    numbers: Catalog, place: Path, tmp_path: Path
) -> None:
    (place / ".queryard").write_text("no folder")
    copy = copy_of(numbers, "numbers")
    assert (tmp_path / "cache" / "queryard" / "shuffled") in copy.folder.parents
    assert find_copy(numbers["numbers"], copy_places(numbers, numbers["numbers"])) == copy
    for path in (copy.folder, *copy.folder.iterdir()):
        assert path.stat().st_mode & 0o077 == 0
    assert list_copies(numbers) == [(copy, True)]


def test_no_place_at_all(numbers: Catalog, place: Path, tmp_path: Path) -> None:
    (place / ".queryard").write_text("no folder")
    (tmp_path / "cache").write_text("no folder")
    with pytest.raises(SampleError, match="can be written to none of"):
        copy_of(numbers, "numbers")


def test_frames_and_odd_numbers_of_files_are_refused(numbers: Catalog) -> None:
    numbers.add("frame", pa.table({"a": [1]}))
    with pytest.raises(SampleError, match="frame in memory"):
        copy_of(numbers, "frame")
    with pytest.raises(SampleError, match="0 files"):
        copy_of(numbers, "numbers", files=0)
