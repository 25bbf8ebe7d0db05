"""What a portfolio did: the policy in force over time, and the scores it was chosen by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .palette import policy_colour
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


def portfolio_panels(
    name: str, choices: Sequence[Choice], start_s: float, end_s: float
) -> tuple[Panel, Panel]:
    """A lane for each policy with the times at which it was in force; and scores over time."""
    time = Timescale.up_to([end_s - start_s])
    policies = list(dict.fromkeys(policy for choice in choices for policy in choice.scores))
    return _lanes(name, choices, policies, start_s, end_s, time), _scores(
        name, choices, policies, start_s, time
    )


def _lanes(
    name: str,
    choices: Sequence[Choice],
    policies: Sequence[str],
    start_s: float,
    end_s: float,
    time: Timescale,
) -> Panel:
    bars = []
    ends_s = [choice.time_s for choice in choices[1:]] + [end_s]
    spans: dict[str, float] = {}
    for choice, until_s in zip(choices, ends_s, strict=True):
        lane = policies.index(choice.policy)
        spans[choice.policy] = spans.get(choice.policy, 0.0) + until_s - choice.time_s
        bars.append(
            Bar(
                time.scaled(choice.time_s - start_s),
                time.scaled(until_s - start_s),
                lane + GAP,
                lane + 1 - GAP,
                policy_colour(lane),
                f"{choice.policy} from {choice.time_s - start_s:.4g} s",
            )
        )
    total = sum(spans.values()) or 1.0
    ticks = tuple(
        (lane + 0.5, f"{policy} ({spans.get(policy, 0.0) / total:.0%})")
        for lane, policy in enumerate(policies)
    )
    return Panel(
        f"{name}: policy in force",
        time.axis,
        Axis("", low=len(policies) or 1, high=0, ticks=ticks or ((0.5, ""),)),
        bars=tuple(bars),
        note="" if bars else "it made no decision",
    )


def _scores(
    name: str, choices: Sequence[Choice], policies: Sequence[str], start_s: float, time: Timescale
) -> Panel:
    """What was expected of each candidate, as a multiple of the best of the moment."""
    lines = []
    most = 1.0
    for lane, policy in enumerate(policies):
        points = []
        for choice in choices:
            best = min(choice.scores.values(), default=0.0)
            if policy in choice.scores and best > 0:
                points.append((time.scaled(choice.time_s - start_s), choice.scores[policy] / best))
        if points:
            most = max(most, *(ratio for _, ratio in points))
            x, y = zip(*points, strict=True)
            lines.append(Line(policy, tuple(x), tuple(y), policy_colour(lane)))
    # A logarithm says nothing about differences of some per cent.
    scale: Scale = "log" if most > WIDE else "linear"
    y_axis = Axis("expected score, of the best", 0.95, min(1e3, most * 1.05), scale)
    return Panel(f"{name}: scores", time.axis, y_axis, lines=tuple(lines))
