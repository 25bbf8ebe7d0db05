"""The fluid references, against hand-made numbers and a naive simulation of the same rules."""

from __future__ import annotations

import doctest
import math
import random
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core.errors import InvalidModel
from queryard.core.model import Job, Phase, Query
from queryard.sim import references
from queryard.sim.references import (
    Demand,
    demands_of,
    processor_sharing,
    shortest_remaining_first,
)
from queryard.workload.model import Arrival, JobTruth, Workload

Reference = Callable[[list[Demand], float], dict[str, float]]
BOTH = pytest.mark.parametrize("reference", [processor_sharing, shortest_remaining_first])
SLOTS = 8.0


@st.composite
def demands(draw: st.DrawFn) -> list[Demand]:
    """Queries with a maximum rate of a few values, or any; no two with the same work."""
    found = []
    for number in range(draw(st.integers(1, 12))):
        work_s = draw(st.floats(0.1, 100)) + number * 0.0137129
        rate = draw(st.sampled_from([0.5, 1.0, 3.0, SLOTS]) | st.floats(0.1, SLOTS))
        arrival_s = draw(st.sampled_from([0.0, 1.0, 5.0]) | st.floats(0, 50))
        found.append(Demand(f"q{number}", arrival_s, work_s, work_s / rate))
    return found


def widest(demand: Demand) -> float:
    return min(SLOTS, demand.work_s / demand.alone_s)


def equal_rates(left: dict[Demand, float]) -> dict[Demand, float]:
    """Pour the slots in, the narrowest query first."""
    rates: dict[Demand, float] = {}
    free = SLOTS
    for place, demand in enumerate(sorted(left, key=widest)):
        rates[demand] = min(widest(demand), free / (len(left) - place))
        free -= rates[demand]
    return rates


def least_left_first(left: dict[Demand, float]) -> dict[Demand, float]:
    rates: dict[Demand, float] = {}
    free = SLOTS
    for demand in sorted(left, key=lambda one: left[one]):
        rates[demand] = min(widest(demand), free)
        free -= rates[demand]
    return rates


def naive(
    queries: list[Demand], rates_of: Callable[[dict[Demand, float]], dict[Demand, float]]
) -> dict[str, float]:
    """Recompute every rate at every arrival and end."""
    coming = sorted(queries, key=lambda demand: demand.arrival_s, reverse=True)
    left: dict[Demand, float] = {}
    responses: dict[str, float] = {}
    now_s = 0.0
    while coming or left:
        rates = rates_of(left)
        ends = [now_s + left[one] / rate for one, rate in rates.items() if rate > 1e-9]
        until_s = min([*ends, *(demand.arrival_s for demand in coming[-1:])])
        for one, rate in rates.items():
            left[one] -= rate * (until_s - now_s)
        now_s = until_s
        for one in [one for one in left if left[one] <= 1e-9]:
            del left[one]
            responses[one.id] = now_s - one.arrival_s
        while coming and coming[-1].arrival_s <= now_s:
            left[coming[-1]] = coming[-1].work_s
            coming.pop()
    return responses


@BOTH
def test_a_query_on_its_own_takes_its_time_alone(reference: Reference) -> None:
    assert reference([Demand("q", 3.0, 10.0, 5.0)], SLOTS) == {"q": 5.0}
    assert reference([Demand("q", 3.0, 16.0, 1.0)], SLOTS) == {"q": 2.0}  # not 16 slots wide
    assert reference([Demand("q", 3.0, 0.0, 4.0)], SLOTS) == {"q": 4.0}
    assert reference([], SLOTS) == {}


def test_sharing_gives_what_narrow_queries_leave_to_the_others() -> None:
    queries = [
        Demand("narrow", 0.0, 10.0, 10.0),  # 1 slot
        Demand("middle", 0.0, 20.0, 10.0),  # 2 slots
        Demand("wide", 0.0, 50.0, 6.25),  # 8 slots, has 5
    ]
    assert processor_sharing(queries, SLOTS) == {"narrow": 10, "middle": 10, "wide": 10}


def test_a_narrow_query_is_slowed_once_the_equal_share_falls_below_its_rate() -> None:
    queries = [Demand("narrow", 0.0, 40.0, 10.0)]  # 4 slots
    queries += [Demand(f"wide{i}", 5.0, 40.0, 5.0) for i in range(3)]
    # 4 slots for 5 s, then 2 slots for the 20 s of work left; then the rest at 8/3.
    found = processor_sharing(queries, SLOTS)
    assert found["narrow"] == pytest.approx(15)
    assert found["wide0"] == pytest.approx(10 + 20 / (8 / 3))


