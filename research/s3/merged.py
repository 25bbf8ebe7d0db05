"""What it costs to run several jobs as one over the same file (S³ figure 3)."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from queryard.core.model import MAP
from queryard.metrics.runs import read_run
from research.bars import bar_keys, bar_panel
from research.judging import FAR, beside, direction, with_size
from research.numbers import HUNDREDTHS, as_percent
from research.outcome import (
    Chart,
    Experiment,
    Finding,
    Interval,
    Outcome,
    RunOptions,
    Table,
    interval,
)
from research.trials import Setting, change

from .chosen import CHOSEN
from .cluster import (
    JOB_START_S,
    JOBS,
    MAP_MORE,
    NORMAL,
    REDUCE_MORE,
    REDUCE_S,
    SLOW_START,
    TOTAL_MORE,
    setting,
    sized,
)
from .rivals import mrshare, run, times

PRINTED = {"total": TOTAL_MORE, "map": MAP_MORE, "reduce": REDUCE_MORE}
TRIED = (1, 2, 5, JOBS)
_SET = "not a result: the costs were set from it"


class Costs(NamedTuple):
    """A merged job, and the means of its maps and reduces as Hadoop counts them."""

    total: float
    map: float
    reduce: float


def costs(where: Setting, seed: int) -> Costs:
    """All jobs of a setting as one batch. A reduce lasts from its launch, shuffle and all."""
    found = run(where, mrshare([len(where.workload.arrivals)]), seed, keep_journal=True)
    seconds: dict[str, list[float]] = {"map": [], "reduce": []}
    for launch in read_run(found.journal).launches:
        if launch.end_s is None:
            continue
        # Hadoop launches maps when the job is set up; the simulator lets the first ones wait.
        began_s = max(launch.start_s, JOB_START_S) if launch.kind == MAP else launch.start_s
        seconds[launch.kind].append(launch.end_s - began_s)
    total_s = times(where, found).tet_s
    return Costs(total_s, fmean(seconds["map"]), fmean(seconds["reduce"]))


def growth(many: list[Costs], one: list[Costs]) -> dict[str, Interval]:
    """By which share each cost is above that of a single job."""
    return {
        name: change([getattr(each, name) for each in many], [getattr(each, name) for each in one])
        for name in Costs._fields
    }


def run_all(options: RunOptions) -> Outcome:
    load = sized(NORMAL, options.size)
    found: dict[int, list[Costs]] = {count: [] for count in TRIED}
    for seed in range(options.seeds):
        options.tell(f"merged jobs, seed {seed}")
        for count in TRIED:
            found[count].append(costs(setting(load, seed, (count,)), seed))
    grown = {count: growth(found[count], found[1]) for count in TRIED}
    findings = []
    for name, printed in PRINTED.items():
        ours = grown[JOBS][name]
        note = "" if name == "reduce" else _SET
        what = f"{JOBS} merged jobs against one, {name}"
        findings.append(replace(beside(what, printed, ours, as_percent), note=note))
    one_by_one = [JOBS * each.total for each in found[1]]
    gain = change([each.total for each in found[JOBS]], one_by_one)
    findings.append(
        Finding(
            f"{JOBS} merged jobs against {JOBS} one after another",
            "far less",
            gain.text(as_percent),
            with_size(direction(gain.mean < 0, gain, 0.0), -gain.mean, FAR),
        )
    )
    groups = [*(f"{count} jobs" for count in TRIED[1:]), "10 jobs, paper"]
    bars: dict[str, list[Interval | None]] = {
        name: [
            *(_in_percent(grown[count][name]) for count in TRIED[1:]),
            _in_percent(interval([PRINTED[name]])),
        ]
        for name in Costs._fields
    }
    panel = bar_panel("Merged jobs against one", "more (%)", groups, bars)
    chart = Chart("s3-merged", "What merging costs", (panel,), bar_keys(Costs._fields))
    tables = (_seconds(found), _dependence(options))
    return Outcome(tuple(findings), tables, (chart,), NOTES)


def _in_percent(share: Interval) -> Interval:
    return Interval(100 * share.mean, 100 * share.low, 100 * share.high, share.seeds)


def _seconds(found: dict[int, list[Costs]]) -> Table:
    rows = tuple(
        (
            str(count),
            *(
                interval([getattr(each, name) for each in of]).text(HUNDREDTHS)
                for name in Costs._fields
            ),
        )
        for count, of in found.items()
    )
    return Table("Seconds", ("merged jobs", "total", "a map", "a reduce"), rows)


def _dependence(options: RunOptions) -> Table:
    """The reduces are the part of it that was not set: when they start, how long they take."""
    rows = []
    for slow_start in (SLOW_START, 0.5, 1.0):
        for reduce_s in (REDUCE_S / 2, REDUCE_S, REDUCE_S * 2):
            options.tell(f"reduces of {reduce_s:g} s from {slow_start:g} on")
            load = sized(replace(NORMAL, reduce_s=reduce_s), options.size)
            one, many = (
                costs(replace(setting(load, 0, (count,)), slow_start=slow_start), 0)
                for count in (1, JOBS)
            )
            shares = growth([many], [one])
            cells = (as_percent(shares[name].mean) for name in Costs._fields)
            rows.append((f"{100 * slow_start:.0f} % of the maps, {reduce_s:g} s", *cells))
    title = f"{JOBS} merged jobs against one, by when reduces start and what they take (1 seed)"
    return Table(title, ("reduces", *Costs._fields), tuple(rows))


NOTES = (
    "The totals and the maps agree because rider cost and start costs were taken from these two "
    "figures. The reduces were not: they wait for the maps from 5 % of them on, so that they grow "
    "nearly as the maps do",
)

EXPERIMENT = Experiment(
    "s3-merged", "What it costs to merge jobs", "S³ §V.C, figure 3", run_all, CHOSEN
)
