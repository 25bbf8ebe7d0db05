"""TET and ART of the others as multiples of S³'s: runs over seeds, findings, tables, pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from queryard.figures.palette import INK
from queryard.figures.panels import Line, Panel
from research.bars import bar_keys, bar_panel
from research.judging import CHANCE, Sizes, around, direction, times_printed, with_size
from research.numbers import HUNDREDTHS, ROUNDED
from research.outcome import (
    Chart,
    Finding,
    Interval,
    RunOptions,
    Table,
    Verdict,
    interval,
    of_seeds,
)
from research.trials import Setting

from .cluster import HEARTBEAT_S, JOB_START_S
from .rivals import LIGHT, OTHERS, WHOLE, Rival, Times, measure, rivals

Build = Callable[[int], Setting]
Runs = Mapping[str, Sequence[Times]]
Measure = Literal["TET", "ART"]
MEASURES: tuple[Measure, ...] = ("TET", "ART")
READINGS = {
    WHOLE: f"sub-jobs start in {JOB_START_S:.0f} s",
    LIGHT: f"sub-jobs start in {HEARTBEAT_S:.0f} s",
}
MRSHARE = ("MRS1", "MRS2", "MRS3")
# Closer to S³ than this, a scheduler is neither ahead nor behind.
DRAW = 0.02
# Seeds of a table that shows how conclusions depend on something; they hardly differ.
FEWER_SEEDS = 1


def compare(
    options: RunOptions, title: str, build: Build, seeds: int | None = None
) -> dict[str, list[Times]]:
    """Every scheduler on the setting of every seed."""
    return trials(options, title, build, rivals(), seeds)


def trials(
    options: RunOptions,
    title: str,
    build: Build,
    schedulers: Mapping[str, Rival],
    seeds: int | None = None,
) -> dict[str, list[Times]]:
    """Some schedulers on the setting of every seed, or of the first few."""
    found: dict[str, list[Times]] = {name: [] for name in schedulers}
    for seed in range(options.seeds if seeds is None else min(seeds, options.seeds)):
        options.tell(f"{title}, seed {seed}")
        setting = build(seed)
        for name, rival in schedulers.items():
            found[name].append(measure(setting, rival, seed))
    return found


def values(times: Iterable[Times], what: Measure) -> list[float]:
    return [each.tet_s if what == "TET" else each.art_s for each in times]


def ratio(others: Sequence[Times], s3: Sequence[Times], what: Measure) -> Interval:
    """Theirs over S³'s, seed by seed."""
    pairs = zip(values(others, what), values(s3, what), strict=False)
    return interval([theirs / ours for theirs, ours in pairs])


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says of some of the others, as a multiple of S³.

    Of several schedulers `pick` says which counts. `side` is +1 where S³ is said to be ahead,
    -1 where the other is. `why` says, for either kind of S³, why ours differs; `words` stands for a
    size that the paper gives in words, as a distance from 1.
    """

    what: str
    paper: str
    names: tuple[str, ...]
    measure: Measure
    pick: Callable[[Iterable[float]], float] = min
    side: int = 1
    why: Mapping[str, str] = field(default_factory=dict)
    words: Sizes = (0.0, math.inf)

    @property
    def printed(self) -> float | None:
        """The number that was printed, if one was.

        >>> Claim("", "1.03 (MRS2)", (), "TET").printed, Claim("", "above 1", (), "TET").printed
        (1.03, None)
        """
        try:
            return float(self.paper.split()[0])
        except ValueError:
            return None

    @property
    def sizes(self) -> Sizes:
        """The distances from 1 that agree."""
        return self.words if self.printed is None else around(abs(self.printed - 1.0))

    def found(self, runs: Runs, base: str) -> Interval:
        ours = values(runs[base], self.measure)
        theirs = zip(*(values(runs[name], self.measure) for name in self.names), strict=True)
        return interval([self.pick(each) / own for each, own in zip(theirs, ours, strict=True)])


def judged(claims: Iterable[Claim], runs: Runs, context: str = "") -> list[Finding]:
    """Every claim beside ours, with dear and with cheap sub-jobs."""
    findings = []
    for base, reading in READINGS.items():
        for claim in claims:
            found = claim.found(runs, base)
            ahead = (found.mean - 1.0) * claim.side > DRAW
            size = abs(found.mean - 1.0)
            agrees = with_size(direction(ahead, found, 1.0 + DRAW * claim.side), size, claim.sizes)
            what = f"{context}{claim.what}, {reading}"
            ours = found.text(HUNDREDTHS)
            notes = [claim.why.get(base, "")]
            if agrees is Verdict.OTHER_SIZE and claim.printed is not None:
                notes.insert(0, times_printed(size, abs(claim.printed - 1.0)))
            note = CHANCE if agrees is None else "; ".join(filter(None, notes))
            findings.append(Finding(what, claim.paper, ours, agrees, note))
    return findings


def results(title: str, runs: Runs) -> Table:
    """Seconds, and multiples of both kinds of S³."""
    rows = []
    for name, times in runs.items():
        seconds = (interval(values(times, what)).text(ROUNDED) for what in MEASURES)
        multiples = (
            f"{ratio(times, runs[base], what).mean:.2f}" for base in READINGS for what in MEASURES
        )
        rows.append((name, *seconds, *multiples))
    multiples_of = (f"{what} / {base}" for base in READINGS for what in MEASURES)
    return Table(title, ("scheduler", "TET (s)", "ART (s)", *multiples_of), tuple(rows))


def row(label: str, others: Runs, s3: Sequence[Times]) -> tuple[str, ...]:
    """A row of a table of dependence: TET / ART of the others as multiples of this S³."""
    cells = []
    for name in OTHERS:
        tet, art = (ratio(others[name], s3, what).mean for what in MEASURES)
        cells.append(f"{tet:.2f} / {art:.2f}")
    tet_s, art_s = (interval(values(s3, what)).mean for what in MEASURES)
    return (label, f"{tet_s:,.0f} / {art_s:,.0f}", *cells)


def both_rows(label: str, runs: Runs) -> list[tuple[str, ...]]:
    """A row for each price of a sub-job."""
    return [row(f"{label}, {reading}", runs, runs[base]) for base, reading in READINGS.items()]


def dependence(title: str, first: str, rows: Iterable[tuple[str, ...]]) -> Table:
    columns = (first, "S³ (s)", *OTHERS)
    seeds = of_seeds(FEWER_SEEDS)
    return Table(f"{title}: TET / ART as multiples of S³ ({seeds})", columns, tuple(rows))


Printed = Mapping[Measure, Mapping[str, float]]


def multiples_chart(
    name: str, title: str, cases: Mapping[str, Runs], printed: Printed | None = None
) -> Chart:
    """Bars of the others as multiples of S³, TET and ART; what the paper printed beside them."""
    panels = tuple(_panel(what, cases, (printed or {}).get(what, {})) for what in MEASURES)
    return Chart(name, title, panels, bar_keys(OTHERS))


def _panel(what: Measure, cases: Mapping[str, Runs], printed: Mapping[str, float]) -> Panel:
    groups: list[str] = []
    bars: dict[str, list[Interval | None]] = {other: [] for other in OTHERS}
    if printed:
        groups.append("paper")
        for other in OTHERS:
            figure = printed.get(other)
            bars[other].append(None if figure is None else Interval(figure, figure, figure, 1))
    for case, runs in cases.items():
        for base, start_s in ((WHOLE, JOB_START_S), (LIGHT, HEARTBEAT_S)):
            groups.append(f"{case}\n{start_s:.0f} s per sub-job")
            for other in OTHERS:
                bars[other].append(ratio(runs[other], runs[base], what))
    panel = bar_panel(what, "multiple of S³", groups, bars)
    equal = Line("S³", (panel.x.low, panel.x.high), (1.0, 1.0), INK, "dot")
    return replace(panel, lines=(equal,))
