"""The store of segments: parsed once, kept within budgets, the rows always DuckDB's."""

from __future__ import annotations

import errno
import json
import os
import threading
from contextlib import contextmanager

import duckdb
import pytest

from queryard.core.errors import QueryardError
from queryard.engine.errors import InputMissing, QueryCancelled, QueryFailed
from queryard.engine.segments import SegmentStore
from queryard.engine.segments.places import MemoryFile
from queryard.sql.catalog import open_catalog
from queryard.sql.catalog.segments import known_segments

ROWS = 2000
LINES = [f"{n},{n % 7}.5,name {n % 13},2024-01-{n % 28 + 1:02}" for n in range(ROWS)]
TEXT = "\n".join(["id,price,name,day", *LINES, ""])
PLAIN = duckdb.connect(config={"threads": 1})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(TEXT)
    return path


@pytest.fixture
def table(path):
    return open_catalog(tables={"t": str(path)})["t"]


@contextmanager
def opened(tmp_path, memory=1e9, disk=0.0, target=8000, **options):
    store = SegmentStore(memory, disk, tmp_path / "kept", target, **options)
    try:
        yield store
    finally:
        store.close()


def read(store, table, columns, **options):
    rows = []
    for segment in store.segments(table):
        with store.reading(table, segment, columns, **options) as relation:
            rows += PLAIN.execute(f"SELECT * FROM {relation}").fetchall()
    return rows


def plain(table, columns):
    return PLAIN.execute(f"SELECT {', '.join(columns)} FROM {table.relation}").fetchall()


def test_a_segment_is_parsed_once_for_all_that_read_it(tmp_path, table):
    with opened(tmp_path) as store:
        segments = len(store.segments(table))
        assert segments > 3
        for columns in (["id"], ["price", "day"], ["id", "price", "day"]):
            found = read(store, table, columns, also=["price", "day"])
            assert found == plain(table, columns)
        assert store.makes == segments


def test_the_share_that_is_kept_is_that_of_segments_with_all_columns(tmp_path, table):
    with opened(tmp_path) as store:
        segments = store.segments(table)
        assert store.share_kept(segments) == 0.0
        half = (len(segments) + 1) // 2
        for segment in segments[:half]:
            with store.reading(table, segment, ["id"]):
                pass
        assert store.share_kept(segments) == store.share_kept(segments, ["id"]) >= 0.5
        assert store.share_kept(segments, ["id", "price"]) == 0.0
        with store.reading(table, segments[0], ["price"]):
            pass
        assert store.share_kept(segments, ["id", "price"]) == 1 / len(segments)
        store.forget(table.key)
        assert store.share_kept(segments) == 0.0


def test_columns_that_are_asked_for_later_are_kept_beside_the_others(tmp_path, table):
    with opened(tmp_path) as store:
        segments = len(store.segments(table))
        assert read(store, table, ["price"]) == plain(table, ["price"])
        assert read(store, table, ["id", "name"]) == plain(table, ["id", "name"])
        assert store.makes == 2 * segments
        every = ["id", "price", "name", "day"]
        assert read(store, table, every) == plain(table, every)
        assert store.makes == 3 * segments
        assert read(store, table, ["day", "price"]) == plain(table, ["price", "day"])
        assert store.makes == 3 * segments


def test_rows_are_counted_without_columns(tmp_path, table):
    with opened(tmp_path) as store:
        assert len(read(store, table, [])) == ROWS


def test_the_whole_table_is_read_from_what_is_kept_once_all_of_it_is(tmp_path, table):
    with opened(tmp_path) as store:
        with store.complete(table, ["id"]) as relation:
            assert relation is None
        read(store, table, ["name", "id"])
        with store.complete(table, ["id", "name"]) as relation:
            found = PLAIN.execute(f"SELECT * FROM {relation}").fetchall()
            assert found == plain(table, ["id", "name"])
        with store.complete(table, ["id", "day"]) as relation:
            assert relation is None


