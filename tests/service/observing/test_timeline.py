"""One query over time: its segments are those of the journal, and no slot is counted twice."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import wait_until

from queryard.core.commands import Grant, Launch
from queryard.core.events import LeaseEnded, QuerySubmitted, TaskFinished
from queryard.core.journal import Step
from queryard.core.model import Job, Phase, Query, TaskId
from queryard.history import AskedRow, EndedRow, History, HistoryReader, Overviews, SessionRow
from queryard.service.http import models_observing as models
from queryard.service.observing.segments import Segment, Times, held_s, segments, waits
from queryard.service.observing.timeline import Seen, timeline_document, told_of
from queryard.service.observing.visibility import Visibility
from service.http.serving import a_server
from service.http.test_queries import LONG, submitted
from service.observing.test_now import finish_all, long_query


def most_at_once(found) -> dict[str, int]:
    """The most slots that segments hold of each node at one time."""
    changes = defaultdict(list)
    for each in found:
        if each["slots"]:
            changes[each["node"]].append((each["from_s"], each["slots"]))
            changes[each["node"]].append((each["to_s"], -each["slots"]))
    most = {}
    for node, steps in changes.items():
        held = 0
        for _, slots in sorted(steps):  # what is given back comes first
            held += slots
            most[node] = max(most.get(node, 0), held)
    return most


def held_by_journal(file, query: str) -> float:
    """Slot-seconds of a query, from the grants and returns of the kernel's own journal."""
    with HistoryReader(file) as reader:
        journal = reader.journal(query.rpartition("-")[0])
    total = 0.0
    for step in journal.steps:
        for command in step.commands:
            if isinstance(command, Grant) and command.job.startswith(f"{query}/"):
                total -= command.slots * step.time_s
        for event in step.events:
            if isinstance(event, LeaseEnded) and event.job.startswith(f"{query}/"):
                total += event.slots * event.time_s
    return total


def test_a_query_that_has_ended_is_told_from_the_history(server, ann):
    query = submitted(ann, "SELECT sum(n) FROM numbers")
    assert ann.get(f"/v1/queries/{query}/rows").json()["rows"]
    wait_until(lambda: ann.get(f"/v1/queries/{query}/timeline").json()["ended_at"], 20)
    found = ann.get(f"/v1/queries/{query}/timeline").json()
    models.Timeline.model_validate(found)
    assert (found["status"], found["sql"]) == ("finished", "SELECT sum(n) FROM numbers")
    kinds = [each["kind"] for each in found["segments"]]
    assert kinds[0] == "waiting"
    assert "lease" in kinds
    host = server.yard.session.host
    assert host.flush_history()
    journal_s = held_by_journal(host.history_file, query)
    assert found["held_s"] == pytest.approx(journal_s, abs=0.01)
    assert all(most <= 2 for most in most_at_once(found["segments"]).values())
    assert found["actual"]["work_s"] >= 0
    assert found["predicted"]["work_s"] is not None
    assert found["has_operators"]
    assert ann.get(f"/v1/queries/{query}/plan").status_code == 200
    assert found["plan"].startswith("plan: native")


def test_a_query_that_gave_slots_back_has_several_leases(server, ann):
    first = submitted(ann, long_query(1))
    wait_until(lambda: ann.get("/v1/now").json()["running"], 20)
    time.sleep(0.3)
    others = [submitted(ann, long_query(number)) for number in (2, 3)]
    try:

        def told():
            found = ann.get(f"/v1/queries/{first}/timeline").json()
            return sum(each["kind"] == "lease" for each in found["segments"]) > 1 and found

        wait_until(told, 30)
        found = ann.get(f"/v1/queries/{first}/timeline").json()
        assert found["status"] == "running"
        assert found["ended_at"] is None
    finally:
        finish_all(server)
    for query in (first, *others):
        found = ann.get(f"/v1/queries/{query}/timeline").json()
        models.Timeline.model_validate(found)
        assert found["status"] == "cancelled"
        host = server.yard.session.host
        assert host.flush_history()
        journal_s = held_by_journal(host.history_file, query)
        assert found["held_s"] == pytest.approx(journal_s, abs=0.01)
        assert all(most <= 2 for most in most_at_once(found["segments"]).values())


def test_other_tenants_are_answered_as_for_queries_that_never_were(server, ann, eve, root):
    query = submitted(ann, "SELECT 7 AS of_sales")
    ann.get(f"/v1/queries/{query}/rows")
    for name in (query, "000000000000-1", "nonsense"):
        refused = eve.get(f"/v1/queries/{name}/timeline")
        assert refused.status_code == 404
        assert "of_sales" not in refused.text
        assert refused.json()["detail"].startswith(f"unknown query '{name}'")
    assert root.get(f"/v1/queries/{query}/timeline").status_code == 200


