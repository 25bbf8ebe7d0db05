"""How well job, task and query times are predicted: TLS's accuracy tables, on tasks run here.

The 22 queries of TPC-H run staged, task by task on one core, at four scales; the models are fitted
online, one job after another in an order that is drawn, and then asked for all jobs. A scale beyond
these is the test. Times are CPU seconds, of all tasks of a job or of a query together.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

from queryard.core.model import MAP, REDUCE, Kind, Operator
from queryard.estimate.jobs import JobSizes, JobTimes, TaskTimes
from research.bars import bar_keys, bar_panel
from research.judging import beside
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
from research.trials import parts

from .staged_runs import RanJob, RanQuery, Yard

SCALES = (0.05, 0.1, 0.2, 0.4)
BEYOND = 0.8
# Those first that have jobs of all kinds, for runs of few queries.
QUERIES = (21, 18, 9, *(number for number in range(1, 23) if number not in (21, 18, 9)))
FEWEST = 3
OPERATORS: tuple[Operator, ...] = ("extract", "groupby", "join")

JOB_FIT: Mapping[Operator, float] = {"extract": 0.832, "groupby": 0.916, "join": 0.872}
JOB_ERROR: Mapping[Operator, float] = {"extract": 0.1014, "groupby": 0.1048, "join": 0.1567}
BEYOND_ERROR, QUERY_ERROR, MAP_FIT = 0.1484, 0.083, 0.82
REDUCE_FIT: Mapping[Operator, float] = {"extract": 0.959, "groupby": 0.926, "join": 0.809}

Sizes = Callable[[RanJob], JobSizes]
# True sizes, and those that the planner expects; a model learns from those it is asked with.
SIZES: Mapping[str, Sizes] = {
    "true sizes": lambda job: job.real,
    "estimated sizes": lambda job: job.planned,
}
EQUATION, TASKS = "Eq. 3", "sum of tasks"

Pairs = list[tuple[float, float]]
"""Predicted and real seconds."""


class Measure(NamedTuple):
    """A figure of the paper: what it is of, how it is written, what was printed."""

    what: str
    printed: float
    is_error: bool

    def write(self, value: float) -> str:
        return f"{100 * value:.1f} %" if self.is_error else f"{value:.3f}"


MEASURES = (
    *(Measure(f"R² of job times, {name}", JOB_FIT[name], False) for name in OPERATORS),
    *(Measure(f"mean error of job times, {name}", JOB_ERROR[name], True) for name in OPERATORS),
    Measure("mean error of job times beyond training", BEYOND_ERROR, True),
    Measure("mean error of query times beyond training", QUERY_ERROR, True),
)
TASK_MEASURES = (
    Measure("R² of map task times", MAP_FIT, False),
    *(Measure(f"R² of reduce task times, {name}", REDUCE_FIT[name], False) for name in OPERATORS),
)
Figures = dict[tuple[str, str, str], float]
"""Measure, model and sizes -> what came out; what there is nothing of is missing."""


def fit_of(pairs: Pairs) -> float | None:
    """R²: the share of the variance that is explained; None where nothing varies.

    >>> fit_of([(1.0, 1.0), (2.0, 2.0)]), fit_of([(1.5, 1.0), (1.5, 2.0)]), fit_of([])
    (1.0, 0.0, None)
    """
    if len(pairs) < 2:
        return None
    mean = fmean(real for _, real in pairs)
    varies = math.fsum((real - mean) ** 2 for _, real in pairs)
    missed = math.fsum((real - predicted) ** 2 for predicted, real in pairs)
    return 1.0 - missed / varies if varies > 0 else None


def error_of(pairs: Pairs) -> float | None:
    """The mean of |predicted - real| / real."""
    return fmean(abs(one - real) / real for one, real in pairs) if pairs else None


def run_queries(folder: Path, scale: float, options: RunOptions) -> list[list[RanQuery]]:
    """The queries at one scale, seed by seed."""
    yard = Yard(folder / f"{scale:g}", scale)
    numbers = QUERIES[: max(FEWEST, parts(len(QUERIES), options.size))]
    yard.run(numbers[0], Random(0))  # what is loaded once is loaded now
    found = []
    for seed in range(options.seeds):
        options.tell(f"scale {scale:g}, seed {seed}")
        ran = (yard.run(number, Random(f"{seed}/{scale}/{number}")) for number in numbers)
        found.append([query for query in ran if query is not None])
    return found


def figures_of(training: Sequence[RanQuery], beyond: Sequence[RanQuery], seed: int) -> Figures:
    """All measures of one seed, by both models, with both kinds of sizes."""
    found: dict[tuple[str, str, str], float | None] = {}
    jobs = [job for query in training for job in query.jobs]
    order = Random(f"{seed}/order").sample(jobs, len(jobs))
    for name, sizes in SIZES.items():
        equation, tasks = fitted(order, sizes)
        for model, seconds in ((EQUATION, equation.seconds), (TASKS, tasks.seconds)):
            values = _of_jobs(jobs, beyond, sizes, seconds)
            for measure, value in zip(MEASURES, values, strict=True):
                found[measure.what, model, name] = value
        maps, *reduces = TASK_MEASURES
        found[maps.what, TASKS, name] = fit_of(_phases(jobs, MAP, tasks, sizes))
        for operator, measure in zip(OPERATORS, reduces, strict=True):
            mine = [job for job in jobs if job.real.operator == operator and job.real.reduce]
            found[measure.what, TASKS, name] = fit_of(_phases(mine, REDUCE, tasks, sizes))
    return {key: value for key, value in found.items() if value is not None}


def fitted(jobs: Iterable[RanJob], sizes: Sizes) -> tuple[JobTimes, TaskTimes]:
    """Both models, after these jobs have ended one after another."""
    equation, tasks = JobTimes(), TaskTimes()
    for job in jobs:
        equation.learn(sizes(job), job.cpu_s)
        for kind, cpu_s in job.mean_cpu_s.items():
            tasks.learn(sizes(job), kind, cpu_s)
    return equation, tasks


def _of_jobs(
    training: Sequence[RanJob],
    beyond: Sequence[RanQuery],
    sizes: Sizes,
    seconds: Callable[[JobSizes], float],
) -> Iterator[float | None]:
    """The values of `MEASURES`."""

    def pairs(jobs: Iterable[RanJob]) -> Pairs:
        return [(seconds(sizes(job)), job.cpu_s) for job in jobs]

    by_class = [
        pairs(job for job in training if job.real.operator == operator) for operator in OPERATORS
    ]
    yield from map(fit_of, by_class)
    yield from map(error_of, by_class)
    by_query = [pairs(query.jobs) for query in beyond]
    yield error_of([pair for of_query in by_query for pair in of_query])
    yield error_of(
        [(sum(one), sum(real)) for one, real in (zip(*q, strict=True) for q in by_query)]
    )


def _phases(jobs: Sequence[RanJob], kind: Kind, tasks: TaskTimes, sizes: Sizes) -> Pairs:
    return [(tasks.task_seconds(sizes(job), kind), job.mean_cpu_s[kind]) for job in jobs]


def run(options: RunOptions) -> Outcome:
    with tempfile.TemporaryDirectory(prefix="tls-accuracy-") as folder:
        *training, beyond = (
            run_queries(Path(folder), scale, options) for scale in (*SCALES, BEYOND)
        )
    options.tell("fitting")
    seeds = [
        figures_of([query for of_scale in training for query in of_scale[seed]], beyond[seed], seed)
        for seed in range(options.seeds)
    ]
    found = {
        key: interval([figures[key] for figures in seeds if key in figures])
        for key in dict.fromkeys(key for figures in seeds for key in figures)
    }
    counted = Table("What ran", ("", *OPERATORS), tuple(_counts(training, beyond)))
    return Outcome(tuple(_findings(found)), (_table(found), counted), (_chart(found),), NOTES)


def _findings(found: Mapping[tuple[str, str, str], Interval]) -> Iterable[Finding]:
    for sizes in SIZES:
        for measure in (*MEASURES, *TASK_MEASURES):
            model = EQUATION if measure in MEASURES else TASKS
            ours = found.get((measure.what, model, sizes))
            what = f"{measure.what}, {sizes}"
            if ours is not None:
                yield beside(what, measure.printed, ours, measure.write)
            else:
                yield Finding(what, measure.write(measure.printed), "", note="no such tasks here")


def _table(found: Mapping[tuple[str, str, str], Interval]) -> Table:
    rows = []
    for measure in MEASURES:
        ours = (found.get((measure.what, model, s)) for model in (EQUATION, TASKS) for s in SIZES)
        cells = ("" if one is None else one.text(measure.write) for one in ours)
        rows.append((measure.what, measure.write(measure.printed), *cells))
    columns = (f"{model}, {sizes}" for model in (EQUATION, TASKS) for sizes in SIZES)
    return Table(
        "Eq. 3, and the sum of all tasks by the task model", ("", "paper", *columns), tuple(rows)
    )


def _counts(
    training: Sequence[Sequence[Sequence[RanQuery]]], beyond: Sequence[Sequence[RanQuery]]
) -> Iterable[tuple[str, ...]]:
    """How many jobs there were, and what they took in the mean."""
    for title, scales in (("training", training), ("beyond", [beyond])):
        jobs = [job for scale in scales for seed in scale for query in seed for job in query.jobs]
        by_class = [[job for job in jobs if job.real.operator == name] for name in OPERATORS]
        yield f"jobs, {title}", *(str(len(of_class)) for of_class in by_class)
        means = (fmean(job.cpu_s for job in of_class) if of_class else 0 for of_class in by_class)
        yield f"mean CPU time in ms, {title}", *(f"{1000 * mean:.0f}" for mean in means)


def _chart(found: Mapping[tuple[str, str, str], Interval]) -> Chart:
    errors = [measure for measure in MEASURES if measure.is_error]
    groups = (*OPERATORS, "beyond", "queries")
    bars: dict[str, list[Interval | None]] = {
        "paper": [Interval(m.printed, m.printed, m.printed, 1) for m in errors]
    }
    for model in (EQUATION, TASKS):
        for sizes in SIZES:
            bars[f"{model} ({sizes})"] = [found.get((m.what, model, sizes)) for m in errors]
    panel = bar_panel("Mean error of predicted times", "mean error", groups, bars)
    return Chart("tls-accuracy", "Accuracy of predicted times", (panel,), bar_keys(tuple(bars)))


NOTES = (
    "With true sizes Eq. 3 explains the times of jobs as well as printed, but its mean errors are"
    " about two to four times the printed ones. Small jobs are part of the reason, not all of it:"
    " more than half of the jobs here take less than 30 ms, most of which is what it costs to "
    "begin a task, and err by 41 %; jobs above 0.1 s still err by 29 % (looked at once, on other "
    "literals). Eq. 3 has one constant for beginning, whatever the number of tasks and the length"
    " of their SQL. The same job run twice differed by 10 % in the mean, a query by 7 % (scale "
    "0.2, on a busy machine)",
    "The sum of all tasks, by a model with terms for the SQL of a task, for what it scans, reads,"
    " joins with and leaves, has smaller mean errors than Eq. 3 throughout; live sessions use it "
    "for staged queries. The terms were chosen, and the prices it begins with rounded, on TPC-H "
    "at these scales, so that this is no test on other queries",
    "Sizes that are estimated cost most at jobs that group: for one in ten, what they read is "
    "estimated wrong by a factor of 4.6 or more, where for joins it is 1.15. By estimated sizes, "
    "times of reduce tasks are not explained at all",
    "Orders and limits run in one map task here, so that jobs of extract have no reduces",
)

EXPERIMENT = Experiment(
    "tls-accuracy",
    "How well job, task and query times are predicted",
    "TLS §4 and §5.1, the accuracy tables",
    run,
    {
        "data": f"TPC-H at scales {', '.join(map(str, SCALES))}, and {BEYOND} beyond training",
        "splits": "row groups of about 7 MB, for blocks of 256 MB",
        "joins within maps": "below a tenth of a split, as in Hive",
        "times": "CPU seconds of all tasks together, on one core, for times on a cluster",
        "tuples of P": "bytes of the two sides",
        "query times": "beyond training, too",
        "R² and errors by class": "of jobs that were learnt from",
    },
    usual_seeds=3,
)
