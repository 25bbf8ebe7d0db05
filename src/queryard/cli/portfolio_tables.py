"""What a portfolio did, and how it compares with every fixed policy in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from queryard.metrics import read_run
from queryard.portfolio import (
    Decision,
    Objective,
    in_force,
    schedule_of,
)

from . import readable
from .run import PORTFOLIO, Result


def observed_scores(objective: Objective, results: Sequence[Result]) -> dict[str, float]:
    """The score that every run really had; lower is better.

    Where metrics count in relation to what is usual, that is their mean over all runs.
    """
    vectors = {
        result.name: objective.vector(schedule_of(read_run(result.journal))) for result in results
    }
    usual = {
        name: fmean(vector[name] for vector in vectors.values())
        for name in next(iter(vectors.values()), {})
    }
    return {name: objective.score(vector, usual) for name, vector in vectors.items()}


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
    table.add_column("score came out", justify="right")
    shares = _usage(result)
    for name, share in shares.items():
        chosen = sum(d.is_switch and d.policy == name for d in result.decisions)
        known = result.reflection is not None and name in result.reflection.biases
        bias = f"{result.reflection.bias(name):.2f}x as foreseen" if known else ""  # type: ignore[union-attr]
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
    own = scores[result.name]
    decisions = result.decisions
    wall_s = sum(decision.wall_s for decision in decisions)
    text = (
        f"{result.name} made {readable.several(len(decisions), 'decision')} in "
        f"{readable.seconds(wall_s)} s, "
        f"{sum(d.is_switch for d in decisions)} of them switches, "
        f"{sum(d.dropped for d in decisions)} dropped{_periods(decisions)}. "
        f"Its score ({objective.name}, lower is better) is {own:.4g}"
    )
    fixed = {name: scores[name] for name in _fixed(results)}
    if not fixed:
        return f"{text}."
    best = min(fixed, key=lambda name: (fixed[name], name))
    if not fixed[best]:
        return f"{text}; the best fixed policy in hindsight, {best}, has 0."
    return (
        f"{text}, {own / fixed[best]:.2f} of the best fixed policy in hindsight "
        f"({best}, {fixed[best]:.4g})."
    )


def _periods(decisions: Sequence[Decision]) -> str:
    periods_s = [decision.period_s for decision in decisions]
    if not periods_s:
        return ""
    low, high = readable.seconds(min(periods_s)), readable.seconds(max(periods_s))
    return f"; the next one was due after {low} to {high} s"


def _fixed(results: Sequence[Result]) -> list[str]:
    return [result.name for result in results if PORTFOLIO not in result.profile]


def portfolio_facts(results: Sequence[Result]) -> dict[str, Any]:
    """The same as plain data."""
    facts = {}
    for result in results:
        if PORTFOLIO in result.profile:
            objective = result.profile[PORTFOLIO].objective
            facts[result.name] = {
                "objective": objective.name,
                "scores": observed_scores(objective, results),
                "usage": _usage(result),
                "decisions": [
                    {
                        "time_s": decision.time_s,
                        "policy": decision.policy,
                        "scores": dict(decision.scores),
                        "queries": decision.queries,
                        "wall_s": decision.wall_s,
                        "dropped": decision.dropped,
                        "period_s": decision.period_s,
                        "bias": decision.bias,
                        "rehearsed": decision.rehearsed,
                        "coming": decision.coming,
                        "complete": decision.complete,
                        "margin": decision.margin,
                        "doubt": decision.doubt,
                        "regrets": dict(decision.regrets),
                    }
                    for decision in result.decisions
                ],
                "usual_magnitudes": dict(result.reflection.usual) if result.reflection else {},
            }
    return facts