def test_queries_of_earlier_sessions_are_told(tmp_path):
    options = {"session": {"history": tmp_path / "history.sqlite"}}
    with a_server(tmp_path, **options) as server, server.client("ann") as ann:
        query = submitted(ann, "SELECT max(n) FROM numbers")
        assert ann.get(f"/v1/queries/{query}/rows").json()["rows"]
        secret = server.secrets["ann"]
    with a_server(tmp_path, **options) as server:
        server.secrets["ann"] = secret
        with server.client("ann") as ann:
            found = ann.get(f"/v1/queries/{query}/timeline").json()
            assert not found["has_operators"]
            assert ann.get(f"/v1/queries/{query}/plan").status_code == 404
    models.Timeline.model_validate(found)
    assert found["status"] == "finished"
    assert found["held_s"] > 0
    assert found["last_answer"] is None


def test_identical_queries_ride_together_and_other_tenants_are_counted(server, ann, eve):
    mine = submitted(ann, LONG)
    again = submitted(server.client("ben"), LONG)
    wait_until(lambda: len(ann.get("/v1/now").json()["running"]) == 2, 20)
    try:
        found = ann.get(f"/v1/queries/{again}/timeline").json()
        models.Timeline.model_validate(found)
        assert found["rode_with"] == [mine]
        assert found["rode_with_others"] == 0
    finally:
        finish_all(server)


def test_without_a_history_the_wait_is_told(tmp_path):
    with a_server(tmp_path) as server, server.client("ann") as ann:
        query = submitted(ann, "SELECT 1")
        ann.get(f"/v1/queries/{query}/rows")
        found = ann.get(f"/v1/queries/{query}/timeline").json()
        models.Timeline.model_validate(found)
        assert [each["kind"] for each in found["segments"]] == ["waiting"]


SPANS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 5), st.integers(1, 4)), max_size=20)


@given(SPANS, st.floats(0, 3), st.booleans())
def test_time_without_slots_fills_what_slots_leave(spans, queued_s, is_open):
    rows = [
        {
            "started_s": 100 + queued_s + begin,
            "ended_s": None if is_open and place == 0 else 100 + queued_s + begin + length,
            "slots": slots,
            "node": "local",
            "outcome": "",
        }
        for place, (begin, length, slots) in enumerate(spans)
    ]
    started_s = min((row["started_s"] for row in rows), default=None)
    times = Times(100.0, started_s, 100 + queued_s + 20)
    found = segments(times, rows, [], {})
    # Without slots, nothing overlaps; together with the slots, all of the time is covered.
    idle = [each for each in found if each.slots == 0]
    busy = [each for each in found if each.slots]
    assert all(one.to_s <= other.from_s for one, other in itertools.pairwise(idle))
    for each in idle:
        assert not any(
            other.from_s < each.to_s - 1e-9 and each.from_s < other.to_s - 1e-9
            for other in busy
            if other.to_s > other.from_s
        )
    edges = sorted({0.0, queued_s + 20, *(edge for each in found for edge in each[1:3])})
    for low, high in itertools.pairwise(edges):
        if high - low > 0.01:
            middle = (low + high) / 2
            assert any(each.from_s <= middle <= each.to_s for each in found)
    expected = sum(
        row["slots"]
        * ((times.until_s if row["ended_s"] is None else row["ended_s"]) - row["started_s"])
        for row in rows
    )
    assert held_s(found) == pytest.approx(expected)


def test_waits_tell_planning_slots_and_pauses_apart():
    times = Times(10.0, 13.0, 20.0)
    leases = [
        {"started_s": 13.0, "ended_s": 14.0, "slots": 2, "node": "n", "outcome": "revoked"},
        {"started_s": 16.0, "ended_s": 19.5, "slots": 1, "node": "n", "outcome": "finished"},
    ]
    found = segments(times, leases, [], {})
    assert [each.kind for each in found] == ["waiting", "paused", "paused", "lease", "lease"]
    assert found[3] == Segment("lease", 3.0, 4.0, 2, "n", "2 slots, revoked")
    jobs = [{"submitted_s": 11.0}]
    held = waits(times, jobs, found, {"memory": 1.0, "the cap of its pool": 3.0})
    assert held[1:3] == [
        {"reason": "memory", "s": 0.5},
        {"reason": "the cap of its pool", "s": 1.5},
    ]
    assert waits(times, jobs, found, {}) == [
        {"reason": "planning, or its client's own connection", "s": 1.0},
        {"reason": "its first slot", "s": 2.0},
        {"reason": "slots, after it had begun", "s": 2.0},
        {"reason": "its reader", "s": 0.5},
    ]