def test_the_shortest_goes_first_and_a_shorter_one_interrupts() -> None:
    queries = [Demand("long", 0.0, 80.0, 10.0), Demand("short", 2.0, 8.0, 1.0)]
    assert shortest_remaining_first(queries, SLOTS) == {"long": 11, "short": 1}


def test_what_the_shortest_cannot_use_goes_to_the_next() -> None:
    queries = [Demand("short", 0.0, 12.0, 2.0), Demand("long", 0.0, 80.0, 10.0)]
    # 6 slots for 2 s beside 2, then all 8 for the 76 left
    assert shortest_remaining_first(queries, SLOTS) == {"short": 2, "long": 2 + 76 / 8}


@given(demands())
@settings(max_examples=examples(100), deadline=None)
def test_they_agree_with_the_naive_simulation(queries: list[Demand]) -> None:
    sharing, shortest = naive(queries, equal_rates), naive(queries, least_left_first)
    assert processor_sharing(queries, SLOTS) == pytest.approx(sharing, rel=1e-6, abs=1e-6)
    assert shortest_remaining_first(queries, SLOTS) == pytest.approx(shortest, rel=1e-6, abs=1e-6)


@BOTH
@given(queries=demands())
@settings(max_examples=examples(60), deadline=None)
def test_no_response_is_below_the_time_alone_and_no_work_is_lost(
    reference: Reference, queries: list[Demand]
) -> None:
    found = reference(queries, SLOTS)
    assert found.keys() == {demand.id for demand in queries}
    assert all(found[demand.id] >= demand.alone_s for demand in queries)
    first_s = min(demand.arrival_s for demand in queries)
    last_s = max(demand.arrival_s + found[demand.id] for demand in queries)
    total_s = math.fsum(demand.work_s for demand in queries)
    assert total_s / SLOTS <= (last_s - first_s) * (1 + 1e-9)


@given(demands())
@settings(max_examples=examples(60), deadline=None)
def test_where_any_query_can_use_all_slots_shortest_first_is_better_and_as_busy(
    queries: list[Demand],
) -> None:
    queries = [demand._replace(alone_s=demand.work_s / SLOTS) for demand in queries]
    sharing = processor_sharing(queries, SLOTS)
    shortest = shortest_remaining_first(queries, SLOTS)
    assert sum(shortest.values()) <= sum(sharing.values()) * (1 + 1e-9)
    busy_until_s = [
        max(demand.arrival_s + found[demand.id] for demand in queries)
        for found in (sharing, shortest)
    ]
    assert busy_until_s[0] == pytest.approx(busy_until_s[1])


@BOTH
@pytest.mark.parametrize("gap_s", [0.0, 1.0], ids=["all at once", "one per second"])
def test_ten_thousand_queries_take_seconds_not_minutes(reference: Reference, gap_s: float) -> None:
    rng = random.Random(1)
    queries = []
    for number in range(10_000):
        work_s = rng.paretovariate(1.3) * 40
        queries.append(Demand(str(number), number * gap_s, work_s, work_s / rng.uniform(0.5, 200)))
    began = time.process_time()
    found = reference(queries, 200.0)
    assert time.process_time() - began < 10
    assert all(found[demand.id] >= demand.alone_s for demand in queries)


def test_a_workload_gives_its_demands_but_for_what_is_cancelled() -> None:
    query = Query("q", jobs=(Job("x", map=Phase(4)),), submit_s=3.0)
    gone = Query("gone", jobs=(Job("x", map=Phase(4)),))
    truth = {"x": JobTruth(map_s=2.0)}
    workload = Workload("w", (Arrival(query, truth), Arrival(gone, truth, cancel_s=1.0)))
    assert demands_of(workload, {"q": 2.0}) == [Demand("q", 3.0, 8.0, 2.0)]


@BOTH
def test_impossible_demands_are_named(reference: Reference) -> None:
    one = Demand("q", 0.0, 1.0, 1.0)
    with pytest.raises(InvalidModel, match="slots"):
        reference([one], 0.0)
    with pytest.raises(InvalidModel, match="'q'"):
        reference([one._replace(work_s=math.nan)], 1.0)
    with pytest.raises(InvalidModel, match="same id"):
        reference([one, one], 1.0)


def test_the_example_in_the_documentation_holds() -> None:
    assert doctest.testmod(references).failed == 0
