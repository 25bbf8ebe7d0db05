"""What became of recorded workloads, as tables, a picture and a verdict on the portfolio."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from research.bars import bar_keys, bar_panel
from research.outcome import Chart, Interval, Outcome, Table, interval, of_seeds

from .comparison import GOALS, OTHER_GOAL, Compared, left_out, portfolio_name
from .verdict import best_fixed, geometric_mean, hindsight_ratios, ratio, verdict
from .workloads import BINS

# In the picture.
SHOWN = ("fifo", "fair", "tls", "srtf", "cost-of-delay")
COLUMNS = (
    *("policy", "mean (s)", "p95 (s)", "of SRPT", "of PS"),
    *(f"slowdown, {name}" for name, _ in BINS),
    *("deadlines missed", "µs per task"),
)


def outcome(compared: Sequence[Compared], name: str, notes: Iterable[str] = ()) -> Outcome:
    """Everything about some runs."""
    groups: dict[str, list[Compared]] = {}
    for item in compared:
        groups.setdefault(item.case.title, []).append(item)
    tables = [_table(title, items) for title, items in groups.items()]
    tables.append(_scores(groups))
    tables.append(_usage(groups))
    first = compared[0].case.other_first
    if first is not None:
        tables.append(_beginning(groups, first, best_fixed(compared, OTHER_GOAL)))
    return Outcome(
        verdict(compared),
        tuple(tables),
        (_chart(groups, name),),
        (*notes, left_out()),
        material=tuple(compared),
    )


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
    told = f"{title} load: {arrivals:,} queries, {slots:,} slots, {of_seeds(len(items))}"
    return Table(told, COLUMNS, tuple(rows))


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
            runs = [item.runs[portfolio_name(goal)] for item in items]
            shares: dict[str, float] = {}
            for ran in runs:
                for name, share in (ran.usage or {}).items():
                    shares[name] = shares.get(name, 0.0) + share / len(runs)
            most = sorted(shares.items(), key=lambda entry: -entry[1])[:4]
            decisions = fmean(len(ran.decisions) for ran in runs)
            switches = fmean(sum(d.chose_another for d in ran.decisions) for ran in runs)
            took = [d.wall_s for ran in runs for d in ran.decisions]
            rows.append(
                (
                    f"{title}, {goal}",
                    ", ".join(f"{name} {share:.0%}" for name, share in most),
                    f"{decisions:.0f}",
                    f"{switches:.1f}",
                    f"{1e3 * fmean(took):.0f}" if took else "",
                )
            )
    columns = ("workload, goal", "in force", "decisions", "switches", "ms per decision")
    return Table("What the portfolio did", columns, tuple(rows))


def _beginning(groups: Mapping[str, Sequence[Compared]], first: str, best: str) -> Table:
    """How much depends on the candidate that is in force until there is something to choose."""
    own, other = portfolio_name(OTHER_GOAL), portfolio_name(OTHER_GOAL, first)
    rows = []
    for title, items in groups.items():

        def of_best(name: str, items: Sequence[Compared] = items) -> str:
            scores = [
                (item.runs[name].scores[OTHER_GOAL], item.runs[best].scores[OTHER_GOAL])
                for item in items
            ]
            return f"{geometric_mean([ratio(*pair) for pair in scores]):.2f}"

        usage = fmean((item.runs[other].usage or {}).get(first, 0.0) for item in items)
        rows.append((title, of_best(own), of_best(other), of_best(first), f"{usage:.0%}"))
    columns = (
        "workload",
        "the portfolio",
        f"beginning with {first}",
        f"{first} alone",
        f"{first} in force",
    )
    told = f"If the portfolio begins with another candidate: {OTHER_GOAL} scores, of {best}'s"
    return Table(told, columns, tuple(rows))


def _chart(groups: Mapping[str, Sequence[Compared]], name: str) -> Chart:
    ran = next(iter(groups.values()))[0].runs
    shown = [name for name in (*SHOWN, portfolio_name("response")) if name in ran]
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
