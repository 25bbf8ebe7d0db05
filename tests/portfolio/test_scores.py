"""What schedules are worth."""

from __future__ import annotations

import pytest

from queryard.core.errors import InvalidProfile
from queryard.portfolio import OBJECTIVES, Objective, QueryEnd, Schedule, objective_of
from queryard.portfolio.scores import METRICS, cost

DUE = QueryEnd("due", 0.0, 20.0, 100.0, deadline_s=15.0)
BATCH = QueryEnd("batch", 10.0, 30.0, 200.0)


def test_posums_vector() -> None:
    vector = OBJECTIVES["mixed"].vector(Schedule((DUE, BATCH)))
    assert vector == {"slowdown": pytest.approx(0.1), "violation": 25.0}
    assert OBJECTIVES["mixed"].score(vector) == pytest.approx(35.0)
    assert OBJECTIVES["batch"].score(vector) == pytest.approx(100.0, rel=1e-3)
    assert OBJECTIVES["deadline"].score(vector) == pytest.approx(25_000.0)


def test_a_lease_is_paid_by_whole_hours() -> None:
    assert cost(Schedule((), (1.0, 3600.0, 3601.0))) == 4


def test_response_and_makespan() -> None:
    schedule = Schedule((DUE, BATCH))
    assert METRICS["response"](schedule) == 20.0
    assert METRICS["makespan"](schedule) == 30.0


@pytest.mark.parametrize("name", METRICS)
def test_an_empty_queue_costs_nothing(name: str) -> None:
    assert METRICS[name](Schedule(())) == 0.0


def test_scaled_weights_do_not_depend_on_magnitudes() -> None:
    objective = Objective("even", {"violation": 1.0, "slowdown": 1.0}, scaled=True)
    usual = {"violation": 1e6, "slowdown": 0.01}
    assert objective.score({"violation": 1e6, "slowdown": 0.02}, usual) == pytest.approx(3.0)


def test_objectives_by_name_or_by_weights() -> None:
    assert objective_of("batch") is OBJECTIVES["batch"]
    assert objective_of({"response": 1.0}).weights == {"response": 1.0}
    with pytest.raises(InvalidProfile, match="did you mean 'mixed'"):
        objective_of("mixd")
    with pytest.raises(InvalidProfile, match="unknown metric 'respons'"):
        objective_of({"respons": 1.0})
    with pytest.raises(InvalidProfile, match="at least 0"):
        objective_of({"response": -1.0})
    with pytest.raises(InvalidProfile, match="no metric has a weight"):
        objective_of({})


def test_own_metrics() -> None:
    def late(schedule: Schedule) -> float:
        return float(sum(q.end_s > (q.deadline_s or q.end_s) for q in schedule.queries))

    own = Objective("late", {"late": 50.0, "response": 1.0}, own={"late": late})
    vector = own.vector(Schedule((DUE, BATCH)))
    assert vector == {"late": 1.0, "response": 20.0}
    assert own.score(vector) == 70.0
    with pytest.raises(InvalidProfile, match="unknown metric 'lat'; did you mean 'late'"):
        Objective("late", {"lat": 1.0}, own={"late": late})
