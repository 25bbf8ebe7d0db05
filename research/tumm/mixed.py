"""A mixed batch in three orders, under fixed ratios and under TuMM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from random import Random

from research.bars import bar_keys, bar_panel
from research.judging import whether
from research.numbers import ROUNDED, as_percent
from research.outcome import (
    Chart,
    Experiment,
    Finding,
    Interval,
    Outcome,
    RunOptions,
    Table,
    interval,
    of_seeds,
)
from research.trials import Profiles, Setting, change, over_seeds, parts, pick, run_one

from .clusters import CONDITIONS, HOMOGENEOUS, SLOW_START, setting
from .jobs import BENCHMARKS, CONTENTION, MIXED, Benchmark, batch, draw_mix, johnson
from .shared import COMMON_PARAMETERS, STATIC, TUMM, fell, makespan_s
from .slots_over_time import halves_finding, run_under_tumm, slots_chart, turns_finding

COMPARED: Profiles = {**STATIC, **TUMM}
MOST_SEEDS = 2
VARIANTS = (
    ("as above", CONDITIONS, SLOW_START),
    ("contention 0", replace(CONDITIONS, contention=0.0), SLOW_START),
    ("contention 0.125", replace(CONDITIONS, contention=CONTENTION / 2), SLOW_START),
    ("contention 0.5", replace(CONDITIONS, contention=CONTENTION * 2), SLOW_START),
    ("slow start 1", CONDITIONS, 1.0),
    ("spread of task times 0.4", replace(CONDITIONS, noise=0.4), SLOW_START),
)

STILL_FOLLOWS = "less than 1:3 and 2:2; 3:1 is slow in any order"

Mix = tuple[Benchmark, ...]
# Order -> scheduler -> makespan of every seed.
Makespans = Mapping[str, Mapping[str, Sequence[float]]]


def _johnson(mix: Mix, seed: int) -> Mix:
    return johnson(mix)


def _reverse(mix: Mix, seed: int) -> Mix:
    return johnson(mix)[::-1]


def _random(mix: Mix, seed: int) -> Mix:
    return tuple(Random(f"{seed}:order").sample(mix, len(mix)))


Arrange = Callable[[Mix, int], Mix]
ORDERS: Mapping[str, Arrange] = {
    "Johnson": _johnson,
    "reverse": _reverse,
    "random": _random,
}


def _build(draw: Callable[[int], Mix], arrange: Arrange, seed: int) -> Setting:
    return setting(batch(arrange(draw(seed), seed)))


def _measure(options: RunOptions, title: str, draw: Callable[[int], Mix]) -> Makespans:
    found = {}
    for name, arrange in ORDERS.items():
        build = partial(_build, draw, arrange)
        runs = over_seeds(options, f"{title}, {name}", build, COMPARED)
        found[name] = pick(runs, makespan_s)
    return found


def run(options: RunOptions) -> Outcome:
    jobs = parts(MIXED, options.size)
    drawn = _measure(options, "drawn", lambda seed: draw_mix(seed, jobs))
    each = BENCHMARKS * max(1, jobs // len(BENCHMARKS))
    even = _measure(options, "even", lambda seed: each)
    slots = run_under_tumm(johnson(each))
    return Outcome(
        (*_findings(drawn), *_even_findings(even), halves_finding(slots), turns_finding(slots)),
        (
            _table(f"{jobs} jobs drawn anew for each seed", drawn),
            _table("even mix, as many jobs of each benchmark", even),
            _variants(options, each),
        ),
        (_bars(drawn, even), slots_chart(slots, "Even mix, Johnson's order")),
        (
            "The paper drew its ten jobs once; which fixed ratio is best, and how much the order "
            "matters, follows from the draw. As many of each benchmark have as much map as reduce "
            "work, as the paper says of its batch",
            "Johnson's order comes from the true work of the jobs, as in the paper. Where map and "
            "reduce work are alike and come in this order, 2:2 is hardly ever idle, and two "
            "tasks of either kind are what a node with this contention does fastest: nothing is "
            "left to gain. TuMM wins there too if tasks of a kind slow each other less",
            "TuMM's makespan still follows the order, less than that of 1:3 and 2:2: the first "
            "job's maps and the last job's reduces have nothing beside them, and many tasks of a "
            "kind slow each other. 3:1 hardly follows it as its reduces are the limit throughout",
        ),
    )


def _spreads(found: Makespans, name: str) -> Interval:
    """By how much the slowest order takes longer than the fastest, seed by seed."""
    by_order = [found[order][name] for order in ORDERS]
    return interval([max(of) / min(of) - 1.0 for of in zip(*by_order, strict=True)])


def _findings(found: Makespans) -> list[Finding]:
    findings = []
    for order, of in found.items():
        best = [min(of[ratio][seed] for ratio in STATIC) for seed in range(len(of["TuMM"]))]
        what = f"TuMM against the best fixed ratio of each draw, order {order}"
        findings.append(fell(what, "below", change(of["TuMM"], best)))
    ours = _spreads(found, "TuMM")
    theirs = [_spreads(found, ratio).mean for ratio in STATIC]
    findings.append(
        Finding(
            "Slowest order against the fastest, TuMM; 1:3, 2:2, 3:1",
            "nearly none for TuMM, some for each ratio",
            f"{ours.text(as_percent)}; " + ", ".join(as_percent(value) for value in theirs),
            whether(ours.mean < min(theirs)),
            STILL_FOLLOWS,
        )
    )
    return findings


def _even_findings(found: Makespans) -> list[Finding]:
    best = {order: min(STATIC, key=lambda r: sum(of[r])) for order, of in found.items()}
    won = [
        order
        for order, of in found.items()
        if all(sum(of["TuMM"]) < sum(of[ratio]) for ratio in STATIC)
    ]
    ours = _spreads(found, "TuMM")
    theirs = [_spreads(found, ratio).mean for ratio in STATIC]
    return [
        Finding(
            "Even mix: best fixed ratio in each order",
            "2:2 in all three",
            ", ".join(f"{order} {ratio}" for order, ratio in best.items()),
            whether(set(best.values()) == {"2:2"}),
        ),
        Finding(
            "Even mix: orders in which TuMM is the fastest",
            "3 of 3",
            f"{len(won)} of {len(found)}",
            whether(len(won) == len(found)),
            "2:2 has hardly anything idle in Johnson's order of an even mix",
        ),
        Finding(
            "Even mix: slowest order against the fastest, TuMM; 1:3, 2:2, 3:1",
            "nearly none for TuMM, some for each ratio",
            f"{ours.text(as_percent)}; " + ", ".join(as_percent(value) for value in theirs),
            whether(ours.mean < min(theirs)),
            STILL_FOLLOWS,
        ),
    ]


def _table(title: str, found: Makespans) -> Table:
    rows = []
    for order, of in found.items():
        gain = change(of["TuMM"], of["2:2"]).text(as_percent)
        rows.append((order, *(interval(of[name]).text(ROUNDED) for name in COMPARED), gain))
    columns = ("order", *COMPARED, "TuMM against 2:2")
    return Table(f"Makespan (s): {title}", columns, tuple(rows))


def _bars(drawn: Makespans, even: Makespans) -> Chart:
    panels = tuple(
        bar_panel(
            title,
            "makespan (s)",
            list(ORDERS),
            {name: [interval(found[order][name]) for order in ORDERS] for name in COMPARED},
        )
        for title, found in (("Drawn for each seed", drawn), ("Even mix", even))
    )
    return Chart("tumm-mixed", "Mixed batches in three orders", panels, bar_keys(list(COMPARED)))


def _variants(options: RunOptions, even: Mix) -> Table:
    """TuMM against 2:2 on the even mix, in the best and the worst order."""
    rows = []
    seeds = range(min(options.seeds, MOST_SEEDS))
    for what, conditions, slow_start in VARIANTS:
        options.tell(what)
        cells = []
        for arrange in (_johnson, _reverse):
            case = setting(batch(arrange(even, 0)), HOMOGENEOUS, conditions, slow_start)
            times = {
                name: [makespan_s(run_one(case, COMPARED[name], seed)) for seed in seeds]
                for name in ("TuMM", "2:2")
            }
            cells.append(as_percent(change(times["TuMM"], times["2:2"]).mean))
        rows.append((what, *cells))
    columns = ("", "Johnson", "reverse")
    title = f"Even mix, TuMM against 2:2 with other parameters ({of_seeds(len(seeds))})"
    return Table(title, columns, tuple(rows))


EXPERIMENT = Experiment(
    "tumm-mixed",
    "TuMM and fixed slot ratios, a mixed batch in three orders",
    "TuMM §6.2.2, Fig. 8 and 9",
    run,
    {**COMMON_PARAMETERS, "jobs": "ten, each any of the five benchmarks, drawn for every seed"},
)
