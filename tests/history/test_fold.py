"""Jobs, tasks, leases, estimates and policies, read off the steps."""

from __future__ import annotations

from typing import Any

from history_samples import steps_of

from queryard.core.commands import Fail, Finish, Grant, Kill, Launch
from queryard.core.events import (
    LeaseEnded,
    NodeLost,
    PolicyChosen,
    QueryCancelled,
    QuerySubmitted,
    TaskFailed,
    TaskFinished,
)
from queryard.core.journal import Journal, Step
from queryard.core.model import Divisible, Job, Phase, Query, TaskId
from queryard.history.fold import Fold
from queryard.metrics import read_run
from queryard.policies import resolve_profile
from queryard.sim import simulate
from queryard.workload import demo_workload

STAGED = Query(
    "q", (Job("a", map=Phase(2), reduce=Phase(1)), Job("b", upstream=("a",), map=Phase(1)))
)


def _task(job: str, kind: str, index: int) -> TaskId:
    return TaskId(job, kind, index)  # type: ignore[arg-type]


def _folded(*steps: Step) -> dict[str, list[dict[str, Any]]]:
    fold = Fold()
    for step in steps:
        fold.see(step)
    return fold.take()


def test_a_divisible_job_and_its_leases() -> None:
    rows = _folded(*steps_of("q1"))
    (job,) = rows["jobs"]
    assert (job["job"], job["query"], job["width"], job["maps"]) == ("q1/query", "q1", 2, 0)
    assert (job["submitted_s"], job["started_s"], job["ended_s"]) == (1.0, 1.0, 3.0)
    assert job["outcome"] == "finished"
    assert [(r["slots"], r["started_s"], r["ended_s"], r["outcome"]) for r in rows["leases"]] == [
        (1, 1.0, 2.25, "revoked"),
        (1, 1.0, 3.0, "finished"),
    ]
    assert [(r["time_s"], r["work_s"]) for r in rows["estimates"]] == [(1.0, 3.0), (2.0, 4.0)]


def test_rows_are_given_again_only_when_they_change() -> None:
    fold = Fold()
    granted, revoking, returned, finished = steps_of("q1")
    fold.see(granted)
    assert [row["ended_s"] for row in fold.take()["leases"]] == [None]
    fold.see(revoking)
    assert not any(fold.take()[name] for name in ("jobs", "tasks", "leases"))
    fold.see(returned)
    assert {row["number"]: row["ended_s"] for row in fold.take()["leases"]} == {1: 2.25, 2: None}
    fold.see(finished)
    last = fold.take()
    assert [row["number"] for row in last["leases"]] == [2]
    assert len(last["jobs"]) == 1


def test_a_job_that_ends_without_a_slot() -> None:
    query = Query("twin", (Job("query", divisible=Divisible(2)),))
    rows = _folded(
        Step(1.0, (QuerySubmitted(1.0, query),), ()),
        Step(2.0, (LeaseEnded(2.0, "twin/query", "local", 0, "finished"),), (Finish("twin"),)),
    )
    (job,) = rows["jobs"]
    assert (job["started_s"], job["ended_s"], job["outcome"]) == (None, 2.0, "finished")
    assert rows["leases"] == []


def test_staged_jobs_end_with_their_last_task() -> None:
    rows = _folded(
        Step(
            0.0,
            (QuerySubmitted(0.0, STAGED),),
            (
                Launch(1, "n", (_task("q/a", "map", 0),)),
                Launch(2, "n", (_task("q/a", "map", 1),)),
            ),
        ),
        Step(1.0, (TaskFinished(1.0, 1),), ()),
        Step(2.0, (TaskFailed(2.0, 2, "no luck"),), (Launch(3, "n", (_task("q/a", "map", 1),)),)),
        Step(3.0, (TaskFinished(3.0, 3),), (Launch(4, "n", (_task("q/a", "reduce", 0),)),)),
        Step(4.0, (TaskFinished(4.0, 4),), (Launch(5, "n", (_task("q/b", "map", 0),)),)),
        Step(6.0, (TaskFinished(6.0, 5),), (Finish("q"),)),
    )
    first, second = rows["jobs"]
    assert (first["maps"], first["reduces"], first["ended_s"]) == (2, 1, 4.0)
    assert (second["upstream"], second["started_s"], second["ended_s"]) == ('["a"]', 4.0, 6.0)
    found = [(r["launch"], r["kind"], r["task"], r["outcome"], r["cause"]) for r in rows["tasks"]]
    assert found == [
        (1, "map", 0, "finished", ""),
        (2, "map", 1, "failed", "no luck"),
        (3, "map", 1, "finished", ""),
        (4, "reduce", 0, "finished", ""),
        (5, "map", 0, "finished", ""),
    ]


def test_cancelled_killed_and_lost_work() -> None:
    divisible = Query("d", (Job("query", divisible=Divisible(2)),))
    rows = _folded(
        Step(
            0.0,
            (QuerySubmitted(0.0, STAGED), QuerySubmitted(0.0, divisible)),
            (
                Launch(1, "n", (_task("q/a", "map", 0),)),
                Launch(2, "m", (_task("q/a", "map", 1),)),
                Grant("d/query", "m", 2),
            ),
        ),
        Step(1.0, (NodeLost(1.0, "m"),), ()),
        Step(2.0, (QueryCancelled(2.0, "q"),), (Kill(1),)),
        Step(3.0, (TaskFailed(3.0, 1, "killed"),), (Fail("q", "cancelled"),)),
        Step(4.0, (), (Fail("d", "no node"),)),
    )
    assert [(r["launch"], r["ended_s"], r["outcome"]) for r in rows["tasks"]] == [
        (1, 3.0, "killed"),
        (2, 1.0, "lost"),
    ]
    assert [(r["ended_s"], r["outcome"]) for r in rows["leases"]] == [(1.0, "lost")]
    assert [(r["job"], r["ended_s"], r["outcome"]) for r in rows["jobs"]] == [
        ("q/a", 3.0, "cancelled"),
        ("q/b", 3.0, "cancelled"),
        ("d/query", 4.0, "failed"),
    ]


def test_changes_of_the_policy() -> None:
    rows = _folded(Step(5.0, (PolicyChosen(5.0, {"order": "edf"}),), ()))
    assert rows["policies"] == [{"time_s": 5.0, "profile": '{"order":"edf"}'}]


def test_the_fold_of_a_simulated_run_agrees_with_its_metrics() -> None:
    load = demo_workload(0, ())
    journal: Journal = simulate(load, load.nodes, resolve_profile("srtf")).journal
    fold = Fold()
    tasks: dict[Any, dict[str, Any]] = {}
    jobs: dict[str, dict[str, Any]] = {}
    for step in journal.steps:
        fold.see(step)
        taken = fold.take()
        tasks |= {(r["launch"], r["job"], r["kind"], r["task"]): r for r in taken["tasks"]}
        jobs |= {r["job"]: r for r in taken["jobs"]}
    run = read_run(journal)
    assert len({key[0] for key in tasks}) == len(run.launches)
    ends = {launch.number: launch.end_s for launch in run.launches}
    assert all(row["ended_s"] == ends[row["launch"]] for row in tasks.values())
    for row in run.queries.values():
        own = [jobs[row.query.job_id(job.name)] for job in row.query.jobs]
        assert max(job["ended_s"] for job in own) == row.end_s
        assert min(job["started_s"] for job in own) == row.start_s
    # Nothing is remembered of queries that have ended.
    assert not any([fold._jobs, fold._of_query, fold._left, fold._tasks, fold._leases])
