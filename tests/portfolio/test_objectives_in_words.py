"""Objectives in plain words rank policies as the words say."""

from __future__ import annotations

import pytest

from queryard.core.events import AnswerReported
from queryard.core.model import Job, Node, Phase, Query
from queryard.policies import resolve_profile
from queryard.portfolio import OBJECTIVES, candidates_of, objective_of, try_out
from queryard.portfolio.answers import unsure_by_query
from queryard.portfolio.scores import QueryEnd, Schedule, lateness, leased, missed, overdue
from queryard.sim.run import build
from queryard.workload import Workload
from queryard.workload.model import Arrival, JobTruth


def query(name: str, tasks: int, tenant: str = "a", due_s: float | None = None) -> Arrival:
    spec = Query(name, (Job("j", map=Phase(tasks)),), tenant=tenant, deadline_s=due_s)
    return Arrival(spec, {"j": JobTruth(map_s=1.0)})


def best(words: str, arrivals: list[Arrival], names: tuple[str, ...]) -> list[str]:
    """Candidates by their scores on a queue, the best first."""
    driver = build(Workload("w", tuple(arrivals)), (Node("n", 1),), resolve_profile("fifo"))
    driver.run(0.5)
    objective = objective_of(words)
    found = {
        trial.name: objective.score(objective.vector(trial.schedule))
        for trial in try_out(driver.scheduler, candidates_of(names))
    }
    return sorted(found, key=lambda name: (found[name], names.index(name)))


def test_small_queries_fast():
    queue = [query("large", 20), query("small", 1), query("other", 1)]
    assert best("small queries fast", queue, ("fifo", "swrd"))[0] == "swrd"


def test_deadlines_first():
    queue = [query("large", 8), query("small", 1), query("due", 6, due_s=7.5)]
    assert best("deadlines first", queue, ("fifo", "swrd", "edf"))[0] == "edf"


def test_deadlines_come_before_all_else():
    """Small queries wait for very long, and still outweigh no deadline."""
    small = [QueryEnd(f"s{n}", 0.0, 900.0, 0.1) for n in range(99)]
    due = QueryEnd("due", 0.0, 10.0, 1.0, deadline_s=10.0)
    late = due._replace(end_s=11.0)
    objective = OBJECTIVES["deadlines first"]
    in_time = objective.score(objective.vector(Schedule((*small, due))))
    quick = [query._replace(end_s=0.1) for query in small]
    missed_it = objective.score(objective.vector(Schedule((*quick, late))))
    assert 1.0 <= in_time <= 1.1
    assert missed_it == pytest.approx(3.0, abs=0.01)


def test_a_deadline_missed_by_a_hair_counts_a_hair():
    due = QueryEnd("due", 0.0, 10.0, 1.0, deadline_s=10.0)
    found = [overdue(Schedule((due._replace(end_s=end_s),))) for end_s in (2.0, 10.0, 10.01, 11.0)]
    assert found == pytest.approx([1.0, 1.0, 1.02, 3.0])


def test_early_answers_count_by_how_sure_they_are():
    exact = QueryEnd("a", 0.0, 10.0, 1.0)
    early = exact._replace(answers=((1.0, 0.5), (5.0, 0.1)))
    late = exact._replace(answers=((9.0, 0.5),))
    objective = OBJECTIVES["early answers"]
    found = [objective.score(objective.vector(Schedule((q,)))) for q in (early, late, exact)]
    assert found == pytest.approx([1.0 + 2.0 + 0.5, 9.5, 10.0])


def test_what_is_lost_already_counts_answers_as_well():
    early = QueryEnd("a", 0.0, 10.0, 1.0, answers=((1.0, 0.5), (5.0, 0.1)))
    assert Schedule((early,)).ended_by(3.0).queries[0].unsure_s == pytest.approx(2.0)


def test_a_query_with_several_answers_is_as_unsure_as_the_worst():
    def told(time_s: float, job: str, error: float) -> AnswerReported:
        return AnswerReported(time_s, f"q/{job}", 1, 1.0, 1.0, error)

    found = unsure_by_query(
        [told(1.0, "a", 4.0), told(2.0, "b", 4.0), told(3.0, "a", 1.0), told(4.0, "b", 2.0)]
    )
    assert found == {"q": ((2.0, 0.5), (3.0, 0.5), (4.0, 0.25))}


def test_fair_to_tenants():
    flood = [query(f"f{number}", 2, "flood") for number in range(8)]
    queue = [*flood, query("w", 3, "web"), query("l", 3, "lab")]
    order = best("fair to tenants", queue, ("swrd", "marshal", "fifo"))
    assert order[0] == "marshal"


def test_throughput_is_when_all_are_done():
    objective = OBJECTIVES["throughput"]
    soon = Schedule((QueryEnd("a", 0.0, 9.0, 1.0), QueryEnd("b", 0.0, 10.0, 1.0)))
    late = Schedule((QueryEnd("a", 0.0, 1.0, 1.0), QueryEnd("b", 0.0, 12.0, 1.0)))
    assert objective.score(objective.vector(soon)) < objective.score(objective.vector(late))


def test_metrics_of_deadlines_and_leases():
    queries = (
        QueryEnd("a", 0.0, 12.0, 1.0, deadline_s=10.0),
        QueryEnd("b", 0.0, 5.0, 1.0, deadline_s=10.0),
        QueryEnd("c", 0.0, 50.0, 1.0),
    )
    schedule = Schedule(queries, (4.0, 6.0))
    assert (missed(schedule), lateness(schedule), leased(schedule)) == (0.5, 0.1, 10.0)


@pytest.mark.parametrize("words", list(OBJECTIVES))
def test_every_objective_has_a_score_for_an_empty_schedule(words):
    objective = OBJECTIVES[words]
    assert objective.score(objective.vector(Schedule(()))) == 0.0


def test_what_is_lost_already_is_the_same_for_all():
    schedule = Schedule((QueryEnd("a", 0.0, 12.0, 1.0), QueryEnd("b", 8.0, 9.0, 1.0)))
    lost = schedule.ended_by(5.0)
    assert [query.end_s for query in lost.queries] == [5.0, 8.0]
