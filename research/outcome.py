"""What an experiment gives: tables, pictures, and findings beside what a paper printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any

from queryard.core.readable import several
from queryard.figures.panels import Key, Panel

from .numbers import margin


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds, and where it lies with 95 % confidence; no interval from one seed."""

    mean: float
    low: float
    high: float
    seeds: int

    def text(self, write: Callable[[float], str] = "{:.3g}".format) -> str:
        if self.seeds < 2:
            return write(self.mean)
        return f"{write(self.mean)} ({write(self.low)} to {write(self.high)})"

    def map(self, scale: Callable[[float], float]) -> Interval:
        """On another scale that grows with this one, such as `math.exp` of logarithms."""
        return Interval(scale(self.mean), scale(self.low), scale(self.high), self.seeds)

    def from_zero(self) -> Interval:
        """Of what is never negative, however much it spreads."""
        return replace(self, low=max(0.0, self.low))

    def reaches(self, *bounds: float) -> bool:
        """Whether one of these lies within, so that chance decides on which side of it we are."""
        return self.seeds > 1 and any(self.low <= bound <= self.high for bound in bounds)


def interval(values: Sequence[float]) -> Interval:
    """The mean of some runs with its confidence interval.

    >>> interval([1.0, 2.0, 3.0]).text("{:.1f}".format)
    '2.0 (-0.5 to 4.5)'
    """
    mean = statistics.fmean(values)
    half = margin(values, 95)
    return Interval(mean, mean - half, mean + half, len(values))


def of_seeds(count: int) -> str:
    """
    >>> of_seeds(1), of_seeds(5)
    ('1 seed', '5 seeds')
    """
    return several(count, "seed")


class Verdict(Enum):
    """What is said of a number of ours; `judging` has the rule."""

    AGREES = "agrees"
    OTHER_SIZE = "same direction, other size"
    DIFFERS = "differs"
    REACHED = "reached"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One published figure and ours.

    The verdict is None where chance could decide it (`judging.direction`) or nothing was printed.
    """

    what: str
    paper: str
    ours: str
    verdict: Verdict | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under titles; all columns but the first are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture of one or more panels side by side, by a name that may serve as a file's."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    keys: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """All that came of an experiment."""

    findings: tuple[Finding, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    material: tuple[Any, ...] = ()
    """What a `Joint` verdict over several experiments is made of."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How an experiment is to be run: over which seeds, how large, with which public traces.

    `size` scales the number of queries where that makes sense: 1 is as published.
    """

    seeds: int = 5
    size: float = 1.0
    traces: Path | None = None
    tell: Callable[[str], None] = field(default=lambda line: None)


def without_traces(options: RunOptions, needs: str) -> Outcome:
    """Why an experiment on recorded workloads has nothing to tell."""
    if options.traces is None:
        return Outcome(notes=("left out: name a folder of public traces with --traces",))
    return Outcome(notes=(f"left out: {options.traces} holds nothing to replay in {needs}",))


@dataclass(frozen=True, slots=True)
class Experiment:
    """A published table or figure, to be run again."""

    name: str
    title: str
    source: str
    run: Callable[[RunOptions], Outcome]
    parameters: Mapping[str, str] = field(default_factory=dict)
    """What the source leaves open, and what was chosen."""
    needs_traces: bool = False
    usual_seeds: int = 5
    """How many are run unless the command names another number."""


@dataclass(frozen=True, slots=True)
class Joint:
    """What several experiments say together, once all of them have ended."""

    name: str
    title: str
    source: str
    of: tuple[str, ...]
    judge: Callable[[Sequence[Outcome]], Outcome]
