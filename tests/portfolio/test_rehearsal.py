"""What candidates would have made of the past: the past as it was seen, and what follows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples, some_of

from queryard.core.events import EstimateChanged
from queryard.core.model import Divisible, Job, Node, Phase, Query
from queryard.core.state import Settings
from queryard.policies import resolve_profile
from queryard.portfolio import (
    OBJECTIVES,
    PortfolioSettings,
    Workers,
    candidates_of,
    in_force,
    simulate_portfolio,
)
from queryard.portfolio.past import STRETCH_QUERIES, STRETCHES, Past
from queryard.portfolio.rehearsal import rehearse
from queryard.sim import Conditions, simulate
from queryard.sim.driver import SimDriver
from queryard.sim.run import build
from queryard.workload import Mix, Workload, generate, parse_nodes
from queryard.workload.model import Arrival, JobTruth

NODES = parse_nodes("4x4")


def query(name: str, tasks: int, seconds: float, submit_s: float, cancel_s: float | None = None):
    spec = Query(name, (Job("j", map=Phase(tasks)),), submit_s=submit_s)
    return Arrival(spec, {"j": JobTruth(map_s=seconds)}, cancel_s)


def past_of(driver: SimDriver) -> Past:
    """All that a driver's journal tells; of what it knew in the beginning, only the name."""
    assert driver.scheduler.journal is not None
    past = Past(driver.estimates, driver.scheduler.state.settings)
    for step in driver.scheduler.journal.steps:
        past.read(step)
    return past


def ends_of(past: Past, driver: SimDriver, policy: str) -> dict[str, float]:
    scene = past.scene(driver.scheduler)
    assert scene is not None
    (trial,) = rehearse(scene, candidates_of((policy,)))
    return {ended.id: ended.end_s for ended in trial.schedule.queries}


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 1000), policy=st.sampled_from(("fifo", "fair", "tls", "srtf", "edf")))
def test_who_was_in_force_would_have_done_what_it_did(seed: int, policy: str) -> None:
    """Chance included: tasks take what they were seen to take."""
    workload = generate(Mix(queries=8, deadlines=0.3), seed, NODES)
    profile = resolve_profile(policy)
    driver = build(
        workload, NODES, profile, conditions=Conditions(noise=0.5), estimates="observed", seed=seed
    )
    driver.run()
    assert ends_of(past_of(driver), driver, policy) == pytest.approx(driver.ends)


def test_another_would_have_done_what_it_does() -> None:
    workload = generate(Mix(queries=10), 5, NODES)
    driver = build(workload, NODES, resolve_profile("fifo"))
    driver.run()
    real = simulate(workload, NODES, resolve_profile("swrd"))
    assert ends_of(past_of(driver), driver, "swrd") == pytest.approx(real.ends)


def test_times_are_of_a_node_of_speed_one() -> None:
    slow = (Node("slow", 1, map_speed=0.5),)
    workload = Workload("w", (query("q", 3, 10.0, 0.0),))
    driver = build(workload, slow, resolve_profile("fifo"))
    driver.run()
    assert driver.ends == {"q": 60.0}
    assert ends_of(past_of(driver), driver, "fifo") == {"q": 60.0}


def test_what_has_not_run_takes_what_is_expected_of_it() -> None:
    workload = Workload("w", (query("q", 4, 10.0, 0.0),))
    driver = build(workload, (Node("n", 1),), resolve_profile("fifo"))
    driver.run(25.0)
    assert ends_of(past_of(driver), driver, "fifo") == {"q": 40.0}


def test_cancelled_queries_and_divisible_work_are_left_out() -> None:
    divisible = Query("d", (Job("j", divisible=Divisible(1)),))
    workload = Workload(
        "w",
        (
            query("stays", 2, 5.0, 0.0),
            query("goes", 50, 5.0, 0.0, cancel_s=3.0),
            Arrival(divisible, {"j": JobTruth(work_s=4.0)}),
        ),
    )
    driver = build(workload, NODES, resolve_profile("fifo"))
    driver.run()
    assert set(ends_of(past_of(driver), driver, "fifo")) == {"stays"}


def test_failed_queries_are_left_out() -> None:
    """They stopped halfway; what they would have taken was not seen."""
    workload = Workload("w", tuple(query(f"q{n}", 30, 1.0, 0.0) for n in range(8)))
    conditions = Conditions(task_failure=0.3)
    driver = build(workload, NODES, resolve_profile("fifo"), conditions=conditions, seed=1)
    driver.run()
    failed = set(driver.failed)
    assert failed
    assert set(ends_of(past_of(driver), driver, "fifo")) == set(driver.ends) - failed


def test_whoever_must_not_take_a_whole_core_rests_during_a_rehearsal() -> None:
    workload = Workload("w", tuple(query(f"q{n}", 2, 1.0, float(n)) for n in range(10)))
    driver = build(workload, NODES, resolve_profile("fifo"))
    driver.run()
    scene = past_of(driver).scene(driver.scheduler)
    assert scene is not None
    rests: list[None] = []
    rehearse(scene, candidates_of(("fifo",)), rest=lambda: rests.append(None))
    assert len(rests) >= 10


def test_only_the_latest_past_is_kept() -> None:
    many = Workload("w", tuple(query(f"q{n}", 1, 1.0, float(n)) for n in range(300)))
    driver = build(many, NODES, resolve_profile("fifo"))
    driver.run()
    kept = ends_of(past_of(driver), driver, "fifo")
    assert STRETCH_QUERIES * (STRETCHES - 1) <= len(kept) <= STRETCH_QUERIES * STRETCHES
    assert list(kept)[-1] == "q299"


