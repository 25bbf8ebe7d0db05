"""Those who may come while the queue is worked off: who they are, and what they change."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core.model import Job, Node, Phase, Query
from queryard.portfolio import PortfolioSettings, Selector, Workers, candidates_of, try_out
from queryard.portfolio.coming import LEAST_PAST, LEAST_TASKS, foresee
from queryard.portfolio.past import Past
from queryard.portfolio.what_if import Coming, Worlds
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload import Mix, Workload, generate, parse_nodes
from queryard.workload.model import Arrival, JobTruth

ONE = (Node("n", 1),)
WORLDS = Worlds(3, 0.5)


def query(
    name: str, tasks: int, seconds: float, submit_s: float, due_s: float | None = None
) -> Arrival:
    spec = Query(name, (Job("j", map=Phase(tasks)),), submit_s=submit_s, deadline_s=due_s)
    return Arrival(spec, {"j": JobTruth(map_s=seconds)})


def driven(
    arrivals: list[Arrival],
    until_s: float,
    nodes: tuple[Node, ...] = ONE,
    estimates: str = "oracle",
) -> tuple[SimDriver, Past]:
    driver = build(Workload("w", tuple(arrivals)), nodes, "fifo", estimates=estimates)
    driver.run(until_s)
    past = Past(driver.estimates, driver.scheduler.state.settings)
    assert driver.scheduler.journal is not None
    for step in driver.scheduler.journal.steps:
        past.read(step)
    return driver, past


def steady(count: int = 10) -> list[Arrival]:
    """One every 4 s that takes 3 s on a node with one slot, some within 10 s."""
    return [
        query(f"q{n}", 1, 3.0, 4.0 * n, due_s=4.0 * n + 10.0 if n % 2 else None)
        for n in range(count)
    ]


LATEST = 10**6


def test_the_past_comes_once_more() -> None:
    driver, past = driven([*steady(), query("large", 40, 1.0, 38.5)], 39.5)
    now = driver.scheduler.state.now
    for coming in foresee(past, driver.scheduler, 4, LATEST):
        # The queue takes 40 s and a bit; in twice that a round and more comes.
        assert 18 <= len(coming) <= 26
        times_s = [of.arrival.query.submit_s for of in coming]
        assert times_s == sorted(times_s)
        assert now < times_s[0] <= now + 4.0
        gaps_s = {round(later - one, 6) for one, later in pairwise(times_s)}
        assert gaps_s <= {4.0, 2.5, 0.5}
        assert len({of.arrival.query.id for of in coming}) == len(coming)
        for arrival, told in coming:
            due_s = arrival.query.deadline_s
            assert due_s is None or due_s == pytest.approx(arrival.query.submit_s + 10.0)
            assert told["j"].map_s == arrival.truth["j"].map_s


def test_they_differ_from_world_to_world_and_not_from_time_to_time() -> None:
    driver, past = driven([*steady(20), query("large", 40, 1.0, 78.5)], 79.5)
    worlds = foresee(past, driver.scheduler, 6, LATEST)
    assert worlds == foresee(past, driver.scheduler, 6, LATEST)
    assert len({tuple(of.arrival.query.submit_s for of in world) for world in worlds}) == 6


def test_nothing_is_concluded_from_a_few() -> None:
    few = [*steady(LEAST_PAST - 1), query("large", 40, 1.0, 27.0)]
    driver, past = driven(few, 28.5)
    assert foresee(past, driver.scheduler, 3, LATEST) == ((), (), ())
    driver, past = driven([*steady(LEAST_PAST), query("large", 40, 1.0, 31.0)], 32.5)
    assert all(foresee(past, driver.scheduler, 3, LATEST))


def test_they_are_told_of_as_they_were_and_take_what_they_took() -> None:
    """Estimates that were off are so again."""
    driver, past = driven([*steady(), query("large", 40, 1.0, 38.5)], 39.5, estimates="oracle:1")
    factors = {
        round(told["j"].map_s / arrival.truth["j"].map_s, 6)
        for arrival, told in foresee(past, driver.scheduler, 1, LATEST)[0]
        if told["j"].map_s is not None
    }
    assert len(factors) > 3
    driver, past = driven([*steady(), query("large", 40, 1.0, 38.5)], 39.5, estimates="observed")
    assert all(not told for _, told in foresee(past, driver.scheduler, 1, LATEST)[0])


def test_after_a_burst_and_a_pause_none_comes_at_once() -> None:
    """As long as nobody has come, so it goes on, unless by chance a burst is near."""
    burst = [query(f"q{n}", 1, 1.0, 0.0) for n in range(20)]
    driver, past = driven([*burst, query("large", 1000, 1.0, 1000.0)], 1001.5)
    worlds = foresee(past, driver.scheduler, 8, LATEST)
    now = driver.scheduler.state.now
    assert all(of.arrival.query.submit_s > now + 1.0 for world in worlds for of in world)


def test_one_that_is_still_on_its_way_does_not_come_again() -> None:
    """What it will take is believed only; a wrong belief is not made worse."""
    driver, past = driven([*steady(), query("large", 400, 1.0, 38.5)], 39.5)
    for world in foresee(past, driver.scheduler, 4, LATEST):
        assert len(world) > 9
        assert {of.arrival.query.jobs[0].maps for of in world} == {1}


def test_large_ones_of_the_past_leave_no_world_empty() -> None:
    past_of_both = [query(f"q{n}", 1 if n % 3 else 3_000, 0.01, 40.0 * n) for n in range(12)]
    driver, past = driven([*past_of_both, query("last", 100, 5.0, 480.0)], 480.5)
    for world in foresee(past, driver.scheduler, 12, LATEST):
        assert world
        assert sum(of.arrival.query.jobs[0].maps for of in world) <= LEAST_TASKS


def test_a_flood_of_the_past_is_bounded() -> None:
    flood = [query(f"q{n}", 100, 1.0, 0.01 * n) for n in range(100)]
    driver, past = driven([*flood, query("last", 700, 1.0, 10.0)], 9_990.0)
    for most in (LATEST, 1_000):
        for world in foresee(past, driver.scheduler, 5, most):
            waiting = 700
            tasks = sum(of.arrival.query.jobs[0].maps for of in world)
            assert tasks <= min(waiting + 20, most - waiting)
    assert foresee(past, driver.scheduler, 2, 100) == ((), ())


def test_if_all_came_at_once_they_come_once() -> None:
    at_once = [query(f"q{n}", 1, 1.0, 0.0) for n in range(20)]
    driver, past = driven(at_once, 0.0, (Node("n", 20),))
    driver.run()
    assert len(foresee(past, driver.scheduler, 1, LATEST)[0]) <= 20


def test_a_name_that_is_taken_is_not_given_again() -> None:
    arrivals = [*steady(), query("coming-0", 9, 1.0, 38.5)]
    driver, past = driven(arrivals, 39.5)
    (world,) = foresee(past, driver.scheduler, 1, LATEST)
    assert world
    assert "coming-0" not in {of.arrival.query.id for of in world}


# --- in trials --------------------------------------------------------------------------------


def expected(arrival: Arrival) -> Coming:
    return Coming(arrival, {})


def test_they_are_part_of_a_trial() -> None:
    driver, _ = driven([query("long", 5, 10.0, 0.0)], 1.0)
    coming = ((expected(query("short", 1, 1.0, 12.0)),),)
    fifo, swrd = try_out(driver.scheduler, candidates_of(("fifo", "swrd")), coming=coming)
    assert {of.id: of.end_s for of in fifo.schedule.queries} == {"long": 50.0, "short": 51.0}
    # Of what it will take nothing is known, so that it may be short or not.
    assert {of.id for of in swrd.schedule.queries} == {"long", "short"}
    assert fifo.complete


def test_beyond_the_horizon_they_count_as_well() -> None:
    driver, _ = driven([query("long", 5, 10.0, 0.0)], 1.0)
    coming = ((expected(query("late", 2, 1.0, 100.0)),),)
    (trial,) = try_out(driver.scheduler, candidates_of(("fifo",)), coming=coming, horizon_s=20.0)
    assert {of.id: of.end_s for of in trial.schedule.queries}["late"] == 102.0
    assert not trial.complete


def test_they_are_not_waited_for() -> None:
    """What was foreseen is compared with what came of those who were there."""
    driver, past = driven([*steady(), query("large", 40, 1.0, 38.5)], 39.5)
    selector = Selector(PortfolioSettings(candidates_of(("fifo", "swrd"))), past=past)
    decision = selector.decide(driver.scheduler)
    assert decision.coming > 5
    assert decision.queries == 1
    selector.apply(decision)
    (judged,) = selector.reflection._forecasts
    assert set(judged.queries) == {"large"}


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(1) as started:
        yield started


@settings(max_examples=examples(8))
@given(seed=st.integers(0, 1000))
def test_none_is_lost_and_workers_find_the_same(workers: Workers, seed: int) -> None:
    nodes = parse_nodes("4x4")
    workload = generate(Mix(queries=14, deadlines=0.3, load=1.5, block_bytes=2e9), seed, nodes)
    last_s = workload.arrivals[-1].query.submit_s
    driver, past = driven(list(workload.arrivals), last_s, nodes)
    coming = foresee(past, driver.scheduler, WORLDS.number, LATEST)
    there = set(driver.scheduler.state.queries)
    candidates = candidates_of(("cost-of-delay", "fair", "marshal"))
    trials = try_out(driver.scheduler, candidates, coming=coming, worlds=WORLDS)
    for trial in trials:
        assert trial.complete
        for schedule, joining in zip(trial.schedules, coming, strict=True):
            names = {of.arrival.query.id for of in joining}
            assert {of.id for of in schedule.queries} == there | names
            assert all(of.end_s > of.submit_s for of in schedule.queries)
    found = workers.try_out(driver.scheduler, candidates, coming=coming, worlds=WORLDS)
    assert [trial.schedules for trial in found] == [trial.schedules for trial in trials]


def test_a_cluster_that_suits_the_queue_but_not_the_next_looks_dear() -> None:
    """With nobody coming, -x gives nodes back; those who come would miss them."""
    nodes = tuple(Node(f"n{n}", 1) for n in range(8))
    arrivals = [query(f"q{n}", 8, 4.0, 4.5 * n) for n in range(12)]
    driver, past = driven(arrivals, 51.0, nodes)
    candidates = candidates_of(("fifo",), ("+x", "-x"))
    coming = foresee(past, driver.scheduler, WORLDS.number, LATEST)

    def responses(**given: object) -> list[float]:
        trials = try_out(driver.scheduler, candidates, **given)  # type: ignore[arg-type]
        return [sum(of.response_s for of in trial.schedule.queries) for trial in trials]

    stay, shrink = responses()
    assert shrink == pytest.approx(stay)
    stay, shrink = responses(coming=coming)
    assert shrink > 1.2 * stay
