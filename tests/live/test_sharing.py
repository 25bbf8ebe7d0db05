"""Whether a query rides on a shared scan: by its own columns, and by those of the other riders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest
from waiting import wait_until

import queryard
from queryard.engine.syntax.classify import classify
from queryard.history import HistoryReader
from queryard.live import sharing
from queryard.live.sharing import ScanChoices, TextScan, columns_named, making_s, text_scans
from queryard.sql.statistics import analyze

ROWS = 4000


@pytest.fixture
def place(tmp_path: Path) -> Path:
    duckdb.sql(
        f"COPY (SELECT i AS k, i % 7 AS v, 'text ' || i AS s FROM range({ROWS}) r(i)) "
        f"TO '{tmp_path / 'a.csv'}'"
    )
    return tmp_path


@pytest.fixture
def small_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharing, "SMALL_S", 0.0)


def session_on(place: Path, **options: Any) -> queryard.Session:
    options = {"history": False, "statistics": "off", "slots": 2} | options
    session = queryard.connect(place, **options)
    session.host.engine.segments.target_bytes = 20e3
    return session


def scans_of(session: queryard.Session, sql: str) -> TextScan:
    (scan,) = text_scans(session.catalog, classify(sql), session.host.engine.segments)
    return scan


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT sum(V) FROM a", {"v"}),
        ('SELECT "k" FROM a WHERE v > 3', {"k", "v"}),
        ("SELECT count(*) FROM a", set()),
        ("SELECT sum(v) * 2 FROM a", {"v"}),
        ("SELECT * FROM a", {"k", "v", "s"}),
        ("SELECT v, * FROM a", {"k", "v", "s"}),
        ("SELECT a.* FROM a", {"k", "v", "s"}),
        ("SELECT COLUMNS(*) FROM a", {"k", "v", "s"}),
        ("FROM a", {"k", "v", "s"}),
        ("SELECT count(*) FROM (FROM a)", {"k", "v", "s"}),
    ],
)
def test_the_columns_of_a_query_are_those_that_it_names(place: Path, sql: str, columns: set[str]):
    with session_on(place) as session:
        assert set(columns_named(session.catalog["a"], classify(sql))) == columns


@pytest.mark.usefixtures("small_too")
def test_a_query_is_priced_by_its_own_columns_and_the_rows_that_were_counted(place: Path):
    with session_on(place) as session:
        store, table = session.host.engine.segments, session.catalog["a"]
        one = scans_of(session, "SELECT sum(v) FROM a")
        all_of_it = scans_of(session, "SELECT * FROM a")
        assert one.columns.keys() == {"v"}
        assert all_of_it.columns.keys() == {"k", "v", "s"}
        assert all_of_it.scan_s > one.scan_s
        # A column that takes long to parse counts.
        for _ in range(20):
            store.costs(table).saw_make(1e6, 1e4, ["s"], 60.0)
        slow = scans_of(session, "SELECT max(s) FROM a")
        usual = scans_of(session, "SELECT sum(v) FROM a")
        assert slow.columns["s"] > 5 * usual.columns["v"]
        assert slow.scan_s > usual.scan_s
        session.host.engine.segments.learn_anew()
        with store.reading(table, store.segments(table)[0], ["v"]):
            pass
        assert scans_of(session, "SELECT sum(v) FROM a").rows == pytest.approx(ROWS, rel=0.2)


@pytest.mark.usefixtures("small_too")
def test_statistics_tell_how_many_rows_there_are(place: Path):
    with session_on(place) as session:
        analyze(session.catalog, ["a"])
        assert scans_of(session, "SELECT sum(v) FROM a").rows == ROWS


@pytest.mark.usefixtures("small_too")
def test_what_is_kept_is_not_parsed_again(place: Path):
    with session_on(place) as session:
        store, table = session.host.engine.segments, session.catalog["a"]
        sql = "SELECT sum(v), max(s) FROM a"
        before = scans_of(session, sql)
        for segment in store.segments(table):
            with store.reading(table, segment, ["v"]):
                pass
        half = scans_of(session, sql)
        assert half.columns["v"] == 0.0 < half.columns["s"]
        assert half.make_s > 0.0, "its text is taken apart for the other column"
        for segment in store.segments(table):
            with store.reading(table, segment, ["s"]):
                pass
        assert making_s([scans_of(session, sql)]) == 0.0 < making_s([before])


def test_each_rider_counts_with_its_own_costs():
    choices = ScanChoices()
    mine = TextScan("t", 1.0, 1.5, 0.1, {"a": 0.5})
    light = TextScan("t", 0.2, 1.5, 0.1, {"a": 0.5})
    heavy = TextScan("t", 6.0, 1.5, 0.1, {"b": 0.5})
    assert choices.choose([mine], {}, 0.0).plan == "native"
    # 1.0 + 0.2 saves less than 2.0 to make; 1.0 + 6.0 saves more than the 2.5 for both columns.
    assert choices.choose([mine], {"t": [light]}, 0.0).plan == "native"
    assert choices.choose([mine], {"t": [heavy]}, 0.0).plan == "staged"
    wide = heavy._replace(columns={f"b{number}": 0.5 for number in range(16)})
    assert choices.choose([mine], {"t": [wide]}, 0.0).plan == "native"


@pytest.mark.usefixtures("small_too")
def test_segments_that_have_other_columns_are_no_reason_to_ride(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sharing, "sharing_pays", lambda *given: False)
    with session_on(place) as session:
        store, table = session.host.engine.segments, session.catalog["a"]
        for segment in store.segments(table)[1:]:
            with store.reading(table, segment, ["v"]):
                pass
        assert session.explain("SELECT sum(v) FROM a").plan == "staged"
        assert "are kept" in str(session.explain("SELECT sum(v) FROM a"))
        other = session.explain("SELECT sum(k) FROM a")
        assert other.plan == "native"
        assert "too" in str(other) or "no other query" in str(other)
        # It names a column that is kept, and one that is not.
        both = "SELECT sum(v), sum(k) FROM a"
        assert session.explain(both).plan == "native"
        assert "do not have all of" in str(session.explain(both))
        handle = session.submit(both)
        assert (
            handle.result().fetchall()
            == duckdb.sql(f"SELECT sum(v), sum(k) FROM '{place / 'a.csv'}'").fetchall()
        )
        assert handle.explain().plan == "native"


@pytest.mark.usefixtures("small_too")
def test_queries_that_duckdb_runs_teach_what_a_scan_takes(
    place: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sharing, "sharing_pays", lambda *given: False)
    duckdb.sql(f"COPY (SELECT 1 AS k) TO '{place / 'other.csv'}'")
    with session_on(place) as session:
        costs = session.host.engine.segments.costs(session.catalog["a"])
        for sql in ("SELECT sum(v) FROM a", "SELECT max(s) FROM a"):
            session.sql(sql).fetchall()
        wait_until(lambda: costs.scans == 2)
        # What they take is not the scan's time alone, or not all of it.
        for sql in ("SELECT v FROM a LIMIT 3", "SELECT count(*) FROM a JOIN other USING (k)"):
            session.sql(sql).fetchall()
        with pytest.raises(queryard.QueryardError):
            session.sql("SELECT sum(CAST(s AS INTEGER)) FROM a").fetchall()
        assert costs.scans == 2


@pytest.mark.usefixtures("small_too")
def test_what_sharing_costs_outlives_a_session_until_it_is_forgotten(
    place: Path, tmp_path_factory: pytest.TempPathFactory
):
    file = tmp_path_factory.mktemp("history") / "h.db"
    with session_on(place, history=file) as session:
        session.estimate("SELECT 1")  # reads the history
        handles = [session.submit(f"SELECT sum(v) + {n} FROM a", plan="staged") for n in (1, 2)]
        for handle in handles:
            handle.result().fetchall()
        store = session.host.engine.segments
        before = store.learnt()
        assert before["a"]["make"][1] > 0
    with HistoryReader(file) as reader:
        assert {row.model: row.state for row in reader.learnt()}["scans"] == before
    with session_on(place, history=file) as session:
        session.estimate("SELECT 1")
        store = session.host.engine.segments
        assert store.learnt() == before
        assert store.costs(session.catalog["a"]).makes == before["a"]["make"][1]
        session.reset_models()
        assert store.learnt() == {}


def test_a_small_table_of_text_is_not_shared_and_explain_says_so(place: Path):
    duckdb.sql(f"COPY (SELECT 1 AS k) TO '{place / 'p.parquet'}'")
    with session_on(place) as session:
        found = session.explain("SELECT sum(v) FROM a")
        assert found.plan == "native"
        assert "a: parsed in less than 0.25 s of a core" in str(found)
        assert "parsed in less" not in str(session.explain("SELECT count(*) FROM p"))


@pytest.mark.usefixtures("small_too")
def test_of_a_file_that_cannot_be_read_duckdb_tells(place: Path):
    (place / "bad.json").write_text("{'a': 1\n" * 100)
    with session_on(place) as session:
        handle = session.submit("SELECT sum(a) FROM bad")
        with pytest.raises(queryard.QueryardError):
            handle.result().fetchall()
        assert session.sql("SELECT count(*) FROM a").fetchall() == [(ROWS,)]


ASKED = (
    ("SELECT v, sum(k + ?) AS total FROM a WHERE k > ? GROUP BY v ORDER BY v", [3, 17]),
    ("SELECT v, sum(k) + ? FROM a WHERE s <> $x GROUP BY v ORDER BY v".replace("?", "$n"),
     {"n": 2.5, "x": "text 7"}),
    ("SELECT $2, max(s), count(*) FROM a WHERE v = $1 OR s = $2", [3, "text 7"]),
    ("SELECT count(*), ? FROM a WHERE v < ?", [None, 4]),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "parameters"), ASKED)
@pytest.mark.usefixtures("small_too")
def test_statements_with_parameters_share_and_answer_as_duckdb(
    place: Path, sql: str, parameters: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sharing, "sharing_pays", lambda *given: True)
    # In a session of its own: a query that comes while an identical one ends takes its plan.
    with session_on(place) as other:
        wanted = other.sql(sql, parameters, plan="native").arrow()
    with session_on(place) as session:
        handle = session.submit(sql, parameters)
        assert handle.result().arrow().equals(wanted)
        assert handle.explain().plan == "staged"
        assert handle.explain().sql == sql
        assert session.explain(sql, parameters, plan="staged").plan == "staged"
        found = session.explain(sql, parameters, plan="staged", analyze=True)
        assert found.plan == "staged"
        # All that it reads is kept by now, unless the fourth column is missing.
        assert session.submit(sql, parameters).result().arrow().equals(wanted)


@pytest.mark.usefixtures("small_too")
def test_parameters_that_cannot_be_written_are_bound_by_duckdb(place: Path):
    with session_on(place) as session:
        sql = "SELECT count(*) FROM a WHERE v IN (SELECT unnest(?))"
        found = session.explain(sql, [[1, 2]])
        assert found.plan == "native"
        assert "cannot be written as literals" in str(found)
        handle = session.submit(sql, [[1, 2]], plan="staged")
        wanted = session.sql("SELECT count(*) FROM a WHERE v IN (1, 2)").fetchall()
        assert handle.result().fetchall() == wanted
        with pytest.raises(queryard.QueryardError, match="parameter"):
            session.sql("SELECT sum(v) FROM a WHERE k > ?", [1, 2])