def test_it_is_rehearsed_again_when_it_has_grown() -> None:
    workload = Workload("w", tuple(query(f"q{n}", 2, 1.0, 10.0 * n) for n in range(40)))
    driver = build(workload, NODES, resolve_profile("fifo"))
    past = Past(driver.estimates, driver.scheduler.state.settings)
    journal = driver.scheduler.journal
    assert journal is not None
    read, looks = 0, []
    for n in range(40):
        driver.run(10.0 * n + 5.0)
        for step in journal.steps[read:]:
            past.read(step)
        read = len(journal.steps)
        looks += [n] if past.scene(driver.scheduler) is not None else []
    assert looks[:4] == [0, 1, 3, 6]
    assert len(looks) < 12


def test_workers_find_what_would_be_found_here() -> None:
    workload = generate(Mix(queries=12, deadlines=0.3), 2, NODES)
    for estimates in ("regression", "oracle:0.5"):
        driver = build(workload, NODES, resolve_profile("fifo"), estimates=estimates)
        driver.run()
        scene = past_of(driver).scene(driver.scheduler)
        assert scene is not None
        candidates = candidates_of(("fifo", "swrd", "edf"))
        here = rehearse(scene, candidates)
        with Workers(2) as workers:
            there = workers.rehearse(scene, candidates)
        assert [(t.name, t.schedules) for t in there] == [(t.name, t.schedules) for t in here]


def test_a_portfolio_finds_out_who_is_misled_by_estimates() -> None:
    """Large queries are said to be small and small ones large; sharing evenly needs neither."""

    def lie(now: float, arrival: Arrival) -> list[EstimateChanged]:
        is_large = arrival.query.id.startswith("large")
        return [EstimateChanged(now, f"{arrival.query.id}/j", 0.001 if is_large else 1000.0)]

    arrivals = []
    for n in range(30):
        arrivals.append(query(f"large{n}", 100, 1.0, 100.0 * n))
        arrivals += [query(f"small{n}.{k}", 1, 1.0, 100.0 * n + 5.0 + k) for k in range(3)]
    workload, nodes = Workload("w", tuple(arrivals)), (Node("n", 2),)
    means = {}
    for rehearses in (True, False):
        chosen = PortfolioSettings(
            candidates_of(("swrd", "fair")),
            OBJECTIVES["response"],
            rehearse=rehearses,
            worlds=1,
            share=1.0,
        )
        found = simulate_portfolio(workload, nodes, chosen, estimates=lie)
        ends = found.run.ends
        waits = [ends[a.query.id] - a.query.submit_s for a in arrivals]
        means[rehearses] = sum(waits) / len(waits)
        used = in_force(found.decisions, max(ends.values()))
        assert (used.get("fair", 0.0) > 0.5) is rehearses
    assert means[True] < 0.7 * means[False]


def test_it_goes_on_when_as_much_is_forgotten_as_comes() -> None:
    workload = Workload("w", tuple(query(f"q{n}", 20, 1.0, 10.0 * n) for n in range(400)))
    chosen = PortfolioSettings(candidates_of(("fifo", "fair")), share=1.0, period_s=20.0)
    found = simulate_portfolio(workload, NODES, chosen)
    rehearsed = [d.time_s for d in found.decisions if d.rehearsed]
    assert rehearsed[-1] > 3000.0


def test_maps_leave_what_they_were_seen_to_leave() -> None:
    workload = generate(Mix(queries=6), 3, NODES)
    leaving = replace(
        workload,
        arrivals=tuple(
            replace(
                arrival,
                truth={
                    name: replace(truth, map_output_bytes=100.0)
                    for name, truth in arrival.truth.items()
                },
            )
            for arrival in workload.arrivals
        ),
    )
    driver = build(leaving, NODES, resolve_profile("fifo"))
    driver.run()
    scene = past_of(driver).scene(driver.scheduler)
    assert scene is not None
    for arrival in scene.workload.arrivals:
        assert {truth.map_output_bytes for truth in arrival.truth.values()} == {100.0}


def test_early_reduces_do_not_wait_twice() -> None:
    job = Job("j", map=Phase(4), reduce=Phase(1))
    truth = JobTruth(map_s=10.0, shuffle_s=2.0, reduce_s=5.0)
    workload = Workload("w", (Arrival(Query("q", (job,)), {"j": truth}),))
    early = Settings(slow_start=0.25)
    driver = build(workload, (Node("n", 2),), resolve_profile("fifo"), settings=early)
    driver.run()
    assert ends_of(past_of(driver), driver, "fifo")["q"] <= driver.ends["q"] + 2.0


@pytest.mark.parametrize("policy", some_of(["s3", "tls", "srtf"], 1))
def test_failures_riders_and_lost_nodes_do_no_harm(policy: str) -> None:
    nodes = parse_nodes("2x4")
    workload = generate(Mix(queries=10, deadlines=0.3, block_bytes=1e9), 4, nodes)
    conditions = Conditions(noise=0.3, task_failure=0.05, node_mtbf_s=300.0, node_repair_s=60.0)
    chosen = PortfolioSettings(candidates_of((policy, "fair")), share=1.0, period_s=5.0)
    found = simulate_portfolio(
        workload, nodes, chosen, conditions=conditions, estimates="regression", seed=4
    )
    assert not found.run.unfinished
    assert any(decision.rehearsed for decision in found.decisions)
    again = simulate_portfolio(
        workload, nodes, chosen, conditions=conditions, estimates="regression", seed=4
    )
    assert again.run.ends == found.run.ends
