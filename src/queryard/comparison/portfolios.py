"""What a portfolio did, and how it compares with every fixed policy in hindsight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from statistics import fmean
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from queryard.core import readable
from queryard.metrics import read_run
from queryard.portfolio import Decision, Objective, in_force

from .profiles import PORTFOLIO
from .runs import PolicyResult


def observed_scores(objective: Objective, results: Sequence[PolicyResult]) -> dict[str, float]:
    """The score that every run really had; lower is better.

    Where metrics count in relation to what is usual, that is their mean over all runs.
    """
    vectors = {result.name: objective.vector(result.schedule) for result in results}
    usual = {
        name: fmean(vector[name] for vector in vectors.values())
        for name in next(iter(vectors.values()), {})
    }
    return {name: objective.score(vector, usual) for name, vector in vectors.items()}


def scores_by_objective(results: Sequence[PolicyResult]) -> dict[str, dict[str, float]]:
    """The scores of all runs by what each of the portfolios is after."""
    found = [r.profile[PORTFOLIO].objective for r in results if PORTFOLIO in r.profile]
    return {objective.name: observed_scores(objective, results) for objective in found}


def portfolio_tables(results: Sequence[PolicyResult]) -> list[RenderableType]:
    """For every portfolio: what it chose, and its score beside those of the fixed policies."""
    shown: list[RenderableType] = []
    for result in results:
        if PORTFOLIO in result.profile:
            shown += [_choices(result), Text(hindsight(result, results))]
    return shown


def _choices(result: PolicyResult) -> Table:
    title = f"{result.name}: policies in force"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("policy")
    table.add_column("share of the time", justify="right")
    table.add_column("switched to", justify="right")
    shares = _usage(result)
    for name, share in shares.items():
        chosen = sum(d.chose_another and d.policy == name for d in result.decisions)
        table.add_row(name, readable.percent(share), readable.count(chosen))
    return table


def _usage(result: PolicyResult) -> dict[str, float]:
    """The share of the run in which each candidate was in force."""
    if not result.decisions:
        return {next(iter(result.profile[PORTFOLIO].candidates)): 1.0}
    run = read_run(result.journal)
    return in_force(result.decisions, run.closed_s, run.first_submit_s)


def hindsight(result: PolicyResult, results: Sequence[PolicyResult]) -> str:
    """How far the portfolio is from the best fixed policy, which is not known beforehand."""
    objective = result.profile[PORTFOLIO].objective
    scores = observed_scores(objective, results)
    decisions = result.decisions
    switches = sum(d.chose_another for d in decisions)
    text = (
        f"{result.name} made {readable.several(len(decisions), 'decision')}: "
        f"{switches} {'switch' if switches == 1 else 'switches'}, "
        f"{sum(d.dropped for d in decisions)} dropped{_periods(decisions)}. "
        f"Deciding took {readable.seconds(sum(d.wall_s for d in decisions))} s of computing. "
        f"Its score ({objective.name}, lower is better) is {readable.score(scores[result.name])}"
    )
    best, best_of_all = _best_fixed(result, results, scores)
    text += _beside(scores, result.name, best, "the best fixed policy in hindsight")
    if best_of_all != best:
        text += _beside(scores, result.name, best_of_all, "the best that it cannot choose")
    return f"{text}."


def _best_fixed(
    result: PolicyResult, results: Sequence[PolicyResult], scores: Mapping[str, float]
) -> tuple[str, str]:
    """Which policy was best by itself: of those the portfolio chooses from, and of all."""

    def place(name: str) -> tuple[float, str]:
        return scores[name], name

    # All that it chooses from have run by themselves (`choose_profiles`).
    best = min(result.profile[PORTFOLIO].candidates, key=place)
    others = [other.name for other in results if PORTFOLIO not in other.profile]
    return best, min([best, *others], key=lambda name: (scores[name], name != best, name))


def _beside(scores: Mapping[str, float], own: str, best: str, called: str) -> str:
    gap = _gap(scores[own], scores[best])
    if gap is None:
        return f"; {called}, {best}, has 0"
    return f", {gap:.2f} of {called} ({best}, {readable.score(scores[best])})"


def _periods(decisions: Sequence[Decision]) -> str:
    """How much simulated time passed from one to the next."""
    passed_s = [after.time_s - before.time_s for before, after in pairwise(decisions)]
    if not passed_s:
        return ""
    low, high = readable.seconds(min(passed_s)), readable.seconds(max(passed_s))
    return f"; between decisions: {low} to {high} s"


def _gap(own: float, best: float) -> float | None:
    return own / best if best else None


def portfolio_facts(results: Sequence[PolicyResult]) -> dict[str, Any]:
    """The same as plain data."""
    facts = {}
    for result in results:
        if PORTFOLIO in result.profile:
            objective = result.profile[PORTFOLIO].objective
            scores = observed_scores(objective, results)
            best, best_of_all = _best_fixed(result, results, scores)
            facts[result.name] = {
                "objective": objective.name,
                "scores": scores,
                "best_fixed": best,
                "of_best_fixed": _gap(scores[result.name], scores[best]),
                "best_of_all": best_of_all,
                "usage": _usage(result),
                "decisions": [asdict(decision) for decision in result.decisions],
                "usual_magnitudes": dict(result.magnitudes),
            }
    return facts
