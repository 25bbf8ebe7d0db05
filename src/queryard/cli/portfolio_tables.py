"""What a portfolio did, and how it compares with every fixed policy in hindsight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from queryard.metrics import read_run
from queryard.portfolio import Decision, Objective, in_force

from . import readable
from .run import PORTFOLIO, Result


def observed_scores(objective: Objective, results: Sequence[Result]) -> dict[str, float]:
    """The score that every run really had; lower is better.

    Where metrics count in relation to what is usual, that is their mean over all runs.
    """
    vectors = {result.name: objective.vector(result.schedule) for result in results}
    usual = {
        name: fmean(vector[name] for vector in vectors.values())
        for name in next(iter(vectors.values()), {})
    }
    return {name: objective.score(vector, usual) for name, vector in vectors.items()}


def scores_by_objective(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """The scores of all runs by what each of the portfolios is after."""
    found = [r.profile[PORTFOLIO].objective for r in results if PORTFOLIO in r.profile]
    return {objective.name: observed_scores(objective, results) for objective in found}


def portfolio_tables(results: Sequence[Result]) -> list[RenderableType]:
    """For every portfolio: what it chose, and its score beside those of the fixed policies."""
    shown: list[RenderableType] = []
    for result in results:
        if PORTFOLIO in result.profile:
            shown += [_choices(result), Text(hindsight(result, results))]
    return shown


def _choices(result: Result) -> Table:
    title = f"{result.name}: policies in force"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("policy")
    table.add_column("share of the time", justify="right")
    table.add_column("switched to", justify="right")
    table.add_column("score, of what was foreseen", justify="right")
    shares = _usage(result)
    for name, share in shares.items():
        chosen = sum(d.chose_another and d.policy == name for d in result.decisions)
        known = result.reflection is not None and name in result.reflection.biases
        bias = readable.ratio(result.reflection.bias(name)) if known else ""  # type: ignore[union-attr]
        table.add_row(name, readable.percent(share), readable.count(chosen), bias)
    return table


def _usage(result: Result) -> dict[str, float]:
    """The share of the run in which each candidate was in force."""
    if not result.decisions:
        return {next(iter(result.profile[PORTFOLIO].candidates)): 1.0}
    run = read_run(result.journal)
    return in_force(result.decisions, run.closed_s, run.first_submit_s)


def hindsight(result: Result, results: Sequence[Result]) -> str:
    """How far the portfolio is from the best fixed policy, which nobody knows beforehand."""
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
    best = _best_fixed(scores, results)
    if best is None:
        return f"{text}."
    gap = _gap(scores[result.name], scores[best])
    if gap is None:
        return f"{text}; the best fixed policy in hindsight, {best}, has 0."
    return (
        f"{text}, {gap:.2f} of the best fixed policy in hindsight "
        f"({best}, {readable.score(scores[best])})."
    )


def _periods(decisions: Sequence[Decision]) -> str:
    """How much simulated time passed from one to the next."""
    passed_s = [after.time_s - before.time_s for before, after in pairwise(decisions)]
    if not passed_s:
        return ""
    low, high = readable.seconds(min(passed_s)), readable.seconds(max(passed_s))
    return f"; between decisions: {low} to {high} s"


def _best_fixed(scores: Mapping[str, float], results: Sequence[Result]) -> str | None:
    fixed = [result.name for result in results if PORTFOLIO not in result.profile]
    return min(fixed, key=lambda name: (scores[name], name), default=None)


def _gap(own: float, best: float) -> float | None:
    return own / best if best else None


def portfolio_facts(results: Sequence[Result]) -> dict[str, Any]:
    """The same as plain data."""
    facts = {}
    for result in results:
        if PORTFOLIO in result.profile:
            objective = result.profile[PORTFOLIO].objective
            scores = observed_scores(objective, results)
            best = _best_fixed(scores, results)
            facts[result.name] = {
                "objective": objective.name,
                "scores": scores,
                "best_fixed": best,
                "of_best_fixed": best and _gap(scores[result.name], scores[best]),
                "usage": _usage(result),
                "decisions": [
                    {
                        "time_s": decision.time_s,
                        "in_force_s": decision.in_force_s,
                        "policy": decision.policy,
                        "scores": dict(decision.scores),
                        "queries": decision.queries,
                        "launches": decision.launches,
                        "wall_s": decision.wall_s,
                        "dropped": decision.dropped,
                        "period_s": decision.period_s,
                        "bias": decision.bias,
                        "rehearsed": decision.rehearsed,
                        "rehearsal_launches": decision.rehearsal_launches,
                        "coming": decision.coming,
                        "complete": decision.complete,
                        "margin": decision.margin,
                        "doubt": decision.doubt,
                        "regrets": dict(decision.regrets),
                        "magnitudes": dict(decision.magnitudes),
                    }
                    for decision in result.decisions
                ],
                "usual_magnitudes": dict(result.reflection.usual) if result.reflection else {},
            }
    return facts
