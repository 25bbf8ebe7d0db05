"""Slowdowns by size of the queries: how evenly three schedulers treat small and large ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from queryard.metrics import Summary
from research.bars import bar_keys, bar_panel
from research.judging import (
    CHANCE,
    around,
    beside,
    direction,
    remark,
    whether,
    with_size,
)
from research.numbers import TIMES, as_percent
from research.outcome import (
    Chart,
    Experiment,
    Finding,
    Outcome,
    RunOptions,
    Table,
    interval,
    of_seeds,
)
from research.trials import change

from .mixes import BIN_TITLES, BINS, USUAL_TRAFFIC, WORKLOADS, Traffic, mix_run, mix_runs
from .response import EXPERIMENT as RESPONSE
from .response import OTHERWISE as OTHER_CHOICES
from .response import SENSITIVITY_SEEDS
from .yard import SCHEDULERS, USUAL

Runs = Mapping[str, Sequence[Summary]]

# Other traffic, a part of what tls-response looks at.
OTHERWISE: Mapping[str, Traffic] = {
    title: OTHER_CHOICES[title][1] for title in ("load 0.4", "load 1.6", "four queues for HCS")
}
# §5.3: the mean over the bins of the largest slowdown in each, TLS against the other. Slowdowns of
# QMix are not printed.
PRINTED_MAXIMA: Mapping[str, Mapping[str, float]] = {
    "Bing": {"HCS": -0.759, "HFS": -0.552},
    "Facebook": {"HCS": -0.652, "HFS": -0.625},
}
# Mean slowdowns of Bing's smallest and largest queries under HCS.
PRINTED_SMALL, PRINTED_LARGE = 13.5, 2.23
UNEVEN_BY_CHANCE = "that small ones are slowed more than large ones may be chance"


def run(options: RunOptions) -> Outcome:
    runs = {name: mix_runs(options, name) for name in WORKLOADS}
    findings = [
        *(finding for name in WORKLOADS for finding in _maxima(name, runs[name])),
        *_ends_of_bing(runs["Bing"]),
        *(_evenness(name, runs[name]) for name in WORKLOADS),
        _large_under_fair(runs["Facebook"]),
    ]
    tables = (
        slowdown_table("Largest slowdown in each bin", runs, "max"),
        slowdown_table("Mean slowdown in each bin", runs, "mean"),
        _sensitivity(options),
    )
    charts = (_chart("tls-slowdown", runs, "max"), _chart("tls-slowdown-mean", runs, "mean"))
    return Outcome(tuple(findings), tables, charts, NOTES)


def slowdown(summary: Summary, size_bin: str, what: str) -> float:
    """The `max` or `mean` slowdown of a bin."""
    row = next(row for row in summary.size_bins if row.bin == size_bin)
    found = row.slowdown.max if what == "max" else row.slowdown.mean
    assert found is not None
    return found


def _over_bins(runs: Runs, scheduler: str) -> list[float]:
    """The mean of the bins' largest slowdowns, seed by seed."""
    return [fmean(slowdown(summary, b, "max") for b in BINS) for summary in runs[scheduler]]


def _maxima(name: str, runs: Runs) -> list[Finding]:
    found = []
    for other in ("HCS", "HFS"):
        ours = change(_over_bins(runs, "TLS"), _over_bins(runs, other))
        what = f"{name}: mean over bins of the largest slowdown, TLS against {other}"
        if name not in PRINTED_MAXIMA:
            found.append(Finding(what, "", ours.text(as_percent)))
            continue
        found.append(beside(what, PRINTED_MAXIMA[name][other], ours, as_percent))
    return found


def _ends_of_bing(runs: Runs) -> list[Finding]:
    """The direction is that small queries are slowed more than large ones, run by run."""
    small, large = (
        [slowdown(summary, size_bin, "mean") for summary in runs["HCS"]]
        for size_bin in (BINS[0], BINS[-1])
    )
    more = change(small, large)
    agrees = direction(more.mean > 0, more, 0.0)
    found = []
    for title, printed, values in (
        (BIN_TITLES[0], PRINTED_SMALL, small),
        (BIN_TITLES[-1], PRINTED_LARGE, large),
    ):
        ours = interval(values)
        note = UNEVEN_BY_CHANCE if agrees is None else remark(printed, ours, neutral=1.0)
        what = f"Bing under HCS: mean slowdown, {title}"
        judged = with_size(agrees, ours.mean - 1.0, around(printed - 1.0))
        found.append(Finding(what, TIMES(printed), ours.text(TIMES), judged, note))
    return found


