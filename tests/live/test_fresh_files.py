"""A query sees what was on disk when it was submitted."""

from __future__ import annotations

import threading
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import queryard
from queryard.core.errors import QueryardError


def add(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"v": [number]}), folder / f"part-{number:03}.parquet")


def count(qy, table: str = "events") -> int:
    return qy.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0]


@pytest.mark.parametrize("plan", ["native", "staged"])
@pytest.mark.parametrize("where", ["folder", "hive", "pattern", "file"])
def test_a_new_file_is_seen_by_the_next_query(tmp_path, where, plan):
    add(tmp_path / "events" / ("region=EU" if where == "hive" else ""), 0)
    (tmp_path / "c.toml").write_text('[tables]\nevents = "events/**/*.parquet"\n')
    place = {
        "folder": tmp_path,
        "hive": tmp_path,
        "pattern": None,
        "file": tmp_path / "c.toml",
    }[where]
    tables = {"events": str(tmp_path / "events" / "*.parquet")} if where == "pattern" else {}
    with queryard.connect(place, tables=tables, slots=1, history=False, plan=plan) as qy:
        for number in range(1, 11):
            region = f"region=R{number}" if where == "hive" else ""
            add(tmp_path / "events" / region, number)
            assert count(qy) == number + 1


def test_files_that_are_rewritten_and_removed_are_seen_by_the_next_query(tmp_path):
    for number in range(3):
        add(tmp_path / "events", number)
    with queryard.connect(tmp_path, slots=1, history=False) as qy:
        assert count(qy) == 3
        pq.write_table(pa.table({"v": range(10)}), tmp_path / "events" / "part-001.parquet")
        assert count(qy) == 12
        (tmp_path / "events" / "part-001.parquet").unlink()
        assert count(qy) == 2


def test_a_new_table_and_a_new_schema_are_seen_by_the_next_query(tmp_path):
    add(tmp_path / "events", 0)
    with queryard.connect(tmp_path, slots=1, history=False) as qy:
        (tmp_path / "people.csv").write_text("id\n1\n2\n")
        assert count(qy, "people") == 2
        (tmp_path / "sales").mkdir()
        (tmp_path / "sales" / "orders.csv").write_text("id\n1\n")
        (tmp_path / "sales" / "things.csv").write_text("id\n1\n2\n3\n")
        assert count(qy, "sales.orders") == 1
        assert qy.explain("SELECT * FROM sales.things").text()


def test_a_view_sees_new_files_of_tables_that_the_query_does_not_name(tmp_path):
    add(tmp_path / "events", 0)
    with queryard.connect(tmp_path, slots=1, history=False) as qy:
        qy.sql("CREATE VIEW seen AS SELECT * FROM events")
        add(tmp_path / "events", 1)
        assert count(qy, "events, seen") == 4


def test_a_table_of_a_database_file_that_changed_is_seen_by_the_next_query(tmp_path):
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    with queryard.connect(tmp_path, slots=1, history=False) as qy:
        assert len(qy.catalog) == 1
        with duckdb.connect(str(file)) as connection:
            connection.execute("CREATE TABLE u AS SELECT 2 AS b, 3 AS c")
        assert qy.sql("SELECT * FROM shop.u").fetchall() == [(2, 3)]


def test_queries_from_many_threads_see_the_files_that_each_has_written(tmp_path):
    add(tmp_path / "t0", 0)
    wrong: list[tuple[str, int]] = []

    def work(table: str) -> None:
        for number in range(8):
            add(tmp_path / table, number)
            if (seen := count(qy, table)) != number + 1:
                wrong.append((table, seen))

    with queryard.connect(tmp_path, slots=1, history=False) as qy:
        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_how_old_the_knowledge_of_files_may_be_is_a_setting(tmp_path):
    add(tmp_path / "events", 0)
    with queryard.connect(tmp_path, slots=1, history=False, fresh="1 h") as qy:
        add(tmp_path / "events", 1)
        assert count(qy) == 1
        assert qy.refresh() == ("events",)
        assert count(qy) == 2
    catalog = tmp_path / "c.toml"
    catalog.write_text('[session]\nfresh = "1 h"\n[tables]\nevents = "events"\n')
    with queryard.connect(catalog, slots=1, history=False) as qy:
        add(tmp_path / "events", 2)
        assert count(qy) == 2
    with pytest.raises(QueryardError, match=r"fresh: 'soon' is not a time; write one such as"):
        queryard.connect(tmp_path, fresh="soon")


def test_a_folder_that_cannot_be_looked_at_for_a_moment_does_not_fail_the_query(tmp_path):
    place = tmp_path / "data"
    (place).mkdir()
    (place / "people.csv").write_text("id\n1\n")
    with queryard.connect(place, slots=1, history=False) as qy:
        place.rename(tmp_path / "moved")
        assert qy.sql("SELECT 42").fetchall() == [(42,)]
        (tmp_path / "moved").rename(place)
        assert count(qy, "people") == 1


def test_a_catalog_file_that_is_being_edited_does_not_fail_the_query(tmp_path):
    add(tmp_path / "events", 0)
    catalog = tmp_path / "c.toml"
    catalog.write_text('[tables]\nevents = "events"\n')
    with queryard.connect(catalog, slots=1, history=False) as qy:
        catalog.write_text('[tables]\nevents = "ev')
        assert count(qy) == 1
        catalog.write_text('[tables]\nevents = "events"\nmore = "events/*.parquet"\n')
        assert count(qy, "more") == 1
