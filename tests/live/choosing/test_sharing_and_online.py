"""Candidates that share scans, and ones for online queries: each is chosen where it is better."""

from __future__ import annotations

from typing import Any

import pytest

from queryard.core.model import Divisible, Job, Node, Phase, Query, Split, Table
from queryard.core.scheduler import Scheduler
from queryard.live.choosing.chooser import Chooser
from queryard.live.choosing.verdicts import verdict
from queryard.portfolio.documents import LIVE, read_portfolio
from queryard.portfolio.present import try_present
from queryard.sim import Conditions
from queryard.sim.run import build
from queryard.workload.model import Arrival, JobTruth, Workload
from queryard.workload.scan_costs import with_scan_costs

LATER_S = 100.0


class View:
    """A kernel as the chooser sees it."""

    def __init__(self, kernel: Scheduler) -> None:
        self.kernel = kernel

    def sharers(self) -> dict[str, str]:
        return {}


def choose(kernel: Scheduler, document: dict[str, Any]) -> Chooser:
    """One decision over what is in the queue."""
    portfolio = read_portfolio({"portfolio": document})
    chooser = Chooser(portfolio, 0.0)
    # When all has been saved that a decision costs.
    look = chooser.look(LATER_S, LATER_S, View(kernel))
    assert look.question is not None
    settings = portfolio.settings
    tried = try_present(look.question.fork.without_sharers(), settings.candidates, 60.0)
    found = verdict(settings.objective, list(settings.candidates), tried, kernel.state.now)
    chooser.answered(look.question, found, LATER_S, 0.0)
    return chooser


def scans(kind: str) -> Scheduler:
    """Queries over one table, which parse what they read."""
    table = Table("t", tuple(Split(1e6) for _ in range(12)))
    job = Job("scan", map=Phase(12), scans=("t",))
    truth = with_scan_costs(JobTruth(map_s=1.0), kind)
    arrivals = tuple(Arrival(Query(f"q{n}", (job,)), {"scan": truth}) for n in range(5))
    keeps = Conditions(segment_cache_bytes=1e9)
    nodes = (Node("n", 1),)
    driver = build(Workload("w", arrivals, (table,)), nodes, "fifo", conditions=keeps)
    driver.run(until_s=0.0)
    return driver.scheduler


@pytest.mark.parametrize(("kind", "best"), [("text", "s3"), ("narrow", "fifo")])
def test_scans_are_shared_where_that_is_better(kind, best):
    document = {"objective": "throughput", "candidates": ["fifo", "s3"]}
    assert choose(scans(kind), document).current == best


def online(count: int = 4, until_s: float = 0.0) -> Scheduler:
    """Online queries of the same size that have all come at once, under fifo."""
    job = Job("agg", divisible=Divisible(2, batches=10))
    truth = {"agg": JobTruth(work_s=20.0)}
    arrivals = tuple(Arrival(Query(f"q{n}", (job,), kind="online"), truth) for n in range(count))
    driver = build(Workload("w", arrivals), (Node("n", 2),), "fifo")
    driver.run(until_s)
    return driver.scheduler


@pytest.mark.parametrize(
    ("objective", "best"), [("early answers", "relaqs"), ("small queries fast", "swrd")]
)
def test_online_queries_answer_early_where_that_is_asked_for(objective, best):
    """One after another they end sooner in the mean; side by side each has an answer sooner."""
    document = {"objective": objective, "candidates": ["swrd", "relaqs"]}
    assert choose(online(), document).current == best


def test_answers_that_are_there_count():
    """In the middle of the queue as well, and the first one is worth most."""
    fork = online(2, until_s=6.5).fork()
    now = fork.state.now
    portfolio = read_portfolio("portfolio:early answers:swrd/relaqs")
    by_name = {
        trial.name: {query.id: query for query in trial.schedule.queries}
        for trial in try_present(fork, portfolio.settings.candidates, 60.0)
    }
    # The first query has answered six times, whichever policy follows.
    for queries in by_name.values():
        assert [at_s for at_s, _ in queries["q0"].answers[:6]] == [now] * 6
        assert queries["q0"].answers[0][1] == 0.5
        assert queries["q0"].answers[5][1] < 0.2
    assert by_name["relaqs"]["q1"].answers[0][0] < by_name["swrd"]["q1"].answers[0][0]


def test_the_usual_candidates_have_both_kinds():
    assert {"s3-pays", "relaqs"} <= set(LIVE)
