"""Figures of the past are those that DuckDB computes directly from the rows of the history."""

from __future__ import annotations

import duckdb
import pytest

from queryard.history import HistoryReader, Overviews
from queryard.service.http import models_observing_past as models
from queryard.service.observing.performance import performance_document, queries_of
from queryard.service.observing.visibility import Visibility
from service.http.serving import a_server
from service.observing.past_days import DAY_S, TODAY, write_days

# Nothing of this is shared with the code under test, which reads SQLite and computes in Arrow.
DIRECT = """
WITH judged AS (
    SELECT {key} AS key, outcome, e.work_s, began_at + e.time_s AS at,
        CASE WHEN outcome = 'finished' THEN e.time_s - a.time_s END AS response_s,
        CASE WHEN outcome = 'finished' AND twin_of = ''
            THEN (e.time_s - a.time_s) / greatest(0.01, e.work_s / s.slots) END AS slowdown,
        CASE WHEN outcome = 'finished' AND twin_of = '' AND e.work_s >= 0.001
                AND coalesce(foreseen_s, predicted_work_s) > 0
            THEN greatest(e.work_s / coalesce(foreseen_s, predicted_work_s),
                          coalesce(foreseen_s, predicted_work_s) / e.work_s) END AS factor,
        CASE WHEN deadline_s IS NULL OR outcome = 'refused' THEN NULL
            WHEN outcome = 'finished' THEN e.time_s <= deadline_s
            WHEN outcome = 'cancelled' AND e.time_s <= deadline_s THEN NULL
            ELSE false END AS met
    FROM ended e JOIN asked a USING (session, query) JOIN sessions s USING (session)
    WHERE began_at + e.time_s >= {since} AND began_at + e.time_s < {until} AND {seen}
)
SELECT key, count(*), count(*) FILTER (outcome = 'failed'), count(*) FILTER (outcome = 'cancelled'),
    count(*) FILTER (outcome = 'refused'), coalesce(sum(work_s), 0), avg(response_s),
    quantile_cont(response_s, 0.5), quantile_cont(response_s, 0.95), avg(slowdown),
    count(*) FILTER (met), count(*) FILTER (NOT met), quantile_cont(factor, 0.5)
FROM judged GROUP BY key ORDER BY count(*) DESC, key
"""
NAMES = (
    "key",
    "queries",
    "failed",
    "cancelled",
    "refused",
    "work_s",
    "mean_response_s",
    "p50_response_s",
    "p95_response_s",
    "mean_slowdown",
    "met",
    "missed",
    "prediction_error",
)
KEYS = {
    "tenant": "tenant",
    "template": "template",
    "size": """CASE WHEN e.work_s IS NULL OR outcome = 'refused' THEN 'not run'
        WHEN e.work_s < 0.1 THEN 'below 0.1 s of work' WHEN e.work_s < 1 THEN '0.1 s to 1 s of work'
        WHEN e.work_s < 10 THEN '1 s to 10 s of work' ELSE '10 s of work and more' END""",
}
SEEN = {
    None: "true",
    "sales": "(tenant = 'sales' OR tenant LIKE 'sales/%')",
    "web": "tenant = 'web'",
}
STRETCHES = [(TODAY - 10 * DAY_S, TODAY + 10 * DAY_S), (TODAY - 2 * DAY_S, TODAY - 1.5 * DAY_S)]


def agrees(told, direct) -> bool:
    """Equal to the digits that are told."""
    if told is None or direct is None or isinstance(direct, str):
        return told == direct
    return told == pytest.approx(direct, rel=1e-4)


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """A history, and the same rows as tables of DuckDB."""
    folder = tmp_path_factory.mktemp("days")
    file = folder / "history.sqlite"
    write_days(file, 1500)
    with HistoryReader(file) as reader:
        reader.export(folder / "tables")
    direct = duckdb.connect()
    for table in ("asked", "ended", "sessions"):
        direct.execute(f"CREATE TABLE {table} AS FROM '{folder}/tables/{table}.parquet'")
    return file, direct


@pytest.mark.parametrize("stretch", STRETCHES)
@pytest.mark.parametrize("tenant", SEEN)
@pytest.mark.parametrize("by", KEYS)
def test_rows_are_those_that_duckdb_computes(days, stretch, tenant, by):
    file, direct = days
    since, until = stretch
    with Overviews(file) as reader:
        queries = queries_of(reader, Visibility(tenant), since, until)
    found = performance_document(queries, by, since, until)
    wanted = DIRECT.format(key=KEYS[by], since=since, until=until, seen=SEEN[tenant])
    expected = [dict(zip(NAMES, row, strict=True)) for row in direct.execute(wanted).fetchall()]
    told = [{**row, **row["deadlines"]} for row in found["rows"]]
    assert [row["key"] for row in told] == [row["key"] for row in expected]
    for row, direct_row in zip(told, expected, strict=True):
        for name in NAMES[1:]:
            assert agrees(row[name], direct_row[name]), (row["key"], name)


