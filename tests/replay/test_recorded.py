"""A recorded session, simulated: under its own policy as it was, under others as it might be."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from queryard.core.commands import Finish, Grant
from queryard.core.errors import QueryardError
from queryard.core.events import (
    EstimateChanged,
    LeaseEnded,
    NodeJoined,
    PolicyChosen,
    QueryCancelled,
    QuerySubmitted,
    WidthChanged,
)
from queryard.core.journal import Journal, Step
from queryard.core.model import Divisible, Job, Node, Query
from queryard.history import HistoryReader
from queryard.policies import resolve_profile
from queryard.replay import Recorded, difference, recorded
from queryard.sim import Conditions, replay, simulate
from queryard.workload.model import Arrival, JobTruth, Workload

from .recorded_runs import keep

NODES = (Node("local", 4, 1e9),)


def _load(queries: int = 60, seed: int = 1) -> Workload:
    """Divisible queries, most of them small, for about 80 % of four slots."""
    draw = random.Random(seed)
    at_s, arrivals = 0.0, []
    for number in range(queries):
        work_s = 40.0 if draw.random() < 0.08 else draw.uniform(0.2, 4.0)
        query = Query(f"q{number}", (Job("query", divisible=Divisible(4)),), submit_s=at_s)
        arrivals.append(Arrival(query, {"query": JobTruth(work_s=work_s)}))
        at_s += draw.expovariate(1 / 1.6)
    return Workload("mix", tuple(arrivals), nodes=NODES)


def _kept(file: Path, policy: str, estimates: str = "oracle", **more: object) -> Recorded:
    run = simulate(_load(), NODES, resolve_profile(policy), estimates=estimates, **more)  # type: ignore[arg-type]
    keep(run.journal, file)
    with HistoryReader(file) as reader:
        return recorded(reader)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


@pytest.mark.parametrize(
    ("policy", "estimates"),
    [
        ("fifo", "oracle"),
        ("query-fair", "observed"),
        ("srtf", "oracle"),
        ("srtf", "oracle:1.0"),
        ("tls", "oracle:0.5"),
    ],
)
def test_the_same_policy_gives_the_same_responses(file: Path, policy: str, estimates: str) -> None:
    found = _kept(file, policy, estimates)
    again = found.simulate()
    assert len(again.queries) == 60
    error = difference(found, again)
    assert error is not None
    assert abs(error) < 0.06


def test_slots_that_come_back_late_are_part_of_the_world(file: Path) -> None:
    found = _kept(file, "query-fair", conditions=Conditions(revoke_delay_s=0.2))
    assert found.conditions.revoke_delay_s == pytest.approx(0.2, rel=0.05)
    error = difference(found, found.simulate())
    assert error is not None
    assert abs(error) < 0.05


def test_another_policy_is_another_run(file: Path) -> None:
    found = _kept(file, "fifo")
    as_it_was = found.mean_response_s
    better = difference(found, found.simulate(resolve_profile("srtf")))
    assert as_it_was is not None
    assert better is not None
    assert better < -0.3


def test_staged_queries_take_the_mean_of_their_tasks(file: Path) -> None:
    from queryard.workload import demo_workload

    load = demo_workload(3, ())
    first = replace(load, arrivals=load.arrivals[:40])
    keep(simulate(first, load.nodes, resolve_profile("tls")).journal, file)
    with HistoryReader(file) as reader:
        found = recorded(reader)
    error = difference(found, found.simulate())
    assert error is not None
    assert abs(error) < 0.1


def test_the_journal_replays(file: Path) -> None:
    assert replay(_kept(file, "tls", "oracle:0.5").journal) is None


def test_a_change_of_the_policy_is_made_again(file: Path) -> None:
    from queryard.sim import build
    from queryard.sim.ordering import USERS

    driver = build(_load(), NODES, resolve_profile("fifo"))
    driver.post(20.0, USERS, PolicyChosen(20.0, resolve_profile("srtf")))
    driver.run()
    assert driver.scheduler.journal is not None
    keep(driver.scheduler.journal, file)
    with HistoryReader(file) as reader:
        found = recorded(reader)
        assert [row["time_s"] for row in reader.policies("abc123")] == [20.0]
    error = difference(found, found.simulate())
    assert error is not None
    assert abs(error) < 0.03
    plain = difference(found, found.simulate(resolve_profile("fifo")))
    assert plain is not None
    assert plain > 0.2


# --- by hand -------------------------------------------------------------------------------------


def _submit(query: str, at_s: float, *more: object, width: int = 2) -> tuple[object, ...]:
    spec = Query(query, (Job("query", divisible=Divisible(width)),), submit_s=at_s)
    return (QuerySubmitted(at_s, spec), *more)


def _by_hand(file: Path, *steps: Step, twins: dict[str, str] | None = None) -> Recorded:
    joined = Step(0.0, (NodeJoined(0.0, Node("local", 2, 1e9)),), ())
    keep(Journal({}, {"order": "fifo"}, [joined, *steps]), file)
    with HistoryReader(file) as reader:
        return recorded(reader)


def test_widths_come_back_at_the_same_point_of_the_work(file: Path) -> None:
    # Two slots for 1 s, then only one can be used: 2 + 3 slot-seconds in 4 s.
    job = "q/query"
    found = _by_hand(
        file,
        Step(1.0, _submit("q", 1.0), (Grant(job, "local", 2),)),  # type: ignore[arg-type]
        Step(2.0, (WidthChanged(2.0, job, 1),), ()),
        Step(2.0, (LeaseEnded(2.0, job, "local", 1, "revoked"),), ()),
        Step(5.0, (LeaseEnded(5.0, job, "local", 1, "finished"),), (Finish("q"),)),
    )
    assert found.workload.arrivals[0].work_s == pytest.approx(5.0)
    assert found.mean_response_s == 4.0
    again = found.simulate()
    assert again.queries["q"].response_s == pytest.approx(4.0, abs=0.15)


def test_estimates_come_back_as_they_were_told(file: Path) -> None:
    job = "q/query"
    found = _by_hand(
        file,
        Step(
            1.0,
            _submit("q", 1.0, EstimateChanged(1.0, job, work_s=1.0)),  # type: ignore[arg-type]
            (Grant(job, "local", 2),),
        ),
        Step(3.0, (EstimateChanged(3.0, job, work_s=9.0),), ()),
        Step(6.0, (LeaseEnded(6.0, job, "local", 2, "finished"),), (Finish("q"),)),
    )
    assert [(told.after_s, told.held_s) for told in found.told[job]] == [(0.0, 0.0), (2.0, 4.0)]
    again = found.simulate()
    assert again.queries["q"].response_s == pytest.approx(5.0)


def test_a_cancelled_query_is_cancelled_again_and_counts_for_no_mean(file: Path) -> None:
    from queryard.core.commands import Fail, Revoke

    job = "q/query"
    found = _by_hand(
        file,
        Step(
            0.0,
            _submit("q", 0.0, EstimateChanged(0.0, job, work_s=50.0)),  # type: ignore[arg-type]
            (Grant(job, "local", 2),),
        ),
        Step(3.0, (QueryCancelled(3.0, "q"),), (Revoke(job, "local", 2),)),
        Step(3.0, (LeaseEnded(3.0, job, "local", 2, "revoked"),), (Fail("q", "cancelled"),)),
    )
    (arrival,) = found.workload.arrivals
    assert (arrival.work_s, arrival.cancel_s) == (50.0, 3.0)
    assert found.mean_response_s is None
    assert found.simulate().queries == {}


def test_queries_that_shared_an_execution_are_simulated_as_one(file: Path) -> None:
    first, twin = "q/query", "t/query"
    joined = Step(0.0, (NodeJoined(0.0, Node("local", 2, 1e9)),), ())
    steps = [
        Step(0.0, _submit("q", 0.0), (Grant(first, "local", 1),)),  # type: ignore[arg-type]
        Step(1.0, _submit("t", 1.0), (Grant(twin, "local", 1),)),  # type: ignore[arg-type]
        Step(
            3.0,
            (
                LeaseEnded(3.0, first, "local", 1, "finished"),
                LeaseEnded(3.0, twin, "local", 1, "finished"),
            ),
            (Finish("q"), Finish("t")),
        ),
    ]
    keep(Journal({}, {"order": "fifo"}, [joined, *steps]), file)
    _mark_twin(file, "t", "q")
    with HistoryReader(file) as reader:
        found = recorded(reader)
    assert [arrival.query.id for arrival in found.workload.arrivals] == ["q"]
    assert found.workload.arrivals[0].work_s == pytest.approx(5.0)
    assert (found.shared, list(found.real.queries)) == (1, ["q"])


def _mark_twin(file: Path, query: str, of: str) -> None:
    import sqlite3

    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE asked SET twin_of = ? WHERE query = ?", (of, query))


def test_a_session_without_queries_says_so(file: Path) -> None:
    joined = Step(0.0, (NodeJoined(0.0, Node("local", 2, 1e9)),), ())
    keep(Journal({}, {"order": "fifo"}, [joined]), file)
    with HistoryReader(file) as reader, pytest.raises(QueryardError, match="has asked nothing yet"):
        recorded(reader)


# --- a real one ----------------------------------------------------------------------------------


def test_a_live_session_replays_and_can_be_simulated(data: Path, file: Path) -> None:
    import queryard

    with queryard.connect(data, slots=2, memory="512 MB", history=file) as session:
        handles = [
            session.submit(f"SELECT count(*), {number} FROM facts", tenant="ab"[number % 2])
            for number in range(8)
        ]
        for handle in handles:
            handle.result().fetchall()
    with HistoryReader(file) as reader:
        found = recorded(reader)
        assert [row.outcome for row in reader.queries()] == ["finished"] * 8
        assert len(reader.past()) == 8
    assert replay(found.journal) is None
    assert len(found.real.queries) == 8
    for profile in (None, resolve_profile("fifo")):
        again = found.simulate(profile)
        assert all(row.response_s is not None for row in again.queries.values())
        assert len(again.queries) == 8
