"""A portfolio in a real session: it decides, is told, can be changed, and survives its workers."""

from __future__ import annotations

import os
import signal
import time

import pytest
from waiting import wait_until

import queryard
from queryard.core.errors import InvalidProfile
from queryard.core.events import PolicyChosen
from queryard.history import HistoryReader
from queryard.sim import replay

from ..crowds import ENDLESS, check_empty, check_kernel, kernel, spin, spun

PORTFOLIO = {
    "portfolio": {
        "objective": "small queries fast",
        "candidates": ["fifo", "swrd", "s3-pays", "relaqs"],
        "least_s": 0.05,
        "period_s": 0.1,
        "share": 1.0,
        "late_s": 20.0,
    }
}


def crowd(session, number: int = 4):
    """A query that has all slots, and small ones behind it."""
    first = session.submit(ENDLESS)
    wait_until(lambda: first.status == "running")
    return first, [session.submit(spin(1)) for _ in range(number)]


def test_the_queue_is_served_by_another_policy_and_the_journal_replays(tmp_path):
    file = tmp_path / "history.sqlite"
    with queryard.connect(tables={}, slots=1, profile=PORTFOLIO, history=file) as session:
        assert session.profile["name"] == "fifo"
        assert session.portfolio["candidates"] == ["fifo", "swrd", "s3-pays", "relaqs"]
        assert session.policy_state().portfolio == session.portfolio
        first, small = crowd(session)
        # Under fifo, small queries would wait for ever.
        for handle in small:
            assert handle.result(60).fetchall()[0][1] == spun(1)
        state = session.policy_state()
        assert session.policy_decisions()
        first.cancel()
        changes = session.policy_changes()
        assert (changes[-1].before, changes[-1].by) == ("fifo", "portfolio")
        assert state.by == "portfolio"
        decisions = session.policy_decisions(1000)
        first_one = decisions[-1]
        assert {each["name"] for each in first_one["candidates"]} == {
            "fifo",
            "swrd",
            "s3-pays",
            "relaqs",
        }
        assert abs(first_one["at"] - time.time()) < 600.0
        assert session.policy_decisions(1) == decisions[:1]
        wait_until(lambda: not session.queries())
        check_empty(session)
        assert session.report().portfolio_cpu_s > 0.0
    with HistoryReader(file) as reader:
        journal = reader.journal(reader.session(None).session)
    chosen = [e for step in journal.steps for e in step.events if isinstance(e, PolicyChosen)]
    assert [event.reason for event in chosen] == [change.reason for change in reversed(changes)]
    assert all(event.by == "portfolio" for event in chosen)
    assert replay(journal, lambda scheduler: scheduler.validate()) is None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_is_killed_or_stopped_costs_one_decision(how):
    document = {"portfolio": {**PORTFOLIO["portfolio"], "late_s": 1.0, "candidates": ["fifo"]}}
    with queryard.connect(tables={}, slots=1, profile=document, history=False) as session:
        first, small = crowd(session, 2)
        # A worker that has answered is alive.
        wait_until(lambda: any(d["dropped"] is None for d in session.policy_decisions()))
        pid = session.host.policy.choosing.worker.pid
        os.kill(pid, how)

        def dropped():
            return [d for d in session.policy_decisions(1000) if d["dropped"] is not None]

        wait_until(lambda: bool(dropped()))
        assert "worker" in dropped()[-1]["dropped"]
        seen = session.policy_decisions(1)[0]["number"]
        wait_until(
            lambda: any(
                d["dropped"] is None and d["number"] > seen for d in session.policy_decisions()
            )
        )
        assert session.host.policy.choosing.worker.pid != pid
        check_kernel(session)
        first.cancel()
        for handle in small:
            assert handle.result(60).fetchall()[0][1] == spun(1)
        check_empty(session)


