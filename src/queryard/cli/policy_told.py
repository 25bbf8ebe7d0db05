"""Which policy is in force, and why: the decisions of a portfolio, as text."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from queryard.core import readable

Found = Mapping[str, Any]
# How many decisions are asked for, and how many are listed.
ASKED = 50
LISTED = 10


def show_policies(found: Sequence[tuple[str, Found]], as_json: bool) -> None:
    """What each session or server follows; the text is the name of it."""
    if as_json:
        typer.echo(json.dumps([told for _, told in found], indent=1))
        return
    console = Console(highlight=False)
    for name, told in found:
        for shown in _told(name, told, time.time()):
            console.print(shown, soft_wrap=isinstance(shown, Text))


def _told(name: str, told: Found, now: float) -> list[RenderableType]:
    policy, portfolio = told["policy"], told.get("portfolio")
    since = _ago(now - policy["since_at"])
    by = policy.get("by") or ""
    head = f"{name} follows {policy['name']}, since {since}"
    shown: list[RenderableType] = [_text(f"{head}, by {by}" if by else head)]
    if policy.get("reason"):
        shown.append(_text(f"  {policy['reason']}"))
    if policy.get("by") is None:
        shown.append(Text("  Why is for an admin's token."))
        return shown
    if portfolio is None:
        shown.append(Text("  It is fixed: no portfolio chooses it."))
        return shown
    share = readable.percent(portfolio["share"])
    shown.append(
        _text(f"  A portfolio chooses it, for {_goal(portfolio)}, with up to {share} of a core.")
    )
    decisions = told.get("decisions", [])
    tried = next((each for each in decisions if each["candidates"]), None)
    if tried is not None:
        shown += ["", _candidates(tried, now)]
    if decisions:
        shown += ["", Text("Decisions, the latest first")]
        shown += [_decision(each, now) for each in decisions[:LISTED]]
    else:
        shown.append(Text("  It has decided nothing yet: no two queries were there together."))
    return shown


def _goal(portfolio: Found) -> str:
    goal = portfolio["objective"]
    if isinstance(goal, str):
        return f'"{goal}"'
    return ", ".join(f"{name} x {weight:g}" for name, weight in goal.items())


def _candidates(decision: Found, now: float) -> Table:
    """The candidates of a decision, the best first."""
    over = readable.several(decision["waiting"], "query")
    title = f"Candidates over {over}, {_ago(now - decision['at'])}; lower is better"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    metrics = list(dict.fromkeys(m for c in decision["candidates"] for m in c["objectives"]))
    table.add_column("candidate", no_wrap=True)
    for column in ("score", "corrected by", *metrics):
        table.add_column(column, justify="right")
    table.add_column("")

    def place(candidate: Found) -> tuple[bool, float]:
        score = candidate["score"]
        return score is None, score or 0.0

    for each in sorted(decision["candidates"], key=place):
        chosen = "chosen" if each["name"] == decision["chosen"] else ""
        table.add_row(
            _text(each["name"]),
            readable.score(each["score"]),
            "" if each["score"] is None else readable.ratio(each["correction"]),
            *(readable.score(each["objectives"].get(metric)) for metric in metrics),
            _text(each["dropped"] or chosen),
        )
    return table


def _decision(each: Found, now: float) -> Text:
    """For example `3 s ago, period, in 120 ms: fifo stays …; it went 12 % worse than forecast`."""
    outcome = each["outcome"]
    became = ""
    if outcome is not None:
        how = "worse" if outcome["error"] > 0 else "better"
        became = f"; it went {100 * abs(outcome['error']):.0f} % {how} than forecast"
    when = f"{_ago(now - each['at'])}, {each['trigger']}, in {each['took_s'] * 1000:.0f} ms"
    return _text(f"  {when}: {each['reason']}{became}")


def _text(text: str) -> Text:
    """Reasons name tenants, whose names others have written."""
    return Text(readable.printable(text))


def _ago(seconds: float) -> str:
    """How long ago, roughly.

    >>> _ago(0.2), _ago(42.4), _ago(600), _ago(7300)
    ('now', '42 s ago', '10 min ago', '2.0 h ago')
    """
    if seconds < 1:
        return "now"
    if seconds < 120:
        return f"{seconds:.0f} s ago"
    return f"{seconds / 60:.0f} min ago" if seconds < 7200 else f"{seconds / 3600:.1f} h ago"
