"""What became of recorded workloads, as tables, a picture and a verdict on the portfolio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from ..bars import bar_keys, bar_panel
from ..outcome import Chart, Finding, Interval, Outcome, Table, interval
from .comparison import GOALS, PORTFOLIO, Compared
from .workloads import BINS

# To reach: of the best fixed policy over all runs; of the best in hindsight of each, and how often.
MOST_OF_FIXED, MOST_OF_HINDSIGHT, SHARE_OF_RUNS = 1.0, 1.1, 0.8
# So much worse than a score of 0 counts one above it.
PERFECT = 100.0
COLUMNS = (
    *("policy", "mean (s)", "p95 (s)", "of SRPT", "of PS"),
    *(f"slowdown, {name}" for name, _ in BINS),
    *("deadlines missed", "µs a task"),
)


def outcome(compared: Sequence[Compared], name: str, notes: Iterable[str] = ()) -> Outcome:
    """Everything about some runs."""
    groups: dict[str, list[Compared]] = {}
    for item in compared:
        groups.setdefault(item.case.title, []).append(item)
    findings = [finding for goal in GOALS for finding in _verdict(compared, goal)]
    tables = [_table(title, items) for title, items in groups.items()]
    tables.append(_scores(groups))
    tables.append(_usage(groups))
    return Outcome(tuple(findings), tuple(tables), (_chart(groups, name),), tuple(notes))


def _portfolio(goal: str) -> str:
    return f"{PORTFOLIO} ({goal})"


def _verdict(compared: Sequence[Compared], goal: str) -> Iterable[Finding]:
    own = [item.runs[_portfolio(goal)].scores[goal] for item in compared]
    fixed = {
        name: geometric_mean(
            [
                _ratio(ours, item.runs[name].scores[goal])
                for ours, item in zip(own, compared, strict=True)
            ]
        )
        for name in compared[0].fixed
    }
    # The best fixed policy is the one to which the portfolio compares worst.
    best = max(fixed, key=lambda policy: fixed[policy])
    yield Finding(
        f"{goal}: the portfolio's score, of the best fixed policy over all runs ({best})",
        f"at most {MOST_OF_FIXED:.1f}",
        f"{fixed[best]:.2f}",
        fixed[best] <= MOST_OF_FIXED,
    )
    ratios = hindsight_ratios(compared, goal)
    within = sum(ratio <= MOST_OF_HINDSIGHT for ratio in ratios) / len(ratios)
    yield Finding(
        f"{goal}: runs in which it is at most {MOST_OF_HINDSIGHT:.1f} of the best in hindsight",
        f"at least {SHARE_OF_RUNS:.0%}",
        f"{within:.0%} of {len(ratios)} (geometric mean {geometric_mean(ratios):.2f})",
        within >= SHARE_OF_RUNS,
    )


def hindsight_ratios(compared: Sequence[Compared], goal: str) -> list[float]:
    """The portfolio's score over that of the best fixed policy, run by run."""
    found = []
    for item in compared:
        _, best = item.hindsight(goal)
        own = item.runs[_portfolio(goal)].scores[goal]
        found.append(_ratio(own, best))
    return found


def _ratio(own: float, other: float) -> float:
    """One score over another; of a perfect one, `PERFECT`."""
    if other > 0:
        return max(own / other, 1 / PERFECT)
    return 1.0 if own <= 0 else PERFECT