def test_a_file_stays_under_its_reader_when_it_is_dropped(tmp_path, table):
    with opened(tmp_path) as store:
        read(store, table, ["id"])
        with store.complete(table, ["id"]) as relation:
            store.forget("t")
            assert PLAIN.execute(f"SELECT count(*) FROM {relation}").fetchone() == (ROWS,)
        assert store.used_bytes == (0, 0)


def test_what_was_used_least_lately_goes_to_disk_and_then_away(tmp_path, table):
    with opened(tmp_path) as store:
        read(store, table, ["id", "name"])
        whole = store.used_bytes[0]
    with opened(tmp_path, memory=whole / 3, disk=whole / 2) as store:
        assert read(store, table, ["id", "name"]) == plain(table, ["id", "name"])
        memory, disk = store.used_bytes
        assert 0 < memory <= whole / 3
        assert 0 < disk <= whole / 2
        last, first = store.segments(table)[-1], store.segments(table)[0]
        assert store.has(last, ["id"])
        assert not store.has(first, ["id"])
        makes = store.makes
        assert read(store, table, ["id", "name"]) == plain(table, ["id", "name"])
        assert store.makes > makes


def test_without_budgets_segments_are_parsed_for_the_moment(tmp_path, table):
    with opened(tmp_path, memory=0.0) as store:
        assert read(store, table, ["id"]) == plain(table, ["id"])
        assert store.used_bytes == (0, 0)


def test_an_unwritable_folder_keeps_nothing_and_harms_nothing(tmp_path, table):
    (tmp_path / "kept").write_text("this is no folder")
    with opened(tmp_path, memory=1e6, disk=1e6) as store:
        assert read(store, table, ["id"]) == plain(table, ["id"])
        assert "kept" in store.problem
        assert store.used_bytes == (0, 0)


def test_many_readers_at_once_parse_each_segment_once(tmp_path, table):
    with opened(tmp_path) as store:
        answers, errors = [], []

        def work():
            cursor = duckdb.connect(config={"threads": 1})
            try:
                rows = []
                for segment in store.segments(table):
                    with store.reading(table, segment, ["id"], also=["day"]) as relation:
                        rows += cursor.execute(f"SELECT id FROM {relation}").fetchall()
                answers.append(rows)
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert all(rows == plain(table, ["id"]) for rows in answers)
        assert len(answers) == 6
        assert store.makes == len(store.segments(table))


class Stopped:
    """A reader that is cancelled as soon as it begins to parse."""

    def __init__(self):
        self.looks = 0

    def check(self):
        self.looks += 1
        if self.looks > 1:
            raise QueryCancelled("cancelled")

    @contextmanager
    def interrupting(self, cursor):
        raise QueryCancelled("cancelled")
        yield


def test_a_cancelled_reader_leaves_the_parsing_to_the_next(tmp_path, table):
    with opened(tmp_path) as store:
        first = store.segments(table)[0]
        with (
            pytest.raises(QueryCancelled),
            store.reading(table, first, ["id"], stop=Stopped()),
        ):
            pass
        assert store.makes == 0
        assert read(store, table, ["id"]) == plain(table, ["id"])


def test_a_bad_value_is_an_error_for_its_column_only_with_file_and_line(tmp_path):
    path = tmp_path / "bad.csv"
    lines = [f"{n},{'oops' if n == 1500 else n}" for n in range(ROWS)]
    path.write_text("\n".join(["a,b", *lines, ""]))
    columns = {"a": "INTEGER", "b": "INTEGER"}
    table = open_catalog(tables={"t": {"path": str(path), "columns": columns, "header": True}})["t"]
    with opened(tmp_path, target=4000) as store:
        assert read(store, table, ["a"], also=["b"]) == plain(table, ["a"])
        with pytest.raises(duckdb.Error) as theirs:
            plain(table, ["b"])
        with pytest.raises(QueryFailed) as ours:
            read(store, table, ["b"])
        assert "Line: 1502" in str(theirs.value)
        assert "Line: 1502" in str(ours.value)
        assert str(path) in str(ours.value)


