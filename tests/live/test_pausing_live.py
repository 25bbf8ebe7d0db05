"""A session that is paused starts no query, and its journal replays with the pauses in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until, wait_until_settled

import queryard
from queryard import QueryardError, Refused
from queryard.core import events as ev
from queryard.history import HistoryReader
from queryard.replay import recorded
from queryard.sim.replay import replay

LONG = "SELECT count(*) FROM range(40000000) t(i) WHERE i % 7 = {}"


def test_what_runs_goes_on_and_what_waits_starts_when_it_is_resumed(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    with queryard.connect(tmp_path, slots=2, memory="300 MB") as qy:
        running = qy.submit(LONG.format(1))
        wait_until(lambda: running.status != "waiting")
        qy.pause("ann")
        assert qy.paused_by == "ann"
        waiting = [qy.submit(f"SELECT {n}") for n in range(4)]
        assert running.result().fetchall() == [(5714286,)]
        assert {handle.status for handle in waiting} == {"waiting"}
        assert qy.why(waiting[0].id).reasons == ("no query starts: paused by ann",)
        assert qy.forecasts()[waiting[0].id].start_s is None
        qy.use_profile("fair")
        assert waiting[0].status == "waiting"
        qy.resume()
        assert qy.paused_by is None
        assert [handle.result().fetchall() for handle in waiting] == [[(n,)] for n in range(4)]
        qy.pause()
        last = qy.submit("SELECT 5")
        assert qy.why(last.id).reasons == ("no query starts: paused",)
        last.cancel()
        qy.resume()
        file = qy.host.history_file
    assert file is not None
    with HistoryReader(file) as reader:
        journal = reader.journal(reader.session().session)
        told = [event for step in journal.steps for event in step.events]
        pauses = [event for event in told if isinstance(event, ev.Paused | ev.Resumed)]
        assert [type(event).__name__ for event in pauses] == ["Paused", "Resumed"] * 2
        assert replay(journal) is None, "a fresh kernel decides the same"
        # As a workload: the queries that were answered, under any policy.
        found = recorded(reader)
        assert len(found.simulate({"order": "fifo"}).queries) == 5


def test_a_limit_on_waiting_queries_counts_all_of_them_in_a_pause(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    limits = {"waiting": 2, "wait": "5 min"}
    with queryard.connect(tmp_path, slots=2, memory="300 MB", limits=limits) as qy:
        qy.pause("ann")
        taken = [qy.submit(f"SELECT {n}") for n in range(2)]
        with pytest.raises(Refused, match="2 queries are waiting, and the limit is 2"):
            qy.submit("SELECT 3")
        qy.resume()
        assert [handle.result().fetchall() for handle in taken] == [[(0,)], [(1,)]]


def test_what_was_learnt_is_forgotten_also_for_queries_that_wait(tmp_path: Path):
    """A template that took long is predicted from its past, and from its plan after a reset."""
    (tmp_path / "t.csv").write_text("n\n1\n")
    slow = "SELECT count(*) FROM t, range(3000000) r(i) WHERE i % {} = 1 AND n < 9"
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        for number in range(2, 5):
            qy.sql(slow.format(number)).fetchall()
        assert qy.estimate(slow.format(5)).by == "template"
        qy.pause("ann")
        waiting = qy.submit(slow.format(6))
        assert waiting.timing.predicted_by == "template"
        qy.reset_models(["templates"])
        wait_until(lambda: waiting.timing.predicted_by != "template")
        qy.resume()
        waiting.result().fetchall()
        waiting.wait()
        assert qy.estimate(slow.format(5)).by == "template", "learnt anew"
        with pytest.raises(QueryardError, match="unknown model"):
            qy.reset_models(["weather"])


def settled_estimate(qy: queryard.Session, sql: str) -> Any:
    """What a query is expected to take, once what ended queries teach has arrived."""
    return wait_until_settled(lambda: qy.estimate(sql).work_s)


def test_what_a_reset_has_forgotten_can_be_given_back(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    slow = "SELECT count(*) FROM t, range(3000000) r(i) WHERE i % {} = 1 AND n < 9"
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        for number in range(2, 5):
            qy.sql(slow.format(number)).fetchall()
        before = settled_estimate(qy, slow.format(6))
        qy.pause("ann")
        waiting = qy.submit(slow.format(6))
        assert waiting.timing.predicted_by == "template"
        give_back = qy.reset_models()
        wait_until(lambda: waiting.timing.predicted_by != "template")
        give_back()
        wait_until(lambda: waiting.timing.predicted_by == "template")
        assert waiting.timing.predicted_work_s == pytest.approx(before.value)
        waiting.cancel()


def test_what_the_history_has_comes_back_where_a_reset_was_made_before_it_was_read(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    slow = "SELECT count(*) FROM t, range(3000000) r(i) WHERE i % {} = 1 AND n < 9"
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        for number in range(2, 5):
            qy.sql(slow.format(number)).fetchall()
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        give_back = qy.reset_models()
        assert qy.estimate(slow.format(5)).by != "template"
        give_back()
        assert qy.estimate(slow.format(5)).by == "template"


def test_the_past_before_a_reset_does_not_come_back_with_the_next_session(tmp_path: Path):
    (tmp_path / "t.csv").write_text("n\n1\n")
    slow = "SELECT count(*) FROM t, range(3000000) r(i) WHERE i % {} = 1 AND n < 9"
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        for number in range(2, 5):
            qy.sql(slow.format(number)).fetchall()
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        assert qy.estimate(slow.format(5)).by == "template"
    with queryard.connect(tmp_path, slots=1, memory="300 MB") as qy:
        qy.reset_models()
        assert qy.estimate(slow.format(5)).by != "template"