def test_tasks_that_others_rode_on_are_rides():
    times = Times(0.0, 1.0, 3.0)
    tasks = [
        {
            "launch": launch,
            "job": "q1/scan",
            "kind": "map",
            "task": launch,
            "node": "n",
            "started_s": 1.0 + launch,
            "ended_s": 2.0 + launch,
            "outcome": "finished",
        }
        for launch in (0, 1)
    ]
    found = segments(times, [], tasks, {1: 2})
    assert [each.kind for each in found] == ["waiting", "task", "ride"]
    assert found[2].label == "scan: map 2, finished, with 2 other queries"


def recorded(file, tenants: dict[str, str]) -> None:
    """Queries, each with one job of two maps; both are read once for all of them."""
    session = SessionRow("abc", 1000.0, "1", 1, 2, 1000, {}, {"name": "s3"})
    asked = {
        "sql": "SELECT 1",
        "template": "",
        "priority": 0.0,
        "deadline_s": None,
        "plan": "staged",
        "memory_bytes": 0,
        "predicted_work_s": None,
        "predicted_memory_bytes": None,
        "predicted_by": "",
    }
    history = History.open(file)
    history.begin(session)
    for query, tenant in tenants.items():
        history.asked(AskedRow(query=query, time_s=1.0, tenant=tenant, **asked))
    came = [QuerySubmitted(1.0, Query(query, (Job("scan", map=Phase(2)),))) for query in tenants]
    history.step(Step(1.0, tuple(came), ()))
    for number in (0, 1):
        tasks = tuple(TaskId(f"{query}/scan", "map", number) for query in tenants)
        history.step(Step(2.0 + number, (), (Launch(number, "n", tasks),)))
        history.step(Step(3.0 + number, (TaskFinished(3.0 + number, number),), ()))
    for query in tenants:
        row = EndedRow(query, 4.0, 2.0, "finished", "", 1.0, 2.0, None, 1, 0.0)
        history.ended(row)
    history.close()


def test_scans_that_queries_share_are_rides_and_other_tenants_are_counted(tmp_path):
    file = tmp_path / "history.sqlite"
    recorded(file, {"abc-1": "sales", "abc-2": "sales", "abc-3": "web"})
    sales = Visibility("sales")
    with Overviews(file) as reader:
        (record,) = reader.queries(session="abc", query="abc-1")
        found = timeline_document(told_of(record), reader, None, Seen(sales.may_see))
    models.Timeline.model_validate(found)
    assert [each["kind"] for each in found["segments"]] == ["waiting", "ride", "ride"]
    assert found["segments"][1]["label"] == "scan: map 1, finished, with 2 other queries"
    assert found["rode_with"] == ["abc-2"]
    assert found["rode_with_others"] == 1
    assert "abc-3" not in str(found)
    assert found["held_s"] == 2.0
    assert found["plan"] == "plan: staged\nscan: extract, 2 maps"


def test_tasks_of_its_own_that_share_a_read_share_a_slot(tmp_path):
    task = {"launch": 5, "kind": "map", "task": 0, "node": "n", "outcome": "finished"}
    tasks = [{**task, "job": f"q/{name}", "started_s": 1.0, "ended_s": 2.0} for name in "ab"]
    (_, only) = segments(Times(0.0, 1.0, 2.0), [], tasks, {})
    assert only == Segment(
        "task", 1.0, 2.0, 1, "n", "a: map 1, finished, with 1 task more of its own"
    )


def test_a_query_tells_what_it_waited_for(server, ann):
    server.yard.session.pause()
    query = submitted(ann, "SELECT min(n) FROM numbers")
    try:

        def told():
            return ann.get(f"/v1/queries/{query}/timeline").json()["waits"]

        paused = "the server, which was paused"
        wait_until(lambda: paused in [each["reason"] for each in told()], 20)
    finally:
        server.yard.session.resume()
    assert ann.get(f"/v1/queries/{query}/rows").json()["rows"]
    assert paused in [each["reason"] for each in told()]
    # A server that is started anew tells the same, from the history.
    host = server.yard.session.host
    with Overviews(host.history_file) as reader:

        def kept():
            # It is kept when the query is told to have ended: after its last row.
            assert host.flush_history()
            return reader.held_of(host.session_name, query)

        wait_until(lambda: paused in kept(), 20)
        assert kept()[paused] > 0
