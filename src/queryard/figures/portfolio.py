"""What a portfolio did: the policy in force over time, and the scores it was chosen by."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from queryard.metrics.rows import RunRows

from .palette import FAINT
from .panels import Axis, Bar, Line, Panel, Scale
from .timescale import Timescale

GAP = 0.1
# From here on scores are drawn by their logarithm.
WIDE = 5.0


class Choice(NamedTuple):
    """A decision: from when on a policy was in force, and what each was expected to score."""

    time_s: float
    policy: str
    scores: Mapping[str, float]


# A choice, and from when to when it held, on the axis.
Span = tuple[Choice, float, float]


def portfolio_panels(
    name: str,
    choices: Sequence[Choice],
    run: RunRows,
    colours: Mapping[str, str],
) -> tuple[Panel, Panel]:
    """A lane for each policy with the times at which it was in force; and scores over time.

    As long as the run itself: another one may take many times as long.
    """
    named = [name for choice in choices for name in choice.scores]
    # One that is in force need not have been tried out.
    policies = list(dict.fromkeys([*named, *(choice.policy for choice in choices)]))
    start_s = run.first_submit_s or 0.0
    time = Timescale.up_to([run.closed_s - start_s])
    moments_s = [*(choice.time_s for choice in choices), run.closed_s]
    # Each choice from when to when it held.
    spans = [
        (choice, time.scaled(low_s - start_s), time.scaled(high_s - start_s))
        for choice, (low_s, high_s) in zip(choices, pairwise(moments_s), strict=True)
    ]
    return (
        _lanes(name, spans, policies, colours, time),
        _scores(name, spans, policies, colours, time),
    )


def _lanes(
    name: str,
    spans: Sequence[Span],
    policies: Sequence[str],
    colours: Mapping[str, str],
    time: Timescale,
) -> Panel:
    bars = []
    held = dict.fromkeys(policies, 0.0)
    for choice, low, high in spans:
        lane = policies.index(choice.policy)
        held[choice.policy] += high - low
        text = f"{choice.policy} from {low:.4g} {time.unit.name}"
        colour = colours.get(choice.policy, FAINT)
        bars.append(Bar(low, high, lane + GAP, lane + 1 - GAP, colour, text))
    total = sum(held.values()) or 1.0
    ticks = tuple(
        (lane + 0.5, f"{policy} ({held[policy] / total:.0%})")
        for lane, policy in enumerate(policies)
    )
    return Panel(
        f"{name}: the policy in force",
        time.axis,
        Axis("", low=len(policies) or 1, high=0, ticks=ticks or ((0.5, ""),)),
        bars=tuple(bars),
        note="" if bars else "it made no decision",
    )


def _scores(
    name: str,
    spans: Sequence[Span],
    policies: Sequence[str],
    colours: Mapping[str, str],
    time: Timescale,
) -> Panel:
    """What was expected of each candidate, as a multiple of the best of the moment."""
    lines = []
    most = 1.0
    for policy in policies:
        x: list[float] = []
        y: list[float] = []
        for choice, low, high in spans:
            best = min(choice.scores.values(), default=0.0)
            tried = policy in choice.scores and best > 0
            ratio = choice.scores[policy] / best if tried else math.nan
            most = max(most, ratio) if tried else most
            x += low, high
            y += ratio, ratio
        lines.append(Line(policy, tuple(x), tuple(y), colours.get(policy, FAINT)))
    # A logarithm says nothing about differences of some per cent.
    scale: Scale = "log" if most > WIDE else "linear"
    y_axis = Axis("expected score / best", 0.95, min(1e3, most * 1.05), scale)
    title = f"{name}: expected scores (a gap: not simulated)"
    return Panel(title, time.axis, y_axis, lines=tuple(lines))
