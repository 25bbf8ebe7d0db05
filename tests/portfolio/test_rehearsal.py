"""What candidates would have made of the past: the past as it was seen, and what follows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queryard.core.model import Divisible, Job, Node, Phase, Query
from queryard.metrics import read_run
from queryard.policies import resolve_profile
from queryard.portfolio import (
    OBJECTIVES,
    PortfolioSettings,
    Workers,
    candidates_of,
    schedule_of,
    simulate_portfolio,
)
from queryard.portfolio.rehearsal import STRETCH_QUERIES, STRETCHES, Past, rehearse
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


@settings(max_examples=15)
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
    """Estimates are off by chance, up to many times; sharing evenly needs none."""
    nodes = parse_nodes("2x4")
    objective = OBJECTIVES["response"]
    scores: dict[str, list[float]] = {"rehearsing": [], "believing": [], "swrd": []}
    for seed in range(3):
        workload = generate(Mix(queries=60, load=0.9), seed, nodes)
        given = {"estimates": "oracle:3", "seed": seed}
        for name in ("rehearsing", "believing"):
            chosen = PortfolioSettings(
                candidates_of(("swrd", "fair")),
                objective,
                worlds=1,
                rehearse=name == "rehearsing",
                share=1.0,
            )
            run = simulate_portfolio(workload, nodes, chosen, **given).run
            scores[name].append(
                objective.score(objective.vector(schedule_of(read_run(run.journal))))
            )
        run = simulate(workload, nodes, resolve_profile("swrd"), **given)
        scores["swrd"].append(objective.score(objective.vector(schedule_of(read_run(run.journal)))))
    means = {name: sum(values) / len(values) for name, values in scores.items()}
    assert means["rehearsing"] < means["believing"]
    assert means["rehearsing"] < means["swrd"]
