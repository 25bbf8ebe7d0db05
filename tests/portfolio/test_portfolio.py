"""Choosing a policy by simulating the queue forward."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from long_forms import examples

from queryard.core.errors import InvalidProfile
from queryard.core.events import NodeLost, PolicyChosen
from queryard.core.model import Job, Node, Phase, Query
from queryard.metrics import read_run
from queryard.policies import resolve_profile
from queryard.portfolio import (
    METRICS,
    OBJECTIVES,
    Decision,
    PortfolioSettings,
    QueryEnd,
    Schedule,
    Selector,
    candidates_of,
    in_force,
    objective_of,
    parse_portfolio,
    schedule_of,
    simulate_portfolio,
    try_out,
)
from queryard.sim import simulate
from queryard.sim.forecast import forecast
from queryard.sim.replay import replay
from queryard.sim.run import build
from queryard.workload import Mix, SizeBin, Workload, generate, parse_nodes
from queryard.workload.model import Arrival, JobTruth

NODES = (Node("n1", 2),)


def query(name: str, tasks: int, seconds: float, submit_s: float = 0.0, due_s: float | None = None):
    spec = Query(name, (Job("j", map=Phase(tasks)),), submit_s=submit_s, deadline_s=due_s)
    return Arrival(spec, {"j": JobTruth(map_s=seconds)})


def driver_at(workload: Workload, time_s: float, profile: str = "fifo"):
    driver = build(workload, NODES, resolve_profile(profile))
    driver.run(time_s)
    return driver


LONG_THEN_SHORT = Workload("w", (query("long", 20, 10.0), query("short", 1, 1.0, submit_s=1.0)))


def test_a_trial_is_what_the_policy_would_do() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    trials = {t.name: t for t in try_out(driver.scheduler, candidates_of(("fifo", "swrd")))}
    for name, trial in trials.items():
        foreseen = forecast(driver.scheduler, profile=resolve_profile(name))
        assert {q.id: q.end_s for q in trial.schedule.queries} == {
            q: f.end_s for q, f in foreseen.items()
        }
        assert trial.complete
    ends = {name: {q.id: q.end_s for q in t.schedule.queries} for name, t in trials.items()}
    assert ends["swrd"]["short"] < ends["fifo"]["short"]


def test_slots_are_not_reserved_in_a_trial_in_which_no_query_arrives() -> None:
    profiles = {
        name: {"order": "fifo", "slots": slots}
        for name, slots in (("a", "open"), ("b", "reserve-short"))
    }
    short = tuple(query(f"short{n}", 1, 1.0, submit_s=float(n)) for n in range(5))
    workload = Workload("w", (*short, query("long", 100, 60.0, submit_s=10.0)))
    driver = build(workload, (Node("n1", 20),), profiles["b"])
    driver.run(20.0)
    assert sum(query.slots for query in driver.scheduler.state.queries.values()) == 18
    trials = try_out(driver.scheduler, profiles)
    assert trials[0].schedule == trials[1].schedule


def test_trials_leave_the_kernel_as_it_was() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    before = forecast(driver.scheduler)
    try_out(driver.scheduler, candidates_of())
    assert forecast(driver.scheduler) == before
    driver.run()
    assert not driver.unfinished


def test_a_horizon_ends_a_trial_and_the_rest_is_reckoned() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    (trial,) = try_out(driver.scheduler, candidates_of(("fifo",)), horizon_s=15.0)
    assert not trial.complete
    ends = {q.id: q.end_s for q in trial.schedule.queries}
    assert set(ends) == {"long", "short"}
    assert all(15.0 <= end < math.inf for end in ends.values())


def test_the_best_is_chosen_and_kept_until_another_is_better_by_the_margin() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    chosen = PortfolioSettings(candidates_of(("fifo", "swrd")), OBJECTIVES["response"])
    selector = Selector(chosen)
    decision = selector.decide(driver.scheduler)
    assert (decision.before, decision.policy) == ("fifo", "swrd")
    selector.apply(decision)
    again = selector.decide(driver.scheduler)
    assert (again.policy, again.is_switch) == ("swrd", False)
    lazy = PortfolioSettings(chosen.candidates, OBJECTIVES["response"], margin=0.9)
    assert Selector(lazy).decide(driver.scheduler).policy == "fifo"


def test_a_portfolio_is_not_worse_than_its_policies_where_the_queue_is_all_there_is() -> None:
    workload = Workload(
        "w", tuple(query(f"q{n}", 4 + n % 3, 1.0 + n % 5, due_s=40.0 + n) for n in range(12))
    )
    names = ("fifo", "swrd", "edf")
    for goal in ("response", "deadline"):
        found = simulate_portfolio(
            workload, NODES, parse_portfolio(f"portfolio:{goal}:fifo/swrd/edf")
        )
        scores = {}
        for name in names:
            ends = simulate(workload, NODES, resolve_profile(name)).ends
            scores[name] = _score(goal, workload, ends)
        assert _score(goal, workload, found.run.ends) <= min(scores.values()) * 1.001


def _score(goal: str, workload: Workload, ends: dict[str, float]) -> float:
    objective = OBJECTIVES[goal]
    queries = tuple(
        QueryEnd(a.query.id, a.query.submit_s, ends[a.query.id], a.work_s, a.query.deadline_s)
        for a in workload.arrivals
    )
    return objective.score(objective.vector(Schedule(queries)))


@settings(max_examples=examples(5))
@given(st.integers(0, 10_000))
def test_a_portfolio_loses_nothing_and_can_be_replayed(seed: int) -> None:
    nodes = parse_nodes("4x4")
    workload = generate(Mix(queries=10, deadlines=0.3, load=1.1, block_bytes=2e9), seed, nodes)
    portfolio = parse_portfolio("portfolio:mixed:cost-of-delay/fair/edf/locf")
    found = simulate_portfolio(workload, nodes, portfolio, seed=seed)
    assert len(found.run.ends) == 10
    assert not found.run.unfinished
    assert replay(found.run.journal) is None
    again = simulate_portfolio(workload, nodes, portfolio, seed=seed)
    assert again.run.ends == found.run.ends
    switches = [e for s in found.run.journal.steps for e in s.events if isinstance(e, PolicyChosen)]
    assert len(switches) == sum(decision.is_switch for decision in found.decisions)


def test_decisions_that_take_too_long_are_dropped() -> None:
    workload = generate(Mix(queries=20, load=1.2), 1)
    settings_ = PortfolioSettings(candidates_of(("fifo", "srtf")), launch_cost_s=10.0)
    found = simulate_portfolio(workload, workload.nodes, settings_)
    assert found.decisions
    assert all(decision.dropped for decision in found.decisions)
    assert len(found.run.ends) == 20


def test_a_dropped_decision_brings_the_first_candidate_back() -> None:
    """The queue on which another one was better may be gone."""
    workload = generate(Mix(queries=20, load=1.2), 1)
    driver = build(workload, workload.nodes, resolve_profile("srtf"))
    driver.run(max(arrival.query.submit_s for arrival in workload.arrivals))
    settings_ = PortfolioSettings(candidates_of(("fifo", "srtf")))
    selector = Selector(settings_, current="srtf")
    assert selector.drop(selector.decide(driver.scheduler)) == settings_.candidates["fifo"]
    assert selector.current == "fifo"
    (decision,) = selector.decisions
    assert decision.dropped
    assert decision.is_switch


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_there_is_no_decision_while_another_is_still_to_come_into_force(seed: int) -> None:
    """However slow decisions are, and whichever queries arrive meanwhile."""
    workload = generate(Mix(queries=30, load=1.5, deadlines=0.5, block_bytes=5e8), seed)
    settings_ = PortfolioSettings(
        candidates_of(("fifo", "srtf", "edf")),
        launch_cost_s=5e-3,
        share=1.0,
        least_s=0.1,
        margin=0.0,
    )
    found = simulate_portfolio(workload, workload.nodes, settings_)
    steps = found.run.journal.steps
    came_s = [step.time_s for step in steps for e in step.events if isinstance(e, PolicyChosen)]
    switches = [decision for decision in found.decisions if decision.is_switch]
    assert len(switches) == len(came_s) > 0
    for switch, at_s in zip(switches, came_s, strict=True):
        assert at_s > switch.time_s
        assert not any(switch.time_s < other.time_s < at_s for other in found.decisions)


def test_what_the_first_does_for_arrivals_all_candidates_do() -> None:
    names = ("cost-of-delay", "srtf", "marshal", "tls-circular-htumm")
    slots = {name: profile["slots"] for name, profile in candidates_of(names).items()}
    assert slots == {**dict.fromkeys(names, "reserve-short"), "tls-circular-htumm": "h-tumm"}
    assert "slots" not in candidates_of(("srtf", "cost-of-delay"))["srtf"]


def test_policies_with_provisioning() -> None:
    names = candidates_of(("srtf", "locf"), ("+x", "-x", "dlx", "maxbsd"))
    assert len(names) == 8
    workload = generate(Mix(queries=10, deadlines=0.5, block_bytes=1e9), 1)
    found = simulate_portfolio(workload, workload.nodes, PortfolioSettings(names))
    assert len(found.run.ends) == 10


def test_the_policy_before_the_first_decision_counts_from_the_start() -> None:
    decisions = [
        Decision(at_s, policy, before, {}, 1, 1, 0.0, in_force_s=at_s)
        for at_s, before, policy in ((60.0, "a", "b"), (80.0, "b", "a"))
    ]
    assert in_force(decisions, 100.0) == {"a": 0.5, "b": 0.5}
    assert in_force(decisions, 100.0, 0.0) == {"a": 0.8, "b": 0.2}
    assert in_force([], 100.0, 0.0) == {}


def test_a_decision_says_whether_candidates_were_followed_to_the_end() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    for most_launches, complete in ((20_000, True), (3, False)):
        chosen = PortfolioSettings(
            candidates_of(("fifo", "swrd")),
            OBJECTIVES["response"],
            most_launches=most_launches,
        )
        assert Selector(chosen).decide(driver.scheduler).complete is complete


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("portfolio:mixd", "unknown objective 'mixd'"),
        ("portfolio:mixed:fifoo", "fifoo"),
    ],
)
def test_wrong_portfolios(text: str, message: str) -> None:
    with pytest.raises(InvalidProfile, match=message):
        parse_portfolio(text)


def test_wrong_settings() -> None:
    with pytest.raises(InvalidProfile, match="at least one candidate"):
        PortfolioSettings({})
    with pytest.raises(InvalidProfile, match="0 < 500 <= 240"):
        PortfolioSettings(candidates_of(("fifo",)), least_s=500.0)
    with pytest.raises(InvalidProfile, match="margin"):
        PortfolioSettings(candidates_of(("fifo",)), margin=1.5)


def test_leases_are_counted_node_by_node() -> None:
    """A cluster that shrinks leases fewer hours than one that stays, and both as they were."""
    nodes = tuple(Node(f"n{number}", 2) for number in range(4))
    workload = generate(Mix(queries=10, load=5.0, bins=(SizeBin("a", 1, 20, 40),)), 2, nodes)
    driver = build(workload, nodes, resolve_profile("fifo"), keep_journal=True)
    driver.run(workload.arrivals[-1].query.submit_s + 1.0)
    stay, shrink = try_out(
        driver.scheduler,
        {
            "stay": {"order": "fifo"},
            "shrink": {"order": "fifo", "provisioning": {"name": "-x", "period_s": 60}},
        },
    )
    last_s = max(query.end_s for query in stay.schedule.queries)
    assert stay.schedule.leases_s == pytest.approx([last_s] * len(nodes))
    assert sum(shrink.schedule.leases_s) < len(shrink.schedule.leases_s) * max(
        query.end_s for query in shrink.schedule.queries
    )
    driver.run()
    seen = schedule_of(read_run(driver.scheduler.journal))
    assert seen.leases_s == pytest.approx([max(driver.ends.values())] * len(nodes))
    assert {query.id: query.end_s for query in seen.queries} == driver.ends


def test_the_period_follows_the_queue() -> None:
    """A quarter of what the queue takes when it is largest; sooner if it changes much."""
    many = tuple(query(f"q{n}", 20, 10.0) for n in range(4))
    driver = driver_at(Workload("w", (*many, query("late", 200, 10.0, 30.0))), 0.5)
    selector = Selector(PortfolioSettings(candidates_of(("fifo", "fair"))))
    assert selector.is_due(driver.scheduler)
    selector.apply(selector.decide(driver.scheduler))
    assert selector.period_s == pytest.approx(100.0, rel=0.01)
    driver.run(29.0)
    assert not selector.is_due(driver.scheduler)
    driver.run(31.0)
    assert selector.is_due(driver.scheduler)
    selector.apply(selector.decide(driver.scheduler))
    assert selector.period_s == 240.0


def test_a_decision_waits_until_the_one_before_is_a_small_share_of_the_time() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    settings_ = PortfolioSettings(
        candidates_of(("fifo", "fair")), period_s=1.0, least_s=1.0, share=0.1
    )
    selector = Selector(settings_)
    selector.apply(selector.decide(driver.scheduler))
    selector.took(1.0)
    for at_s, is_due in ((10.5, False), (20.5, True)):
        driver.run(at_s)
        assert selector.is_due(driver.scheduler) is is_due


def test_usual_magnitudes_are_measured() -> None:
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    selector = Selector(
        PortfolioSettings(candidates_of(("fifo", "swrd")), objective_of("balanced+response=1"))
    )
    for _ in range(3):
        decision = selector.decide(driver.scheduler)
    trials = try_out(driver.scheduler, selector.settings.candidates)
    means = [METRICS["response"](trial.schedule) for trial in trials]
    assert decision.magnitudes["response"] == pytest.approx(sum(means) / 2)
    assert sum(decision.scores.values()) == pytest.approx(2.0)


def test_without_contention_nothing_is_decided() -> None:
    """Two queries of one task on two slots, then three."""
    for count, decided in ((2, False), (3, True)):
        workload = Workload("w", tuple(query(f"q{n}", 1, 5.0) for n in range(count)))
        found = simulate_portfolio(
            workload, NODES, PortfolioSettings(candidates_of(("fifo", "fair")))
        )
        assert bool(found.decisions) is decided


def test_the_size_of_the_cluster_is_decided_without_contention_too() -> None:
    workload = Workload("w", (query("q", 1, 5.0),))
    candidates = candidates_of(("fifo",), ("+x", "-x"))
    assert simulate_portfolio(workload, NODES, PortfolioSettings(candidates)).decisions


def test_a_trial_of_a_queue_that_cannot_move_ends() -> None:
    """No node is left, and a provisioning part goes on asking whether there should be more."""
    driver = driver_at(LONG_THEN_SHORT, 2.0)
    driver.scheduler.handle(NodeLost(2.5, "n1"))
    for trial in try_out(driver.scheduler, candidates_of(("fifo",), ("dlx", "-x"))):
        assert not trial.complete
        assert {query.id for query in trial.schedule.queries} == {"long", "short"}


def test_the_first_candidate_comes_back_when_it_is_as_good() -> None:
    selector = Selector(PortfolioSettings(candidates_of(("fifo", "swrd", "fair"))))

    def choose(fifo: float, swrd: float, fair: float) -> str:
        return selector.best({"fifo": fifo, "swrd": swrd, "fair": fair})

    assert choose(1.05, 1.0, 1.0) == "fifo"
    assert choose(1.5, 1.0, 1.0) == "fair"
    selector.current = "swrd"
    assert choose(1.05, 1.02, 1.0) == "swrd"
    assert choose(1.02, 1.02, 1.0) == "fifo"
    assert choose(1.0, 1.5, 1.0) == "fifo"


def test_reduces_that_a_cap_holds_back_are_a_choice() -> None:
    """Seven reduces of a batch query on ten slots, of which it may use three."""
    job = Job("j", map=Phase(2), reduce=Phase(7))
    arrival = Arrival(Query("q", (job,)), {"j": JobTruth(map_s=1.0, reduce_s=100.0)})
    settings = PortfolioSettings(candidates_of(("edls-sh", "tls")), OBJECTIVES["response"])
    found = simulate_portfolio(Workload("w", (arrival,)), (Node("n", 10),), settings)
    assert found.run.ends["q"] < 250.0


def test_a_task_that_outlasts_all_others_does_not_end_a_trial() -> None:
    nodes = parse_nodes("50x12")
    job = Job("j", map=Phase(2), reduce=Phase(600))
    arrivals = tuple(
        Arrival(Query(f"q{n}", (job,)), {"j": JobTruth(map_s=1000.0, reduce_s=5.0)})
        for n in range(2)
    )
    driver = build(Workload("w", arrivals), nodes, resolve_profile("fifo"))
    driver.run(1.0)
    for trial in try_out(driver.scheduler, candidates_of(("fifo", "swrd"))):
        assert trial.complete
