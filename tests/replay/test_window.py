"""A span of a history is a workload that policies can be compared on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from waiting import wait_until

import queryard
from queryard import QueryardError
from queryard.core.model import Tenant
from queryard.history import HistoryReader
from queryard.replay import window

SQL = "SELECT count(*) FROM range({}) t(i) WHERE i % 7 = 3"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, float]:
    """Two sessions: the history, the moment between them, and the end."""
    folder = tmp_path_factory.mktemp("lived")
    rows = "\n".join(f"{n},{n % 5}" for n in range(20000))
    (folder / "t.csv").write_text(f"n,k\n{rows}\n")
    with queryard.connect(folder, slots=2, memory="600 MB") as qy:
        handles = [qy.submit(SQL.format(400_000 + n), tenant="web") for n in range(6)]
        for handle in handles:
            handle.result()
        qy.sql("SELECT k, sum(n) FROM t GROUP BY k", plan="staged").fetchall()
        file = qy.host.history_file
    assert file is not None
    between = time.time()
    with queryard.connect(folder, slots=1, memory="600 MB") as qy:
        qy.pause("ann")
        handles = [
            qy.submit(SQL.format(300_000 + n), tenant="etl", deadline=60.0) for n in range(3)
        ]
        qy.host.ask(lambda coordinator: None)  # they were asked before the pause ends
        qy.resume()
        for handle in handles:
            handle.result()
        stopped = qy.submit(SQL.format(5_000_000_000))
        wait_until(lambda: stopped.status != "waiting")
        stopped.cancel()
        with pytest.raises(QueryardError):
            stopped.result()
    return file, between, time.time()


def test_it_has_the_queries_of_all_sessions_with_what_they_took(lived: tuple[Path, float, float]):
    file, between, end = lived
    with HistoryReader(file) as reader:
        found = window(reader, between - 3600, end)
        asked = {record.query: record for record in reader.queries()}
    trace = found.trace
    arrivals = {arrival.query.id: arrival for arrival in trace.workload.arrivals}
    assert arrivals.keys() == asked.keys()
    for query, arrival in arrivals.items():
        record = asked[query]
        assert arrival.query.tenant == record.tenant
        if record.plan == "native" and record.outcome == "finished":
            assert arrival.work_s == pytest.approx(record.held_s)
            response_s = record.ended_s - record.asked_s
            # Seconds since 1970 are known to less than a microsecond only.
            assert trace.responses_s[query] == pytest.approx(response_s, abs=2e-6)
    first = min(asked.values(), key=lambda record: record.asked_at)
    for query, arrival in arrivals.items():
        after_s = asked[query].asked_at - first.asked_at
        assert arrival.query.submit_s == pytest.approx(after_s, abs=1e-3)
    (staged,) = [query for query, record in asked.items() if record.plan == "staged"]
    assert all(job.map is not None for job in arrivals[staged].query.jobs)
    (cancelled,) = [query for query, record in asked.items() if record.outcome == "cancelled"]
    assert arrivals[cancelled].cancel_s is not None
    assert sum(node.slots for node in trace.workload.nodes) == 1, "of the last session"
    assert "sessions had other numbers of slots; all is simulated on 1" in trace.notes
    assert any("paused" in note for note in trace.notes)


def test_it_begins_and_ends_where_it_is_told_to(lived: tuple[Path, float, float]):
    file, between, end = lived
    with HistoryReader(file) as reader:
        first = window(reader, 0.0, between).trace.workload
        second = window(reader, between, end, slots=5).trace.workload
        assert {arrival.query.tenant for arrival in first.arrivals} == {"web", "default"}
        assert [arrival.query.tenant for arrival in second.arrivals] == ["etl"] * 3 + ["default"]
        assert (sum(node.slots for node in first.nodes), second.nodes[0].slots) == (2, 5)
        assert second.arrivals[0].query.deadline_s == pytest.approx(60.0, abs=1.0)
        for since, until, said in (
            (end + 10, end + 20, "no query has run"),
            (end, between, "let it end later"),
        ):
            with pytest.raises(QueryardError, match=said):
                window(reader, since, until)
        with pytest.raises(
            QueryardError, match=r"more than 10 queries were asked.*choose a shorter one"
        ):
            window(reader, 0.0, end, most=10)


def test_policies_are_compared_on_it_beside_what_was_recorded(lived: tuple[Path, float, float]):
    file, _, end = lived
    with HistoryReader(file) as reader:
        found = window(reader, 0.0, end, tenants=(Tenant("web", 2.0),))
    compared = queryard.compare(
        found.trace, policies="fifo,srtf", estimates=found.estimates, by_tenant=True
    )
    assert set(compared.scores) == {"fifo", "srtf"}
    assert "as recorded" in compared.references
    assert compared.scores["srtf"].queries == 11
    assert compared.scores["srtf"].unfinished <= 1
    assert found.estimates.startswith("oracle")