def test_a_portfolio_can_be_taken_up_and_left_while_queries_run():
    with queryard.connect(tables={}, slots=1, history=False) as session:
        assert session.portfolio is None
        handles = [session.submit(spin(2)) for _ in range(4)]
        session.use_profile("portfolio", by="token ops", reason="a busy day")
        assert session.policy_state().name == "marshal"
        assert session.policy_state().portfolio["objective"] == "small queries fast"
        assert session.chosen_profile == "portfolio"
        choosing = session.host.policy.choosing
        session.use_profile("portfolio")  # the same one goes on
        assert session.host.policy.choosing is choosing
        assert session.policy_state().by == "token ops"
        session.use_tenants({"web": {"weight": 2}}, by="token ops", reason="web is busy")
        # It goes on, within the new shares.
        assert session.host.policy.choosing is choosing
        assert session.portfolio is not None
        assert session.policy_state().reason == "web is busy"
        assert "web" in session.profile["pools"]["children"]
        session.use_profile("portfolio:throughput")  # another one begins anew
        assert session.host.policy.choosing is not choosing
        session.use_profile("fair")
        assert session.portfolio is None
        assert session.policy_state().portfolio is None
        assert session.host.policy.choosing is None
        for handle in handles:
            assert handle.result(60).fetchall()[0][1] == spun(2)
        check_empty(session)


def test_a_profile_of_a_catalog_file_may_be_a_portfolio(tmp_path):
    (tmp_path / "yard.toml").write_text(
        '[tables]\nt = "t.csv"\n[session]\nslots = [1, 2]\nhistory = false\n'
        '[session.profile.portfolio]\nobjective = "low cost"\ncandidates = ["fifo", "edf"]\n'
        'provisioning = ["+x", "-x"]\n'
    )
    (tmp_path / "t.csv").write_text("a\n1\n")
    with queryard.connect(tmp_path / "yard.toml") as session:
        assert session.profile["name"] == "fifo +x"
        assert session.profile["provisioning"]["maximum"] == 2
        assert session.sql("SELECT a FROM t").fetchall() == [(1,)]


def slots(session) -> int:
    return kernel(session, lambda k: sum(1 for n in k.state.nodes.values() if not n.draining))


def test_slots_are_given_back_for_low_cost_and_all_are_there_for_a_fixed_policy(tmp_path):
    file = tmp_path / "history.sqlite"
    document = {
        "portfolio": {
            **PORTFOLIO["portfolio"],
            "objective": {"leased": 1.0, "response": 0.01},
            "candidates": ["fifo"],
            "provisioning": ["+x", "-x"],
        }
    }
    with queryard.connect(tables={}, slots=(1, 3), profile=document, history=file) as session:
        assert slots(session) == 3
        # One slot does the same work as three, and costs less.
        first = session.submit(ENDLESS)
        wait_until(lambda: slots(session) == 1)
        assert session.profile["name"] == "fifo -x"
        check_kernel(session)
        session.use_profile("fair")
        wait_until(lambda: slots(session) == 3)
        first.cancel()
        assert session.sql(spin(1)).fetchall()[0][1] == spun(1)
        check_empty(session)
    with HistoryReader(file) as reader:
        journal = reader.journal(reader.session(None).session)
    assert replay(journal, lambda scheduler: scheduler.validate()) is None


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("portfolio:no such", "no such"),
        ("portfolio:low cost", r"slots=\(1, 2\)"),
        ({"portfolio": {"candidates": []}}, "candidates"),
        ({"portfolio": {"candidates": ["fifo", "fifo"]}}, "two candidates"),
        ({"portfolio": {"candidates": [{"order": "fifo"}]}}, "needs a name"),
        ({"portfolio": {"candidates": [{"name": "x", "portfolio": {}}]}}, "itself"),
        ({"portfolio": {"candidate": ["fifo"]}}, "did you mean 'candidates'"),
        ({"portfolio": {"share": 2}}, "share"),
        ({"portfolio": {"share": "much"}}, "share must be a number"),
        ({"portfolio": {"late_s": 0}}, "late_s"),
        ({"portfolio": {"patterns": -1}}, "patterns"),
        ({"portfolio": {"objective": 3}}, "objective"),
        ({"portfolio": {"objective": {"speed": 1}}}, "speed"),
        ({"portfolio": {"provisioning": ["x"]}}, "provisioning"),
        ({"portfolio": 3}, "table"),
        ({"portfolio": {}, "order": "fifo"}, "order"),
    ],
)
def test_what_is_wrong_with_a_portfolio_is_told(given, told):
    with pytest.raises(InvalidProfile, match=told):
        queryard.connect(tables={}, slots=2, profile=given, history=False)