def test_all_together_and_steps_of_time_are_those_that_duckdb_computes(days):
    file, direct = days
    since, until = TODAY - 4 * DAY_S, TODAY
    with Overviews(file) as reader:
        queries = queries_of(reader, Visibility(None), since, until)
    found = performance_document(queries, "tenant", since, until)
    step_s = (until - since) / 60
    key = f"floor((began_at + e.time_s - {since}) / {step_s})::INT"
    wanted = DIRECT.format(key=key, since=since, until=until, seen="true")
    rows = direct.execute(wanted).fetchall()
    expected = {row[0]: dict(zip(NAMES, row, strict=True)) for row in rows}
    over_time = found["over_time"]
    assert len(over_time["at"]) == 60
    for step in range(60):
        direct_row = expected.get(step, dict.fromkeys(NAMES) | {"queries": 0})
        for name in ("queries", "mean_response_s", "p95_response_s", "prediction_error"):
            assert agrees(over_time[name][step], direct_row[name]), (step, name)
    wanted = DIRECT.format(key="''", since=since, until=until, seen="true")
    (row,) = direct.execute(wanted).fetchall()
    told = {**found["all"], **found["all"]["deadlines"]}
    for name, value in zip(NAMES, row, strict=True):
        assert agrees(told[name], value), name


def test_a_history_without_queries_has_no_figures():
    found = performance_document(None, "tenant", 0.0, 600.0)
    models.Performance.model_validate(found)
    assert found["rows"] == []
    assert found["all"]["mean_response_s"] is None


@pytest.fixture(scope="module")
def old_server(days, tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    file, _ = days
    copy = folder / "history.sqlite"
    copy.write_bytes(file.read_bytes())
    keep = {"history": copy, "retention": {"days": 100_000}}
    with a_server(folder, session=keep) as server:
        yield server


def test_a_token_sees_figures_of_its_tenant_only(old_server):
    given = {"since": TODAY - 10 * DAY_S, "until": TODAY + 10 * DAY_S}
    with old_server.client("ann") as ann, old_server.client("root") as root:
        own = ann.get("/v1/performance", params=given).json()
        models.Performance.model_validate(own)
        assert {row["key"] for row in own["rows"]} == {"sales", "sales/emea"}
        every = root.get("/v1/performance", params=given).json()
        assert {row["key"] for row in every["rows"]} == {"sales", "sales/emea", "salesforce", "web"}
        assert every["queries"] > own["queries"]
        for by in ("template", "size"):
            found = ann.get("/v1/performance", params={**given, "by": by})
            models.Performance.model_validate(found.json())
            assert "salesforce" not in found.text
            assert found.json()["queries"] == own["queries"]


def test_days_add_up_to_the_performance_of_all(old_server):
    with old_server.client("root") as root, old_server.client("ann") as ann:
        listed = root.get("/v1/archive").json()
        models.ArchiveList.model_validate(listed)
        days = listed["days"]
        assert [each["day"] for each in days] == sorted({each["day"] for each in days})[::-1]
        given = {"since": TODAY - 10 * DAY_S, "until": TODAY + 10 * DAY_S}
        every = root.get("/v1/performance", params=given).json()["all"]
        assert sum(each["queries"] for each in days) == every["queries"]
        assert sum(each["failed"] for each in days) == every["failed"]
        assert sum(each["work_s"] for each in days) == pytest.approx(every["work_s"], rel=1e-3)
        own = ann.get("/v1/archive").json()["days"]
        assert all(each["tenants"] <= 2 for each in own)
        assert sum(each["queries"] for each in own) < every["queries"]


def test_a_day_is_read_page_by_page(old_server):
    with old_server.client("ann") as ann:
        day = ann.get("/v1/archive").json()["days"][1]
        queries, start = [], 0
        while start is not None:
            given = {"limit": 40, "start": start}
            found = ann.get(f"/v1/archive/{day['day']}", params=given).json()
            models.ArchivedDay.model_validate(found)
            queries += found["queries"]
            start = found["next"]
        assert len(queries) == day["queries"] == found["performance"]["queries"]
        assert found["total"] == len(queries)
        assert len({each["id"] for each in queries}) == len(queries)
        assert {each["tenant"] for each in queries} <= {"sales", "sales/emea"}
        ends = [each["ended_at"] for each in queries]
        assert ends == sorted(ends, reverse=True)


@pytest.mark.parametrize("day", ["2026-13-01", "yesterday", "2026-1-1", "0000-00-00"])
def test_a_day_that_is_none_is_told_so(old_server, day):
    with old_server.client("ann") as ann:
        refused = ann.get(f"/v1/archive/{day}")
        assert refused.status_code == 404
        assert day in refused.json()["detail"]
