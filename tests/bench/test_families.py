"""Families of workloads: the same data and queries each time, which run, and as in DuckDB."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import queryard
from bench import foreseen
from bench.families import FamilyError, family
from bench.families.drawn import draw_queries
from bench.families.drawn_shapes import SHAPES
from bench.live.possible import shortest_first
from queryard.engine.syntax.classify import classify
from queryard.load import Ground, Request

SIZE = 0.01
# Every so many of the queries go through Queryard, too.
SAMPLED = {"ssb": 4, "db_benchmark": 6, "drawn": 7}
ROOT = Path(__file__).parents[2]


def made(name: str, folder: Path, size: float = SIZE) -> Path:
    family(name).make(folder, size, lambda share, line: None)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return {name: made(name, tmp_path_factory.mktemp(name)) for name in SAMPLED}


def peer(name: str, folder: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for table, file in family(name).places(folder).items():
        connection.execute(f"CREATE VIEW {table} AS FROM read_parquet('{file}')")
    return connection


def rows(found) -> list[str]:
    """Without an order, and without the last digits, which depend on the order of a sum."""
    return sorted(str([_plain(value) for value in row]) for row in found)


def _plain(value: object) -> object:
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


@pytest.mark.parametrize("name", SAMPLED)
def test_data_are_the_same_each_time_and_kept(name, data, tmp_path):
    again = made(name, tmp_path)
    for table, file in family(name).files(again).items():
        one, other = (
            hashlib.blake2b(f.read_bytes()).hexdigest()
            for f in (file, data[name] / f"{table}.parquet")
        )
        assert one == other, table
    changed = {file: file.stat().st_mtime_ns for file in again.glob("*.parquet")}
    made(name, again)
    assert changed == {file: file.stat().st_mtime_ns for file in again.glob("*.parquet")}


@pytest.mark.parametrize("name", SAMPLED)
def test_all_queries_run_and_some_have_the_same_rows_through_queryard(name, data):
    chosen, folder = family(name), data[name]
    queries = chosen.queries(folder)
    assert len({query.name for query in queries}) == len(queries)
    assert len({query.sql for query in queries}) == len(queries)
    with peer(name, folder) as plain, queryard.connect(tables=chosen.places(folder)) as session:
        for place, query in enumerate(queries):
            expected = plain.execute(query.sql).fetchall()
            if place % SAMPLED[name] == 0:
                assert rows(session.sql(query.sql).fetchall()) == rows(expected), query.sql


@pytest.mark.parametrize("name", ["ssb", "drawn"])
def test_queries_of_a_template_differ_in_literals_only(name, data):
    templates: dict[str, set[str]] = {}
    for query in family(name).queries(data[name]):
        templates.setdefault(query.template, set()).add(classify(query.sql)[0].template)
    assert all(len(found) == 1 for found in templates.values())


def test_a_seed_draws_the_same_queries_and_another_seed_others():
    assert draw_queries(3, 1.0) == draw_queries(3, 1.0)
    assert 2.5 * len(SHAPES) < len(draw_queries(3, 1.0)) <= 3 * len(SHAPES)
    same = {query.sql for query in draw_queries(3, 1.0)} & {
        query.sql for query in draw_queries(4, 1.0)
    }
    assert len(same) < 10


def test_lineorder_is_lineitem_with_its_order(data):
    with peer("ssb", data["ssb"]) as plain:
        found = plain.execute(
            "SELECT count(*), count(DISTINCT lo_orderkey), count(c_custkey), count(p_partkey), "
            "count(s_suppkey), count(d_datekey) FROM lineorder "
            "LEFT JOIN customer ON lo_custkey = c_custkey LEFT JOIN part ON lo_partkey = p_partkey "
            "LEFT JOIN supplier ON lo_suppkey = s_suppkey "
            "LEFT JOIN dates ON lo_orderdate = d_datekey"
        ).fetchone()
    # As many as TPC-H has at scale 0.01, and each names a row of every other table.
    assert found == (60_175, 15_000, 60_175, 60_175, 60_175, 60_175)


def test_what_is_asked_wrongly_is_said(data, tmp_path):
    with pytest.raises(FamilyError, match=r"unknown family 'sbb'.*ssb"):
        family("sbb")
    with pytest.raises(FamilyError, match=r"holds ssb at size 0.01, not ssb at 2"):
        made("ssb", data["ssb"], 2.0)
    with pytest.raises(FamilyError, match=r"holds ssb, not drawn"):
        family("drawn").queries(data["ssb"])
    with pytest.raises(FamilyError, match=r"above 0"):
        made("drawn", tmp_path / "none", -1.0)
    with pytest.raises(FamilyError, match=r"make it with: python -m bench\.families drawn:0"):
        family("drawn").places(tmp_path)
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "events.parquet").touch()
    with pytest.raises(FamilyError, match=r"unknown origin"):
        made("drawn", stranger)


def test_texts_of_tpcds_are_read_from_the_folder_that_keeps_them(tmp_path):
    kept = tmp_path / ".queryard"
    kept.mkdir()
    (kept / "family.json").write_text('{"family": "tpcds", "size": 1.0}', encoding="utf-8")
    (kept / "queries.json").write_text('[[1, "SELECT 1;\\n"], [14, "SELECT 2"]]', encoding="utf-8")
    found = family("tpcds").queries(tmp_path)
    assert [(query.name, query.sql) for query in found] == [
        ("q01", "SELECT 1"),
        ("q14", "SELECT 2"),
    ]


def test_a_family_for_reporting_waits_until_the_model_is_frozen():
    for name in ("tpcds", "drawn:100"):
        with pytest.raises(FamilyError, match=r"--frozen"):
            family(name).check_frozen(None)
        family(name).check_frozen("0123abc")
    family("drawn:9").check_frozen(None)


def test_foreseen_keeps_what_a_model_can_be_fitted_to(data, tmp_path, capsys):
    kept = tmp_path / "kept.json"
    foreseen.main(["ssb", f"--data={data['ssb']}", "--repeats=1", f"--json={kept}", "--profile"])
    assert "rank correlation" in capsys.readouterr().out
    found = json.loads(kept.read_text(encoding="utf-8"))
    assert len(found["queries"]) == found["figures"]["queries"] == 23
    for row in found["queries"]:
        assert row["work_s"] > 0
        assert row["features"]["amounts"]
        assert row["plan"]
        assert row["profile"]["operator"]
        assert set(row["runs"]) == {"cpu_s_1", "wall_s_1", "cpu_s_2", "wall_s_2"}
        assert (row["seen_s"] is None) == (row["name"] == row["template"])


def test_the_shortest_start_first_as_many_as_there_are_slots(data):
    ground = Ground(None, family("ssb").places(data["ssb"]), 1, 1 << 30)
    queries = family("ssb").queries(data["ssb"])[:4]
    asked = [Request(query.name, 0.0, "default", query.name, query.sql) for query in queries]
    work_s = {query.name: float(-place) for place, query in enumerate(queries)}
    played = shortest_first(asked, work_s, ground)
    ended = sorted(played.outcomes, key=lambda outcome: outcome.ended_s or 0.0)
    assert [outcome.request.id for outcome in ended] == [one.name for one in reversed(queries)]
    assert {outcome.state for outcome in ended} == {"finished"}


@pytest.mark.long
def test_a_family_runs_at_once_from_end_to_end(data, tmp_path):
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "bench.live.at_once", "--quick", "--family=ssb"]
    done = subprocess.run(
        [*command, f"--data={data['ssb']}", f"--out={out}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    figures = json.loads(out.read_text(encoding="utf-8"))["figures"]
    assert sum(figure["most"] is not None for figure in figures) == 6