def test_a_file_that_changes_is_noticed_and_what_was_kept_is_dropped(tmp_path, path):
    catalog = open_catalog(tables={"t": str(path)})
    with opened(tmp_path) as store:
        table = catalog["t"]
        read(store, table, ["id"])
        assert len(store.segments(table)) == store._kept.count
        path.write_text(TEXT.replace("name 3", "other"))
        with pytest.raises(InputMissing, match="has changed"):
            read(store, table, ["name"])
        catalog.refresh()
        new = catalog["t"]
        assert read(store, new, ["name"]) == plain(new, ["name"])
        assert len(store.segments(new)) == store._kept.count


def test_types_come_back_as_they_were(tmp_path):
    path = tmp_path / "types.csv"
    PLAIN.execute(
        f"""COPY (SELECT range::HUGEINT * 10**20::HUGEINT AS h, INTERVAL 1 DAY * range AS i,
        range::DECIMAL(30, 3) / 7 AS d, TIME '01:02:03' AS t, ['x', 'y'][1 + (range % 2)::INT] AS e,
        '{{"a": 1}}' AS j, TIMESTAMP '2024-01-01 00:00:00' AS s, NULL AS n, [range] AS l
        FROM range(300)) TO '{path}' (HEADER)"""
    )
    columns = {
        "h": "HUGEINT",
        "i": "INTERVAL",
        "d": "DECIMAL(30,3)",
        "t": "TIME",
        "e": "ENUM('x', 'y')",
        "j": "JSON",
        "s": "TIMESTAMP_S",
        "n": "BIGINT",
        "l": "HUGEINT[]",
    }
    table = open_catalog(tables={"t": {"path": str(path), "columns": columns, "header": True}})["t"]
    with opened(tmp_path, target=4000) as store:
        for names in (["h", "i", "d", "t"], ["e", "j", "s", "n"], ["l", "h"]):
            assert read(store, table, names) == plain(table, sorted(names, key=list(columns).index))
            with store.reading(table, store.segments(table)[0], names) as relation:
                described = PLAIN.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
            assert {row[0]: row[1] for row in described} == {name: columns[name] for name in names}


def test_costs_are_learnt_from_what_is_made_and_ridden_on(tmp_path, table):
    with opened(tmp_path) as store:
        costs = store.costs(table)
        assert (costs.makes, costs.rides) == (0, 0)
        read(store, table, ["id"])
        for segment in store.segments(table):
            store.rode(table, segment, 0.01)
        segments = len(store.segments(table))
        assert (costs.makes, costs.rides) == (min(20, segments), min(20, segments))
        assert costs.rows_in(table.bytes) == pytest.approx(ROWS, rel=0.2)
        store.scanned(table.key, table.bytes, ROWS, ["id"], 0.5)
        store.scanned("unknown", table.bytes, ROWS, ["id"], 0.5)
        assert costs.scans == 1


def test_costs_go_on_from_what_an_earlier_store_has_learnt(tmp_path, table):
    with opened(tmp_path) as store:
        read(store, table, ["id"])
        costs, learnt = store.costs(table), json.loads(json.dumps(store.learnt()))
    for is_known in (False, True):
        with opened(tmp_path) as later:
            if is_known:
                later.costs(table)
            later.recall(learnt)
            assert later.costs(table) == costs
            assert later.learnt() == learnt
            # What this one has seen is not written over.
            later.scanned(table.key, table.bytes, ROWS, ["id"], 0.5)
            now = later.learnt()
            later.recall(learnt)
            assert later.learnt() == now != learnt
            later.learn_anew()
            assert later.costs(table).makes == 0
    with opened(tmp_path) as later:
        later.recall({table.key: "of another version", "gone": learnt[table.key]})
        assert later.costs(table).makes == 0
        assert later.learnt()["gone"] == learnt[table.key]


