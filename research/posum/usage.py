"""Figures 5.10 and 5.11: which policy was in force for how long, and what deciding costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from queryard.portfolio import Decision, in_force
from research.bars import bar_keys, bar_panel
from research.judging import judge, remark, whether
from research.numbers import as_share
from research.outcome import (
    Chart,
    Experiment,
    Finding,
    Interval,
    Outcome,
    RunOptions,
    Table,
    Verdict,
    interval,
)

from .schedulers import MODES, POLICIES, TITLES, Played, Rule, by_portfolio, peak_queue
from .workloads import INTERVAL_S, PARAMETERS, WORKLOADS, Draw

# Arrivals of workload 1 at other rates.
LOADS = {"light": 2 * INTERVAL_S, "published": INTERVAL_S, "heavy": 0.75 * INTERVAL_S}
# About 50 jobs at a time, beyond which the thesis' simulator could not cope.
DOUBLE_S = INTERVAL_S / 2
# Of the runs asked for, under other loads.
SHARE_OF_RUNS = 0.6
# Scores that differ by less are alike.
ALIKE = 0.01
EDLS = ("edls-sh", "edls-pr")
PRINTED_SRTF, PRINTED_ROUND_S = 0.65, 14.0

Shares = Mapping[str, Sequence[float]]


def shares(run: Played) -> dict[str, float]:
    """For which share of the time from the first decision each policy was in force."""
    return dict.fromkeys(POLICIES, 0.0) | in_force(run.decisions, run.end_s)


@dataclass(frozen=True, slots=True)
class _Usage:
    """The runs of one load in one mode."""

    load: str
    mode: str
    runs: tuple[Played, ...]

    def share(self, *policies: str) -> Interval:
        """With an interval that ends where shares do."""
        found = interval([sum(shares(run)[name] for name in policies) for run in self.runs])
        return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def _play(
    options: RunOptions,
    load: str,
    interval_s: float,
    mode: str,
    runs: int,
    rule: Rule = "published",
) -> _Usage:
    options.tell(f"{load}, {mode} mode")
    draw = Draw(WORKLOADS[1], interval_s, options.size)
    return _Usage(load, mode, tuple(by_portfolio(draw, run, mode, rule) for run in range(runs)))


def run(options: RunOptions) -> Outcome:
    used = {
        ("published", mode): _play(options, "published load", INTERVAL_S, mode, options.seeds)
        for mode in MODES
    }
    fewer = max(1, round(options.seeds * SHARE_OF_RUNS))
    for load, interval_s in LOADS.items():
        if load != "published":
            used[load, "mixed"] = _play(options, f"{load} load", interval_s, "mixed", fewer)
    double = _play(options, "double load", DOUBLE_S, "mixed", 1, "reflecting")
    findings = [*_by_mode(used), *_by_load(used), *_cost(used, double)]
    tables = (_shares_table(used.values()), _cost_table([*used.values(), double]))
    return Outcome(tuple(findings), tables, (_chart(used),), NOTES)


# --- findings --------------------------------------------------------------------------------


def _by_mode(used: Mapping[tuple[str, str], _Usage]) -> Iterable[Finding]:
    here = {mode: used["published", mode] for mode in MODES}
    srtf = {mode: usage.share("srtf") for mode, usage in here.items()}
    yield Finding(
        "SRTF in batch mode, share of the time",
        as_share(PRINTED_SRTF),
        srtf["batch"].text(as_share),
        judge(PRINTED_SRTF, srtf["batch"]),
        remark(PRINTED_SRTF, srtf["batch"]),
    )
    most = {
        mode: max(POLICIES, key=lambda name: usage.share(name).mean) for mode, usage in here.items()
    }
    yield Finding(
        "the policy that is most in force, by mode",
        "SRTF in all three",
        ", ".join(f"{mode}: {TITLES[name]}" for mode, name in most.items()),
        whether(all(name == "srtf" for name in most.values())),
    )
    yield Finding(
        "SRTF is most predominant in",
        "batch mode",
        ", ".join(f"{mode}: {as_share(share.mean)}" for mode, share in srtf.items()),
        *_more(srtf["batch"], srtf["deadline"]),
    )
    edls = {mode: usage.share(*EDLS) for mode, usage in here.items()}
    yield Finding(
        "EDLS in deadline mode against batch mode",
        "more",
        f"{edls['deadline'].text(as_share)} against {edls['batch'].text(as_share)}",
        *_more(edls["deadline"], edls["batch"]),
    )
    unused = [name for name in POLICIES if not any(u.share(name).mean for u in here.values())]
    yield Finding(
        "policies that are never in force",
        "none",
        ", ".join(TITLES[name] for name in unused) or "none",
        whether(not unused),
    )


def _by_load(used: Mapping[tuple[str, str], _Usage]) -> Iterable[Finding]:
    for policies, what, paper in (
        (("srtf",), "SRTF", "more when light"),
        (EDLS, "EDLS", "more when heavy"),
    ):
        light, heavy = (used[load, "mixed"].share(*policies) for load in ("light", "heavy"))
        yield Finding(
            f"{what} in mixed mode, light load against heavy",
            paper,
            f"{light.text(as_share)} against {heavy.text(as_share)}",
            *(_more(light, heavy) if what == "SRTF" else _more(heavy, light)),
        )


def _cost(used: Mapping[tuple[str, str], _Usage], double: _Usage) -> Iterable[Finding]:
    launches = [d.launches for run in used["published", "mixed"].runs for d in run.decisions]
    yield Finding(
        "what a round of four simulations costs (mixed mode)",
        f"{PRINTED_ROUND_S:g} s",
        f"{fmean(launches):,.0f} launches simulated",
        note="in seconds: see the table, which depends on the machine",
    )
    fullest = max(
        (decision for run in double.runs for decision in run.decisions),
        key=lambda decision: decision.queries,
    )
    late = sum(decision.dropped for run in double.runs for decision in run.decisions)
    yield Finding(
        "the most jobs in the queue at a decision, at twice the load",
        "at most 50, then the simulator cannot cope",
        f"{fullest.queries} jobs, {fullest.launches:,} launches; {late} decisions came too late",
    )


def _more(one: Interval, other: Interval) -> tuple[Verdict | None, str]:
    """Whether one share is above another, or that chance may have made the difference."""
    if one.low <= other.high and other.low <= one.high:
        return None, "within chance"
    return whether(one.mean > other.mean), ""


# --- tables and chart ------------------------------------------------------------------------


def _shares_table(used: Iterable[_Usage]) -> Table:
    rows = []
    for usage in used:
        cells = (usage.share(name).text(as_share) for name in POLICIES)
        jobs = fmean(peak_queue(run.schedule) for run in usage.runs)
        title = f"{usage.load}, {usage.mode} mode"
        rows.append((title, f"{len(usage.runs)}", f"{jobs:.0f}", *cells))
    columns = ("load, mode", "seeds", "most jobs at a time", *(TITLES[name] for name in POLICIES))
    return Table("Share of the time in force", columns, tuple(rows))


def _cost_table(used: Iterable[_Usage]) -> Table:
    rows = []
    for usage in used:
        decisions = [decision for run in usage.runs for decision in run.decisions]
        hours = sum(run.end_s for run in usage.runs) / 3600
        launches = [decision.launches for decision in decisions]
        rows.append(
            (
                f"{usage.load}, {usage.mode} mode",
                f"{len(usage.runs)}",
                f"{max(decision.queries for decision in decisions)}",
                f"{len(decisions) / hours:.0f}",
                f"{sum(decision.chose_another for decision in decisions) / hours:.0f}",
                as_share(fmean(_is_indifferent(decision) for decision in decisions)),
                f"{fmean(launches):,.0f}",
                f"{max(launches):,}",
                f"{1000 * fmean(decision.wall_s for decision in decisions):.0f}",
                f"{1000 * max(decision.wall_s for decision in decisions):.0f}",
            )
        )
    columns = (
        "load",
        "seeds",
        "most jobs seen",
        "decisions per hour",
        "switches per hour",
        "several score best",
        "launches per decision",
        "at most",
        "ms per decision (this machine)",
        "at most",
    )
    return Table("What decisions cost", columns, tuple(rows))


def _is_indifferent(decision: Decision) -> bool:
    """Whether the second best was as good as the best."""
    ranked = sorted(decision.scores.values())
    return len(ranked) > 1 and ranked[1] <= ranked[0] * (1 + ALIKE)


def _chart(used: Mapping[tuple[str, str], _Usage]) -> Chart:
    panels = []
    for title, groups, keys in (
        ("By mode, at the published load", MODES, [("published", mode) for mode in MODES]),
        ("By load, in mixed mode", tuple(LOADS), [(load, "mixed") for load in LOADS]),
    ):
        values: dict[str, list[Interval | None]] = {
            TITLES[name]: [_inas_share(used[key].share(name)) for key in keys] for name in POLICIES
        }
        panel = bar_panel(title, "share of the time (%)", groups, values)
        panels.append(replace(panel, y=replace(panel.y, high=100.0)))
    names = [TITLES[name] for name in POLICIES]
    return Chart("posum-usage", "Which policy is in force", tuple(panels), bar_keys(names))


def _inas_share(share: Interval) -> Interval:
    return Interval(100 * share.mean, 100 * share.low, 100 * share.high, share.seeds)


NOTES = (
    "Where several policies score best, the one in force stays, so that much of the time in force "
    "is inertia; the table says how often. The thesis blames chance for the same",
    "It shows one run of each mode, ours are several: from run to run shares differ more than "
    "between modes, so that five runs do not tell the modes apart. Without the limits of Hadoop's "
    "Capacity Scheduler, EDLS-Pr costs batch jobs next to nothing (see posum-scores), and "
    "simulations can hardly tell it from SRTF",
    "The number of simulated launches is the cost of a decision on any machine; the times are "
    "those of one process that simulates one policy after another",
)

EXPERIMENT = Experiment(
    "posum-usage",
    "Which policies a portfolio follows, and what deciding costs",
    "POSUM §5.4.2 to §5.4.4, figures 5.7, 5.10 and 5.11",
    run,
    {
        **PARAMETERS,
        "loads": "; ".join(f"{load}: a job every {s:g} s" for load, s in LOADS.items())
        + f"; double: every {DOUBLE_S:g} s, with a period that follows the queue",
        "workload": "the first; what is in force when the queue is empty counts too",
    },
)