def geometric_mean(values: Sequence[float]) -> float:
    """
    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return math.exp(fmean(map(math.log, values))) if values else 1.0


def _table(title: str, items: Sequence[Compared]) -> Table:
    rows = []
    for policy in items[0].runs:
        runs = [item.runs[policy] for item in items]
        bins: Mapping[str, list[float]] = {name: [] for name, _ in BINS}
        for ran in runs:
            for row in ran.summary.size_bins:
                if row.slowdown.mean is not None:
                    bins[row.bin].append(row.slowdown.mean)
        means = [ran.mean_s for ran in runs]
        rows.append(
            (
                policy,
                interval(means).text(),
                f"{fmean(ran.summary.response_s.p95 or 0.0 for ran in runs):.3g}",
                *(
                    f"{fmean(ran.mean_s / item.ideals[ideal] for ran, item in pairs):.2f}"
                    for ideal in ("SRPT", "PS")
                    for pairs in (list(zip(runs, items, strict=True)),)
                ),
                *(f"{fmean(values):.2f}" if values else "" for values in bins.values()),
                f"{fmean(ran.missed for ran in runs):.0%}",
                f"{fmean(1e6 * ran.wall_s / ran.launches for ran in runs):.0f}",
            )
        )
    arrivals = len(items[0].case.setting.workload.arrivals)
    slots = sum(node.slots for node in items[0].case.setting.nodes)
    seeds = f", {len(items)} seeds" if len(items) > 1 else ""
    return Table(
        f"{title} load: {arrivals:,} queries, {slots:,} slots{seeds}", COLUMNS, tuple(rows)
    )


def _scores(groups: Mapping[str, Sequence[Compared]]) -> Table:
    """The portfolios beside the best in hindsight."""
    rows = []
    for title, items in groups.items():
        for goal in GOALS:
            ratios = hindsight_ratios(items, goal)
            best: dict[str, int] = {}
            for item in items:
                name, _ = item.hindsight(goal)
                best[name] = best.get(name, 0) + 1
            often = ", ".join(
                f"{name} {count}" if len(items) > 1 else name
                for name, count in sorted(best.items(), key=lambda entry: -entry[1])
            )
            rows.append((f"{title}, {goal}", f"{geometric_mean(ratios):.2f}", often))
    columns = ("workload, goal", "of the best in hindsight", "which was best (runs)")
    return Table(
        "The portfolio's score beside the best fixed policy of each run", columns, tuple(rows)
    )


def _usage(groups: Mapping[str, Sequence[Compared]]) -> Table:
    """What the portfolios chose."""
    rows = []
    for title, items in groups.items():
        for goal in GOALS:
            runs = [item.runs[_portfolio(goal)] for item in items]
            shares: dict[str, float] = {}
            for ran in runs:
                for name, share in (ran.usage or {}).items():
                    shares[name] = shares.get(name, 0.0) + share / len(runs)
            most = sorted(shares.items(), key=lambda entry: -entry[1])[:4]
            decisions = fmean(len(ran.decisions) for ran in runs)
            switches = fmean(sum(d.is_switch for d in ran.decisions) for ran in runs)
            took = [d.wall_s for ran in runs for d in ran.decisions]
            rows.append(
                (
                    f"{title}, {goal}",
                    ", ".join(f"{name} {share:.0%}" for name, share in most),
                    f"{decisions:.0f}",
                    f"{switches:.0f}",
                    f"{1e3 * fmean(took):.0f}" if took else "",
                )
            )
    columns = ("workload, goal", "in force", "decisions", "switches", "ms a decision")
    return Table("What the portfolio did", columns, tuple(rows))


def _chart(groups: Mapping[str, Sequence[Compared]], name: str) -> Chart:
    shown = ("fifo", "fair", "tls", "marshal", "srtf", _portfolio("response"))
    by_name: dict[str, list[str]] = {}
    for title, items in groups.items():
        by_name.setdefault(items[0].case.name, []).append(title)
    panels = []
    for workload, titles in by_name.items():
        values: dict[str, list[Interval | None]] = {
            policy: [
                interval([item.runs[policy].mean_s / item.ideals["SRPT"] for item in groups[title]])
                for title in titles
            ]
            for policy in shown
        }
        panels.append(bar_panel(workload, "mean response, of SRPT's", titles, values))
    return Chart(f"recorded-{name}", "Recorded workloads", tuple(panels), bar_keys(shown))
