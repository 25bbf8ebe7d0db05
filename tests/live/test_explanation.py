"""Explanations: operators and jobs, what was expected of them, and what came of it."""

from __future__ import annotations

import json

import duckdb
import pytest
from service.anywhere import PLACES, a_session

import queryard
from queryard.core.errors import QueryardError
from queryard.engine.errors import QueryFailed
from queryard.live.client import Client
from queryard.results.explanation import ExplainedJob, Explanation

JOIN = """
    SELECT d.name, count(*) AS n FROM facts f JOIN small d ON f.k = d.k
    WHERE f.v > 10 GROUP BY d.name ORDER BY n DESC
"""


@pytest.fixture(scope="module", params=PLACES)
def qy(request, tmp_path_factory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("explained")
    facts = pa.table({"k": [i % 7 for i in range(20_000)], "v": list(range(20_000))})
    pq.write_table(facts, folder / "facts.parquet", row_group_size=5_000)
    small = pa.table({"k": list(range(7)), "name": [f"name {i}" for i in range(7)]})
    pq.write_table(small, folder / "small.parquet")
    served = tmp_path_factory.mktemp("served")
    with a_session(request.param, served, folder, slots=2, memory="512MB") as session:
        yield session


def by_name(found: Explanation) -> dict[str, ExplainedJob]:
    return {job.name: job for job in found.jobs}


def check_order(found: Explanation) -> None:
    """Whatever is read stands before its reader."""
    seen: set[str] = set()
    for job in found.jobs:
        assert seen.issuperset(job.inputs)
        seen.add(job.name)


def test_a_native_plan(qy) -> None:
    found = qy.explain(JOIN)
    check_order(found)
    assert (found.plan, found.analyzed, found.seconds) == ("native", False, None)
    assert {job.operator for job in found.jobs} == {"join", "groupby", "extract"}
    scans = {job.tables[0]: job for job in found.jobs if job.tables}
    assert set(scans) == {"facts", "small"}
    assert scans["small"].rows_expected.value == 7
    assert scans["small"].bytes_expected.value > 7 * 8
    assert not qy.explain("SELECT 1").analyzed


def test_a_native_plan_with_figures(qy) -> None:
    found = qy.explain(JOIN, analyze=True)
    assert found.analyzed
    assert found.seconds > 0
    assert found.jobs[-1].rows == 7
    (scan,) = (job for job in found.jobs if job.tables == ("facts",))
    assert scan.rows == 19_989
    assert "slot time" in found.text()


def test_parameters_are_bound(qy) -> None:
    found = qy.explain("SELECT count(*) FROM facts WHERE v < ?", [100], analyze=True)
    assert any(job.rows == 100 for job in found.jobs)


def test_a_staged_plan(qy) -> None:
    found = qy.explain(JOIN, plan="staged")
    check_order(found)
    assert found.plan == "staged"
    assert not found.reasons
    assert all(job.map_tasks >= 1 for job in found.jobs)
    assert found.jobs[-1].rows is None


def test_a_staged_plan_with_figures(qy) -> None:
    found = qy.explain(JOIN, plan="staged", analyze=True)
    assert found.plan == "staged"
    assert found.jobs[-1].rows == 7
    assert found.seconds > 0


def test_why_it_is_not_staged(qy) -> None:
    sql = "SELECT v, row_number() OVER (ORDER BY v) FROM facts"
    for analyze in (False, True):
        found = qy.explain(sql, plan="staged", analyze=analyze)
        assert found.plan == "native"
        assert "window" in found.reasons[0]
        assert "not staged: window" in found.text()
        assert found.analyzed == analyze


def counted_statements(monkeypatch) -> list[str]:
    """Every statement that a client is asked to run, from now on."""
    asked: list[str] = []
    submit = Client.submit

    def counting(self, sql, *args, **options):
        asked.append(sql)
        return submit(self, sql, *args, **options)

    monkeypatch.setattr(Client, "submit", counting)
    return asked


def test_what_is_analyzed_runs_once(qy, monkeypatch) -> None:
    asked = counted_statements(monkeypatch)
    window = "SELECT v, row_number() OVER (ORDER BY v) FROM facts"
    for sql in (JOIN, window):
        qy.explain(sql, plan="staged", analyze=True)
    assert len(asked) == 2
    qy.explain("SELECT count(*) FROM facts WHERE v < ?", [100], plan="staged", analyze=True)
    assert len(asked) == 3


@pytest.mark.parametrize("plan", ["native", "staged"])
def test_what_writes_is_analyzed_once(tmp_path, plan) -> None:
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
    with queryard.connect(tmp_path, write=True, slots=2, memory="512MB") as session:
        found = session.explain("INSERT INTO shop.t FROM range(5)", analyze=True, plan=plan)
        assert session.sql("SELECT count(*) FROM shop.t").fetchall() == [(5,)]
        assert (found.plan, found.analyzed) == ("native", True)
        assert bool(found.reasons) == (plan == "staged")
        session.explain("INSERT INTO shop.t FROM range(5)", plan=plan)
        assert session.sql("SELECT count(*) FROM shop.t").fetchall() == [(5,)]
        # DuckDB measures nothing of this one, but has run it.
        found = session.explain("INSERT INTO shop.t VALUES (1)", analyze=True, plan=plan)
        assert found.notes
        assert session.sql("SELECT count(*) FROM shop.t").fetchall() == [(6,)]


@pytest.mark.parametrize("analyze", [False, True])
def test_an_error_shows_the_statement_that_was_asked_for(qy, analyze) -> None:
    sql = "SELECT count(*),\n" + "\n" * 8 + "  nothing FROM facts"
    with pytest.raises(QueryFailed) as plain:
        qy.sql(sql)
    with pytest.raises(QueryFailed) as explained:
        qy.explain(sql, analyze=analyze)
    assert "LINE 10:   nothing FROM facts\n           ^" in str(plain.value)
    assert str(explained.value) == str(plain.value)


def test_explaining_what_was_asked(qy) -> None:
    handle = qy.submit("SELECT max(v) FROM facts WHERE k = ?", [3])
    handle.result().arrow()
    found = handle.explain()
    assert found.plan == "native"
    assert any(job.tables == ("facts",) for job in found.jobs)
    staged = qy.submit(JOIN, plan="staged")
    staged.result().arrow()
    staged.wait()
    assert staged.explain().jobs[-1].rows == 7


def test_temporary_tables_are_explained_where_they_are(qy) -> None:
    qy.sql("CREATE TEMP TABLE own AS SELECT * FROM small")
    found = qy.explain("SELECT count(name) FROM own JOIN facts USING (k)")
    assert any("own" in table for job in found.jobs for table in job.tables)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT 1; SELECT 2", "one at a time"),
        ("EXPLAIN SELECT 1", "without EXPLAIN"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC", "Parser Error"),
    ],
)
def test_what_cannot_be_explained(qy, sql: str, problem: str) -> None:
    with pytest.raises(QueryardError, match=problem):
        qy.explain(sql)


def test_an_unknown_plan_is_named(qy) -> None:
    with pytest.raises(QueryardError, match="unknown plan 'stage'; did you mean 'staged'"):
        qy.explain("SELECT 1", plan="stage")


def test_as_text_and_json(qy) -> None:
    found = qy.explain(JOIN)
    lines = str(found).splitlines()
    assert lines[0].startswith("native: one job")
    assert any("└─" in line for line in lines)
    again = json.loads(json.dumps(found.to_json()))
    assert [job["name"] for job in again["jobs"]] == list(by_name(found))


def test_a_job_with_two_readers_is_told_once() -> None:
    jobs = (
        ExplainedJob("j1", "extract", "scan t"),
        ExplainedJob("j2", "groupby", "read j1", ("j1",)),
        ExplainedJob("j3", "join", "read j1", ("j1", "j2")),
    )
    text = Explanation("SELECT 1", "staged", jobs).text()
    assert text.count("scan t") == 1
    assert text.count("see above") == 1