def _evenness(name: str, runs: Runs) -> Finding:
    """In how many bins TLS has the least mean slowdown of the three."""
    means = {
        scheduler: [
            fmean(slowdown(summary, b, "mean") for summary in runs[scheduler]) for b in BINS
        ]
        for scheduler in SCHEDULERS
    }
    least = sum(
        min(column) == own for own, *column in zip(means["TLS"], *means.values(), strict=True)
    )
    what = f"{name}: bins of five in which TLS has the least mean slowdown"
    if name not in PRINTED_MAXIMA:
        return Finding(what, "", str(least))
    return Finding(what, "5", str(least), whether(least == len(BINS)))


def _large_under_fair(runs: Runs) -> Finding:
    """§5.3: against HCS, HFS serves Facebook's large queries worse."""

    def means(scheduler: str) -> list[float]:
        return [
            fmean(slowdown(summary, b, "mean") for b in BINS[-2:]) for summary in runs[scheduler]
        ]

    ours = change(means("HFS"), means("HCS"))
    what = "Facebook: mean slowdown of bins 4 and 5, HFS against HCS"
    agrees = direction(ours.mean > 0, ours, 0.0)
    note = CHANCE if agrees is None else ""
    return Finding(what, "much more", ours.text(as_percent), agrees, note)


def slowdown_table(
    title: str, runs: Mapping[str, Runs], what: str, bin_titles: Sequence[str] = BIN_TITLES
) -> Table:
    """The `max` or `mean` slowdown of every workload and bin."""
    rows = []
    for name, of_name in runs.items():
        for size_bin, bin_title in zip(BINS, bin_titles, strict=True):
            cells = (
                interval([slowdown(summary, size_bin, what) for summary in of_name[scheduler]])
                for scheduler in SCHEDULERS
            )
            rows.append((f"{name}, {bin_title}", *(cell.from_zero().text() for cell in cells)))
    return Table(title, ("", *SCHEDULERS), tuple(rows))


def _sensitivity(options: RunOptions) -> Table:
    rows = []
    seeds = min(SENSITIVITY_SEEDS, options.seeds)
    for title, traffic in {"as chosen": USUAL_TRAFFIC, **OTHERWISE}.items():
        options.tell(f"otherwise: {title}")
        cells = []
        for name, printed in PRINTED_MAXIMA.items():
            by_seed = [mix_run(name, seed, options.size, USUAL, traffic) for seed in range(seeds)]
            runs = {scheduler: [found[scheduler] for found in by_seed] for scheduler in SCHEDULERS}
            for other in printed:
                ours = change(_over_bins(runs, "TLS"), _over_bins(runs, other))
                cells.append(as_percent(ours.mean))
        rows.append((title, *cells))
    columns = (
        "",
        *(f"{name}: vs {other}" for name, printed in PRINTED_MAXIMA.items() for other in printed),
    )
    title = "Mean over bins of the largest slowdown of TLS, if traffic is otherwise"
    title += f" ({of_seeds(seeds)})"
    return Table(title, columns, tuple(rows))


def _chart(name: str, runs: Mapping[str, Runs], what: str) -> Chart:
    panels = [
        bar_panel(
            workload,
            "slowdown",
            BIN_TITLES,
            {
                scheduler: [
                    interval([slowdown(summary, b, what) for summary in of[scheduler]])
                    for b in BINS
                ]
                for scheduler in SCHEDULERS
            },
        )
        for workload, of in runs.items()
    ]
    title = f"{'Largest' if what == 'max' else 'Mean'} slowdown in each bin"
    return Chart(name, title, tuple(panels), bar_keys(tuple(SCHEDULERS)))


NOTES = (
    "TLS against HCS is as printed in direction and, on Bing, in size. In the mean over seeds HCS "
    "slows small queries most and large ones least, but less unevenly than printed: with one queue "
    "the jobs of large queries line up as well",
    "Against HFS the gain is about half of what was printed on Bing, and less on Facebook, where "
    "HFS slows no bin much at this load; see tls-response",
    "Whether HFS serves Facebook's large queries worse than HCS does not show: there are three of "
    "them in a run",
    "Of QMix no slowdowns were printed. Ours are much like those of Facebook, of which it is made: "
    "TLS has the least mean in every bin, but in the largest slowdowns it is ahead of HFS by no "
    "more than chance",
)

EXPERIMENT = Experiment(
    "tls-slowdown",
    "Slowdown of small and large queries under TLS and Hadoop's schedulers",
    "TLS §5.3, Fig. 12 and 13",
    run,
    {
        "time alone": "simulated for each query on the idle cluster",
        **RESPONSE.parameters,
    },
)