def test_a_forked_child_begins_anew_and_leaves_the_files_alone(tmp_path, table):
    with opened(tmp_path) as store:
        read(store, table, ["id"])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                if store.used_bytes == (0, 0):
                    store.close()
                    code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        with store.complete(table, ["id"]) as relation:
            assert relation is not None
            assert PLAIN.execute(f"SELECT count(*) FROM {relation}").fetchone() == (ROWS,)


def test_unknown_columns_and_budgets_are_named(tmp_path, table):
    with opened(tmp_path) as store, pytest.raises(QueryardError, match="nme"):
        read(store, table, ["nme"])
    with pytest.raises(QueryardError, match="memory_bytes"):
        SegmentStore(-1)


def test_the_folder_is_gone_at_the_end(tmp_path, table):
    with opened(tmp_path, memory=0.0, disk=1e6) as store:
        read(store, table, ["id"])
        assert list((tmp_path / "kept").glob("*/*.parquet"))
    assert not list((tmp_path / "kept").glob("*/*"))


def test_a_full_disk_drops_what_does_not_fit(tmp_path, table, monkeypatch):
    def full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(MemoryFile, "copy_to", full)
    with opened(tmp_path, memory=0.0, disk=1e6) as store:
        assert read(store, table, ["id"]) == plain(table, ["id"])
        assert store.used_bytes == (0, 0)


def test_what_a_dead_process_left_is_removed_and_a_living_one_is_let_be(tmp_path, table):
    dead = tmp_path / "kept" / "4711-dead"
    dead.mkdir(parents=True)
    (dead / ".lock").touch()
    (dead / "x.parquet").touch()
    with opened(tmp_path) as other:
        read(other, table, ["id"])
        assert not dead.exists()
        with opened(tmp_path) as store:
            assert read(store, table, ["id"]) == plain(table, ["id"])
        with other.complete(table, ["id"]) as relation:
            assert PLAIN.execute(f"SELECT count(*) FROM {relation}").fetchone() == (ROWS,)


def test_a_table_that_was_never_cut_is_not_cut_to_see_whether_it_is_kept(tmp_path, path):
    table = open_catalog(tables={"never": str(path)})["never"]
    with opened(tmp_path) as store, store.complete(table, ["id"]) as relation:
        assert relation is None
        assert known_segments(table, store.target_bytes) is None


@pytest.mark.parametrize("ending", ["csv.gz", "jsonl", "jsonl.gz", "tsv", "parquet"])
def test_every_format_is_read_as_duckdb_reads_it(tmp_path, table, ending):
    folder = tmp_path / "year=2024"
    folder.mkdir()
    options = "(FORMAT csv, DELIMITER '\t')" if ending == "tsv" else ""
    PLAIN.execute(f"COPY (FROM {table.relation}) TO '{folder}/t.{ending}' {options}")
    other = open_catalog(tables={"o": {"path": str(folder / f"t.{ending}"), "filename": True}})["o"]
    with opened(tmp_path, target=4000) as store:
        if ending != "parquet":
            assert len(store.segments(other)) > 3
        columns = ["id", "name", "filename", "year"]
        assert read(store, other, columns, also=["day"]) == plain(other, columns)


def test_bad_json_is_told_with_file_and_line(tmp_path):
    path = tmp_path / "bad.jsonl"
    lines = [f'{{"a": {n}}}' if n != 900 else '{"a": "oops"}' for n in range(ROWS)]
    path.write_text("\n".join(lines))
    table = open_catalog(tables={"t": {"path": str(path), "columns": {"a": "BIGINT"}}})["t"]
    with pytest.raises(duckdb.Error) as theirs:
        plain(table, ["a"])
    with opened(tmp_path, target=4000) as store, pytest.raises(QueryFailed) as ours:
        read(store, table, ["a"])
    assert "in line 901" in str(theirs.value)
    assert "in line 901" in str(ours.value)
    assert str(path) in str(ours.value)
