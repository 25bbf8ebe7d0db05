"""The work of a query in core-seconds, and its memory, before it runs.

What is known best counts. A query of a template that has run before takes about what it took then.
Any other is estimated from what its plan does (`prices.py`), with factors learnt from ended
queries (`factors.py`). Failing all that, there are the bytes of the tables it names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Literal, NamedTuple

from queryard.core.speedup import PERFECT, Speedup

from .revision import revised

By = Literal["template", "plan", "bytes", "guess"]
Known = Literal["exactly", "at least"]
Stored = Literal["columns", "text", "memory"]

LEAST_S = 0.002
"""No query takes less: it is parsed, planned and answered."""

GUESS_S = 0.01
"""Of a query that names no table."""

# A byte of a table that is named, compressed as it lies: not all columns are read, and some rows
# are joined. Text is parsed whole, what lies in memory is only looked at.
BYTE_S: Mapping[Stored, float] = {"columns": 1.3e-9, "text": 4.5e-9, "memory": 0.5e-9}

# Typical factors of error, before anything was learnt.
SPREADS: Mapping[By, float] = {"template": 1.15, "plan": 1.5, "bytes": 2.0, "guess": 3.0}

# Older figures count less and less.
FADING = 0.9
# What is not learnt yet counts as so many figures that say "as expected".
DOUBT = 2.0
SAFETY = 1.3
PEAKS = 8
# What is kept of a template; of queries in a row that were stopped as many as outweigh all others.
FIGURES = 32
STOPPED = 8
# Planning takes some 10 ms. It pays where queries of a template may take so long, and differ by
# such a factor (its logarithm); those with fewer different literals tell too little of that.
LONG_S = 0.2
VARIED = 0.1
ALIKE = 3
# Every submission of a known template needs them.
_WEIGHTS = tuple(FADING**age for age in range(2 * FIGURES))


QUANTILES = NormalDist()


@dataclass(frozen=True, slots=True)
class Prediction:
    """Core-seconds and bytes of memory (None: not known).

    `spread` is the factor by which the work is typically more or less: half of all queries are
    within it. `speedup` says how much faster it gets with more slots; perfect: not known. `part` is
    what its plan mostly does; empty: not known. `table_bytes` are those of the tables it names.

    >>> [round(end, 2) for end in Prediction(2.0, None, "plan", 1.5).interval()]
    [0.74, 5.38]
    """

    work_s: float
    memory_bytes: int | None
    by: By
    spread: float
    speedup: Speedup = field(default=PERFECT, repr=False)
    part: str = field(default="", repr=False)
    table_bytes: float = field(default=0.0, repr=False)

    def interval(self, share: float = 0.9) -> tuple[float, float]:
        """The work between which so large a share of such queries lies."""
        factor = self.spread ** (QUANTILES.inv_cdf((1 + share) / 2) / QUANTILES.inv_cdf(0.75))
        return self.work_s / factor, self.work_s * factor


class Figure(NamedTuple):
    """What a query of a template took, and the bytes of the tables it named (0: not known).

    Of a query that was cancelled, or still runs, it is known that it takes at least so much.
    `literals` is a number for its text with literals and parameters (0: not known), `planned_s`
    what its plan promised (0: it was not planned).
    """

    work_s: float
    memory_bytes: int | None = None
    table_bytes: float = 0.0
    known: Known = "exactly"
    literals: int = 0
    planned_s: float = 0.0


def noted(figures: Sequence[Figure], new: Figure) -> list[Figure]:
    """The figures of a template with a new one, the last one last.

    A query that is cancelled again and again may be one query that is tried again and again. Many
    lower bounds in a row push out no query that ran to its end, and once another does, only the
    largest of them counts on.

    >>> noted([Figure(5.0, known="at least"), Figure(8.0, known="at least")], Figure(1.0))[0].work_s
    8.0
    """
    whole = len(figures)
    while whole and figures[whole - 1].known == "at least":
        whole -= 1
    ended, stopped = list(figures[:whole]), list(figures[whole:])
    if new.known == "at least":
        stopped.append(new)
        if len(stopped) > STOPPED:
            stopped.remove(min(stopped, key=lambda figure: figure.work_s))
        return [*ended, *stopped][-FIGURES:]
    if stopped:
        ended.append(max(stopped, key=lambda figure: figure.work_s))
    return [*ended, new][-FIGURES:]


def from_past(
    figures: Sequence[Figure], table_bytes: float = 0.0, literals: int = 0, planned_s: float = 0.0
) -> Prediction:
    """What the next query of a template takes, from what earlier ones took, the last one last.

    The median of recent ones: of those with the same literals, if there are any. Of others, those
    that were planned count in proportion to what their plans and its own promise, unless plans have
    told nothing so far; else those count whose tables have grown, in proportion. At least one has
    run to its end. A lower bound below the median of those that have says nothing; one above stands
    for what a query takes that has taken so much already (`revised`).

    >>> from_past([Figure(1.0), Figure(9.0), Figure(1.2)]).work_s
    1.2
    >>> grown = from_past([Figure(1.0, 1_000, 5e6)], table_bytes=1e7)
    >>> grown.work_s, grown.memory_bytes
    (2.0, 2600)
    >>> two = [Figure(1.0, literals=1, planned_s=2.0), Figure(3.0, literals=2, planned_s=6.0)]
    >>> from_past(two, literals=1).work_s, from_past(two, planned_s=4.0).work_s
    (1.0, 2.0)
    >>> from_past([Figure(1.0), Figure(4.0, known="at least")]).work_s > 4.0
    True
    """
    same = [figure for figure in figures if literals and figure.literals == literals]
    if any(_whole(figure) for figure in same):
        figures = same
    compared_s = planned_s if plans_tell(figures) else 0.0
    growth = [_growth(figure, table_bytes, compared_s) for figure in figures]
    scaled = [figure.work_s * grown for figure, grown in zip(figures, growth, strict=True)]
    ended = [work for work, figure in zip(scaled, figures, strict=True) if _whole(figure)]
    usual_s = max(LEAST_S, _median(_fading(ended)))
    works, work_s = ended, usual_s
    if len(ended) < len(figures):
        works = [
            work if _whole(figure) else revised(usual_s, work, 0.0, SPREADS["template"])
            for work, figure in zip(scaled, figures, strict=True)
            if _whole(figure) or work > usual_s
        ]
        work_s = max(LEAST_S, _median(_fading(works)))
    misses = [math.log(max(work, LEAST_S) / work_s) for work in works]
    peaks = [
        figure.memory_bytes * max(1.0, grown)
        for figure, grown in zip(figures[-PEAKS:], growth[-PEAKS:], strict=True)
        if figure.memory_bytes is not None
    ]
    # What a query had used when it was stopped is no reason to give the next one so little.
    known = any(figure.memory_bytes is not None for figure in figures[-PEAKS:] if _whole(figure))
    memory = math.ceil(max(peaks) * SAFETY) if known else None
    spread = spread_of(misses, "template")
    return Prediction(work_s, memory, "template", spread, table_bytes=table_bytes)


def plans_tell(figures: Sequence[Figure]) -> bool:
    """Whether queries of a template differed less from what their plans promised than from
    one another; True where there are too few to say.

    >>> long, short = Figure(8.0, planned_s=4.0), Figure(1.0, planned_s=0.5)
    >>> plans_tell([long, short]), plans_tell([long, long._replace(planned_s=0.5)])
    (True, False)
    """
    planned = [figure for figure in figures if _whole(figure) and figure.planned_s > 0]
    if len(planned) < 2:
        return True
    works = [math.log(max(figure.work_s, LEAST_S)) for figure in planned]
    ratios = [
        work - math.log(figure.planned_s) for work, figure in zip(works, planned, strict=True)
    ]
    return _deviation(ratios) <= _deviation(works)


def literals_matter(figures: Sequence[Figure], possible_s: float = 0.0) -> bool:
    """Whether queries of a template are to be told apart by their literals: they are long and
    differ; or they may be long, and too few have ended to say whether they differ.

    >>> literals_matter([Figure(5.0)]), literals_matter([Figure(0.1)])
    (True, False)
    >>> literals_matter([Figure(5.0)] * 3), literals_matter([Figure(5.0), Figure(9.0)] * 3)
    (False, True)
    """
    ended = [figure for figure in figures if _whole(figure)]
    longest_s = max((figure.work_s for figure in ended), default=0.0)
    known = {figure.literals for figure in ended if figure.literals}
    if len(known) + sum(not figure.literals for figure in ended) < ALIKE:
        return max(longest_s, possible_s) >= LONG_S
    works = [math.log(max(figure.work_s, LEAST_S)) for figure in ended]
    return longest_s >= LONG_S and _deviation(works) > VARIED


def _deviation(values: Sequence[float]) -> float:
    """How far values are from their median, on average, older ones fading."""
    middle = _median(_fading(values))
    weighted = _fading([abs(value - middle) for value in values])
    return sum(value * weight for value, weight in weighted) / sum(w for _, w in weighted)


def raised(
    prediction: Prediction, stopped: Sequence[Figure], table_bytes: float = 0.0
) -> Prediction:
    """A prediction for a template of which no query has run to its end, only so far.

    What they take differs from one another far less than from what was predicted, so that many
    tell hardly more than the one that went furthest.

    >>> predicted = Prediction(0.1, None, "bytes", 2.0)
    >>> work_s = raised(predicted, [Figure(s, known="at least") for s in (5.0, 20.0, 8.0)]).work_s
    >>> 25.0 < work_s < 40.0, raised(predicted, [Figure(0.01, known="at least")]).work_s < 0.11
    (True, True)
    """
    furthest_s = max(
        (figure.work_s * _growth(figure, table_bytes) for figure in stopped), default=0.0
    )
    work_s = revised(prediction.work_s, furthest_s, 0.0, prediction.spread)
    return replace(prediction, work_s=max(LEAST_S, work_s), table_bytes=table_bytes)


def _whole(figure: Figure) -> bool:
    return figure.known == "exactly"


def _growth(figure: Figure, table_bytes: float, planned_s: float = 0.0) -> float:
    """How much more than an earlier query another takes, by their plans, else by their tables."""
    if figure.planned_s > 0 and planned_s > 0:
        return planned_s / figure.planned_s
    if figure.table_bytes <= 0 or table_bytes <= 0:
        return 1.0
    return table_bytes / figure.table_bytes


def bias_of(misses: Sequence[float]) -> float:
    """By which factor predictions are to be multiplied, given log(actual / predicted) of some.

    A median, drawn towards 1 while there are few, so that one odd query spoils nothing.

    >>> bias_of([]), round(bias_of([math.log(2)] * 9), 2), bias_of([math.log(50)])
    (1.0, 2.0, 1.0)
    """
    return math.exp(_median([(0.0, DOUBT), *_fading(misses)]))


def spread_of(misses: Sequence[float], by: By) -> float:
    """The typical factor of error, given log(actual / predicted) of some predictions."""
    prior = (math.log(SPREADS[by]), DOUBT)
    return math.exp(_median([prior, *_fading([abs(miss) for miss in misses])]))


def _fading(values: Sequence[float]) -> list[tuple[float, float]]:
    """Values with their weights: the last one counts most."""
    first = len(values) - 1
    if first >= len(_WEIGHTS):
        return [(value, FADING ** (first - age)) for age, value in enumerate(values)]
    return [(value, _WEIGHTS[first - age]) for age, value in enumerate(values)]


def _median(weighted: Iterable[tuple[float, float]]) -> float:
    """The value with as much weight below as above.

    >>> _median([(1.0, 1.0), (2.0, 1.0), (50.0, 1.0)]), _median([(1.0, 1.0), (3.0, 1.0)])
    (2.0, 2.0)
    """
    ordered = sorted(weighted)
    half = sum([weight for _, weight in ordered]) / 2
    nearly = half * 0.999
    below = 0.0
    for place, (value, weight) in enumerate(ordered):
        below += weight
        if below < nearly:
            continue
        if math.isclose(below, half) and place + 1 < len(ordered):
            return (value + ordered[place + 1][0]) / 2
        if below > half:
            return value
    return ordered[-1][0]
