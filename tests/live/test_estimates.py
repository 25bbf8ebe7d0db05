"""`Session.estimate`: what is expected of a query that is not run."""

from __future__ import annotations

import json

import duckdb
import pyarrow as pa
import pytest

import queryard
from queryard.core.errors import QueryardError
from queryard.estimate.expected import Expected

JOIN = """
    SELECT d.name, count(*) AS n FROM facts f JOIN small d ON f.k = d.k
    WHERE f.v > 10 GROUP BY d.name ORDER BY n DESC
"""


@pytest.fixture(scope="module")
def qy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("estimated")
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT i, i % 7 AS k FROM range(1000) r(i)")
        connection.execute(
            f"COPY (SELECT i % 7 AS k, i AS v, [i, i + 1] AS l FROM range(20000) r(i)) "
            f"TO '{folder}/facts.parquet'"
        )
        connection.execute(
            f"COPY (SELECT i AS k, 'name ' || i AS name FROM range(7) r(i)) "
            f"TO '{folder}/small.parquet'"
        )
    with queryard.connect(folder, write=True, slots=2, memory="512MB") as session:
        session.register("frame", pa.table({"k": [1, 2], "label": ["a", "b"]}))
        session.sql("CREATE TEMP TABLE own AS SELECT * FROM small")
        yield session


def check(figure: Expected) -> None:
    assert 0 <= figure.low <= figure.value <= figure.high


def test_a_native_query(qy) -> None:
    found = qy.estimate(JOIN)
    assert (found.plan, found.slots) == ("native", 2)
    assert found.by == "plan"
    assert found.bytes_read > 0
    assert 1 <= found.useful_slots <= found.slots
    assert found.work_s.value / 2 <= found.alone_s.value <= found.work_s.value
    for figure in (found.rows, found.work_s, found.memory_bytes, found.alone_s):
        check(figure)
    for job in found.jobs:
        for figure in (job.rows_expected, job.bytes_expected, job.seconds_expected):
            check(figure)
    scans = {job.tables[0]: job for job in found.jobs if job.tables}
    assert scans["small"].rows_expected == Expected(7.0, 7.0, 7.0)
    total_s = sum(job.seconds_expected.value for job in found.jobs)
    assert 0 < total_s < found.work_s.value


def test_a_staged_query(qy) -> None:
    found = qy.estimate(JOIN, plan="staged")
    assert (found.plan, found.by) == ("staged", "bytes")
    assert found.work_s.value == pytest.approx(
        sum(job.seconds_expected.value for job in found.jobs)
    )
    assert found.alone_s.value >= found.work_s.value / found.slots
    check(found.memory_bytes)
    refused = qy.estimate("SELECT v, row_number() OVER (ORDER BY v) FROM facts", plan="staged")
    assert refused.plan == "native"
    assert "window" in refused.reasons[0]


def test_jobs_of_a_staged_query_have_intervals_of_their_own(qy) -> None:
    text = "SELECT k, count(*) AS n FROM facts WHERE v > {} GROUP BY k ORDER BY n DESC LIMIT 3"
    found = qy.estimate(text.format(1), plan="staged")
    last = found.jobs[-1]
    assert last.rows_expected.high == last.rows_expected.value == 3  # no more than the limit
    before = [job.seconds_expected for job in found.jobs]
    for number in range(2, 6):
        qy.submit(text.format(number), plan="staged").result().fetchall()
    after = [job.seconds_expected for job in qy.estimate(text.format(9), plan="staged").jobs]
    for new, old in zip(after, before, strict=True):
        assert new.high / new.low != old.high / old.low
    wide = widths_of(qy, "SELECT k, v FROM facts"), widths_of(qy, JOIN)
    assert len({round(width, 3) for widths in wide for width in widths}) > 1


def widths_of(qy, sql: str) -> list[float]:
    jobs = qy.estimate(sql, plan="staged").jobs
    return [job.seconds_expected.high / job.seconds_expected.low for job in jobs]


