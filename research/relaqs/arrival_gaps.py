"""How the gain depends on how fast queries come (ReLAQS figs. 8 and 9), and on a least share.

The crossing point is the highest error reduction that ReLAQS reaches before fair sharing does, in
the mean over the queries. Four cores are one slot here and epochs take 10 s, which keeps 100 runs
short; the last table of relaqs-time says what that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from queryard.figures.palette import policy_colour
from queryard.figures.panels import Axis, Line, Panel
from research.bars import bar_keys, bar_panel
from research.judging import (
    FACTOR,
    around,
    direction,
    judge,
    remark,
    times_printed,
    with_size,
)
from research.numbers import as_percent
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
    of_seeds,
)
from research.trials import change, parts

from .errors import (
    BY_CHANCE,
    EXACT,
    FAIR,
    LAW,
    LEVELS,
    READINGS,
    RELAQS,
    ROUGH,
    ROUGH_EPOCH_S,
    SAMPLING,
    WORDS,
    Curve,
    chance,
    crossings,
    curves,
    mean_curve,
    relaqs_with,
    times,
)
from .queries import FOUR_CORES, Scene

GAPS_S = (10, 20, 40, 80, 120, 160, 200, 320)
LEAST_SHARES = (0.25, 0.5, 1.0)
BASE_S = 120
# Printed crossing points by gap.
PRINTED = {10: 0.952, BASE_S: 0.997}
# The gaps at which the gain is printed to be largest.
PRINTED_BEST_S = (120, 160)
AT = 0.9
# A crossing point lies between these, or the two do not cross where answers are any good.
HALF = 0.5
# What counts as no difference.
SAME = 0.05
FEW_SEEDS = 3
NOTES = (
    "with 50 batches nothing lies between 98 % and exact by the standard error or the 1/i law, so "
    "99.7 % cannot come out by these",
    "by the standard error 90 % is beyond the crossing point at every gap, so there is no gain; by "
    "the other two the gain is small at 10 s, as printed, and large from 80 s on; which of these "
    "gaps is best the seeds do not tell; at 320 s it is still large, when 12 queries of an hour "
    "still overlap, and it shrinks at 1280 s",
    "all at once: by the standard error ReLAQS is later with queries of unequal size and hardly "
    "with equal ones, so it is the sizes that make the difference",
    "that a least share lowers the crossing point was not found; exact answers are sooner with it "
    "as printed; why the crossing point stays where it is we do not know",
    "with a least share of 1 the two schedulers are alike, and their crossing point means nothing",
)

Found = Mapping[str, Sequence[Curve]]


def run(options: RunOptions) -> Outcome:
    scene = Scene(queries=parts(12, options.size), nodes=FOUR_CORES)
    by_gap = {
        gap_s: curves(options, f"gap {gap_s} s", replace(scene, gap_s=gap_s), options.seeds, ROUGH)
        for gap_s in GAPS_S
    }
    few = min(options.seeds, FEW_SEEDS)
    together = replace(scene, gap_s=0.0)
    limits = {
        "all at once": curves(options, "all at once", together, few, ROUGH),
        "all at once, equal queries": curves(
            options, "equal", replace(together, equal=True), few, ROUGH
        ),
        "a single query": curves(options, "single", replace(scene, queries=1), few, ROUGH),
    }
    far = curves(options, "gap 1280 s", replace(scene, gap_s=1280.0), few, ROUGH)
    by_share = {0.0: {name: runs[:few] for name, runs in by_gap[BASE_S].items()}}
    for share in LEAST_SHARES:
        profiles = {RELAQS: relaqs_with(min_share=share, epoch_s=ROUGH_EPOCH_S)}
        ours = curves(options, f"least share {share}", replace(scene, gap_s=BASE_S), few, profiles)
        by_share[share] = {FAIR: by_share[0.0][FAIR], **ours}
    return Outcome(
        (*_crossing_findings(by_gap), *_gain_findings(by_gap), *_others(limits, by_share)),
        (
            _table("By arrival gap", {f"{gap_s} s": of for gap_s, of in by_gap.items()}),
            _table(f"Limit cases ({of_seeds(few)})", {**limits, "1280 s": far}),
            _table(
                f"Least share, of a fair one, at 120 s ({of_seeds(few)})",
                {f"{share:g}": of for share, of in by_share.items()},
            ),
        ),
        (_gap_chart(by_gap), _share_chart(by_share)),
        NOTES,
    )


def gains(found: Found, reading: str, level: float = AT) -> Interval:
    """How much sooner than under fair sharing a level is reached: 0.2 is 20 % sooner."""
    moved = change(*(times(found[name], reading, level) for name in (RELAQS, FAIR)))
    return Interval(-moved.mean, -moved.high, -moved.low, moved.seeds)


def _crossing_findings(by_gap: Mapping[int, Found]) -> Iterable[Finding]:
    for reading, word in WORDS.items():
        points = {gap_s: interval(crossings(by_gap[gap_s], reading)) for gap_s in PRINTED}
        for gap_s, printed in PRINTED.items():
            point = points[gap_s]
            crosses = direction(HALF < point.mean < EXACT, point, HALF, EXACT)
            # Close to 100 % the size of a crossing point is what is left of the error there.
            left, printed_left = EXACT - point.mean, EXACT - printed
            agrees = with_size(crosses, left, around(printed_left))
            note = f"error left there: {times_printed(left, printed_left)}"
            yield Finding(
                f"crossing point ({word}), gap {gap_s} s",
                f"{printed:.1%}",
                point.text("{:.1%}".format),
                agrees,
                {None: BY_CHANCE, Verdict.OTHER_SIZE: note}.get(agrees, ""),
            )
        rise = _difference(by_gap[BASE_S], by_gap[10], reading)
        printed_rise = PRINTED[BASE_S] - PRINTED[10]
        yield Finding(
            f"the faster queries come, the lower the crossing point ({word})",
            "95.2 % at 10 s, 99.7 % at 120 s",
            f"{points[10].mean:.1%} at 10 s, {points[BASE_S].mean:.1%} at {BASE_S} s",
            judge(printed_rise, rise),
            chance(rise) or remark(printed_rise, rise),
        )


def _difference(one: Found, other: Found, reading: str) -> Interval:
    """How much higher the crossing point of one is, seed by seed."""
    pairs = zip(crossings(one, reading), crossings(other, reading), strict=True)
    return interval([mine - its for mine, its in pairs])


def _gain_findings(by_gap: Mapping[int, Found]) -> Iterable[Finding]:
    for reading, word in WORDS.items():
        found = {gap_s: gains(of, reading).mean for gap_s, of in by_gap.items()}
        best = max(found, key=found.__getitem__)
        yield Finding(
            f"gain at 90 % ({word}): where it is largest, and at both ends",
            "120 to 160 s; small",
            f"{best} s: {found[best]:.1%}; {found[GAPS_S[0]]:.1%} at {GAPS_S[0]} s, "
            f"{found[GAPS_S[-1]]:.1%} at {GAPS_S[-1]} s",
            _where_largest(found, best),
        )


def _where_largest(found: Mapping[int, float], best: int) -> Verdict:
    """Largest between the ends; agrees at the printed gaps, if the ends are small."""
    ends = found[GAPS_S[0]], found[GAPS_S[-1]]
    if found[best] <= 0 or best in (GAPS_S[0], GAPS_S[-1]):
        return Verdict.DIFFERS
    if best in PRINTED_BEST_S and max(ends) * FACTOR < found[best]:
        return Verdict.AGREES
    return Verdict.OTHER_SIZE


def _others(limits: Mapping[str, Found], by_share: Mapping[float, Found]) -> Iterable[Finding]:
    for title, found in limits.items():
        for reading in (SAMPLING, LAW):
            gain = gains(found, reading)
            agrees = direction(abs(gain.mean) < SAME, gain, -SAME, SAME)
            yield Finding(
                f"{title}: gain at 90 % ({WORDS[reading]})",
                "none",
                gain.text("{:+.1%}".format),
                agrees,
                BY_CHANCE if agrees is None else "",
            )
    shares = (0.0, *LEAST_SHARES[:-1])
    for reading, word in WORDS.items():
        points = [interval(crossings(by_share[share], reading)).mean for share in shares]
        moved = _difference(by_share[shares[-1]], by_share[0.0], reading)
        yield Finding(
            f"crossing point by least share {', '.join(f'{share:g}' for share in shares)} ({word})",
            "falls",
            ", ".join(f"{point:.1%}" for point in points),
            direction(points[-1] < points[0], moved, 0.0),
            chance(moved),
        )
    exact = [-gains(by_share[share], SAMPLING, EXACT).mean for share in shares]
    sooner = change(
        *(times(by_share[share][RELAQS], SAMPLING, EXACT) for share in (shares[-1], 0.0))
    )
    yield Finding(
        "exact answers against fair, by least share",
        "less late the larger it is",
        ", ".join(map(as_percent, exact)),
        direction(exact[-1] < exact[0], sooner, 0.0),
        chance(sooner),
    )


def _table(title: str, found: Mapping[str, Found]) -> Table:
    rows = []
    for name, of in found.items():
        rows.append(
            (
                name,
                *(
                    f"{interval(times(of[scheduler], SAMPLING, AT)).mean:.0f}"
                    for scheduler in (FAIR, RELAQS)
                ),
                *(gains(of, reading).text("{:+.1%}".format) for reading in READINGS),
                *(f"{interval(crossings(of, reading)).mean:.1%}" for reading in READINGS),
                as_percent(-gains(of, SAMPLING, EXACT).mean),
            )
        )
    columns = (
        "",
        "fair, 90 % (s)",
        "ReLAQS, 90 % (s)",
        *(f"gain, {word}" for word in WORDS.values()),
        *(f"crossing, {word}" for word in WORDS.values()),
        "exact answer",
    )
    return Table(title, columns, tuple(rows))


def _gap_chart(by_gap: Mapping[int, Found]) -> Chart:
    groups = [str(gap_s) for gap_s in by_gap]
    percent = {
        word: [_scaled(gains(of, reading)) for of in by_gap.values()]
        for reading, word in WORDS.items()
    }
    points = {
        word: [_scaled(interval(crossings(of, reading))) for of in by_gap.values()]
        for reading, word in WORDS.items()
    }
    panels = (
        bar_panel("How much sooner at 90 %, by gap (s)", "gain (%)", groups, percent),
        bar_panel("Crossing point, by gap (s)", "error reduction (%)", groups, points),
    )
    return Chart("relaqs-crossing", "ReLAQS and arrival gaps", panels, bar_keys(list(percent)))


def _scaled(value: Interval) -> Interval:
    return Interval(100 * value.mean, 100 * value.low, 100 * value.high, value.seeds)


def _share_chart(by_share: Mapping[float, Found]) -> Chart:
    runs = {f"least share {share:g}": of[RELAQS] for share, of in by_share.items()}
    runs["fair"] = by_share[0.0][FAIR]
    panels = []
    for reading in READINGS:
        lines = tuple(
            Line(
                name,
                tuple(100 * level for level in LEVELS),
                mean_curve(of, reading),
                policy_colour(place),
                "dash" if name == "fair" else "solid",
            )
            for place, (name, of) in enumerate(runs.items())
        )
        top_s = 1.05 * max(line.y[-1] for line in lines)
        x_axis = Axis("error reduction (%)", 20.0, 100.0)
        panels.append(
            Panel(
                WORDS[reading].capitalize(), x_axis, Axis("mean time (s)", 0.0, top_s), lines=lines
            )
        )
    return Chart("relaqs-least-share", "A least share for every query", tuple(panels))


EXPERIMENT = Experiment(
    "relaqs-crossing",
    "When fair sharing is better than ReLAQS",
    "ReLAQS §6.2, figs. 8 and 9",
    run,
    {
        "queries": "as in relaqs-time, with the same gaps times a factor",
        "slots and epochs": "four cores each, 10 s: see the last table of relaqs-time",
        "all at once": "gap 0, with the 12 queries and with 12 equal ones",
        "least share": "a part of 1/n of the slots; the paper prints no values",
    },
)