def test_nothing_is_run(qy) -> None:
    before = qy.sql("SELECT count(*) FROM shop.t").fetchall()
    found = qy.estimate("INSERT INTO shop.t SELECT * FROM shop.t")
    assert found.work_s.value > 0
    qy.estimate("DROP TABLE shop.t")
    assert qy.sql("SELECT count(*) FROM shop.t").fetchall() == before


def test_a_template_that_has_run(qy) -> None:
    text = "SELECT k, sum(v) FROM facts WHERE v > {} GROUP BY k"
    assert qy.estimate(text.format(1)).by == "plan"
    handle = qy.submit(text.format(2))
    handle.result().fetchall()
    handle.wait()
    found = qy.estimate(text.format(3))
    assert found.by == "template"
    assert found.work_s.value == pytest.approx(max(0.002, handle.timing.work_s))
    assert sum(job.seconds_expected.value for job in found.jobs) < found.work_s.value


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT count(*) FROM frame JOIN facts USING (k)",
        "SELECT * FROM own ORDER BY k LIMIT 3",
        "SELECT * FROM shop.t WHERE k = 3",
        "PIVOT facts ON k USING sum(v)",
        "SELECT unnest(l), row_number() OVER (PARTITION BY k ORDER BY v) FROM facts",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 9) FROM r",
        "SELECT * FROM facts f, LATERAL (SELECT count(*) FROM own o WHERE o.k = f.k)",
        "UPDATE shop.t SET k = 1 WHERE i < 10",
        "CREATE TABLE shop.other AS SELECT * FROM facts",
        "SELECT * FROM facts WHERE v IN (SELECT k FROM own) OR v = 3",
    ],
)
def test_every_kind_of_statement(qy, sql: str) -> None:
    found = qy.estimate(sql)
    assert found.jobs
    check(found.work_s)
    check(found.rows)
    assert str(found).count("\n") >= len(found.jobs)


def test_parameters(qy) -> None:
    few = qy.estimate("SELECT * FROM facts WHERE v < ?", [10])
    many = qy.estimate("SELECT * FROM facts WHERE v < ?", [19_000])
    assert few.rows.value < many.rows.value


def test_how_it_shows_itself(qy) -> None:
    found = qy.estimate(JOIN)
    assert repr(found).startswith("<Estimate native: ")
    assert "by its plan" in str(found)
    assert "└─" in str(found)
    assert "<table>" in found._repr_html_()
    again = json.loads(json.dumps(found.to_dict()))
    assert again["work_s"]["low"] == found.work_s.low
    assert len(again["jobs"]) == len(found.jobs)
    explained = json.loads(json.dumps(qy.explain(JOIN).to_json()))
    assert explained["estimate"]["by"] == found.by


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELEC", "Parser Error"),
        ("SELECT 1; SELECT 2", "one at a time"),
        ("SELECT nothing FROM facts", r"LINE 1: SELECT nothing FROM facts"),
        ("", "statement"),
    ],
)
def test_what_cannot_be_estimated(qy, sql: str, problem: str) -> None:
    with pytest.raises(QueryardError, match=problem):
        qy.estimate(sql)
    with pytest.raises(QueryardError, match="unknown plan"):
        qy.estimate("SELECT 1", plan="other")


def test_what_came_stands_beside_what_was_expected(qy) -> None:
    for plan in ("native", "staged"):
        found = qy.explain(JOIN, analyze=True, plan=plan)
        last = found.jobs[-1]
        assert last.rows == 7
        assert last.rows_expected is not None
        assert found.estimate.work_s.value > 0
        lines = found.text().splitlines()
        assert lines[1].startswith("expected: ")
        head = next(line for line in lines if "slot time" in line)
        assert head.index("rows expected") < head.index("memory expected") < head.index("slot time")


def test_plain_explain_is_duckdbs_answer(qy) -> None:
    ((key, text),) = qy.sql("EXPLAIN SELECT max(v) FROM facts WHERE k = 1").fetchall()
    assert key == "physical_plan"
    assert "╭─" in text
    assert "expected" not in text
